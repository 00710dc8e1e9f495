//! Renderers of a [`Document`](crate::Document). Each escapes for its own format, and nothing else does.

pub mod html;
pub mod markdown;
pub mod terminal;
