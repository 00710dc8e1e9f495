//! Screens of checks that are not runs, and statements about them.

mod brief;
mod consequences;
mod damage;
mod fidelity;
mod freshness;
mod integrity;
mod property_words;
pub mod statements;

pub use brief::{CheckResults, in_brief, seen_of_all};
pub use damage::{damage, damage_notification, damaged_shares};
pub use fidelity::{fidelity, result_word};
pub use freshness::{change, freshness, origin, staleness};
pub use integrity::{integrity, mismatch_details, read_back_now};
pub use property_words::property_words;
