//! Screens about results of many machines: what a file shares, what it contradicts, and what many files say together.

mod families;
mod merged;
mod share;

pub use merged::merged;
pub use share::{contradictions, findings, share};
