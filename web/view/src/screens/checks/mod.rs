//! Checks of targets apart from their speed.

mod consequences;
mod fidelity;
mod property_words;

pub use fidelity::{fidelity, result_word};
pub use property_words::property_words;
