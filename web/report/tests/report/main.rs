//! What leaves longhaul: pictures, the page, Markdown and the file for somebody else, from made-up weeks.

#![allow(clippy::unwrap_used)]

mod charts;
mod documents;
mod exchange;
mod over_time;
mod world;
