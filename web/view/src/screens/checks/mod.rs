//! Screens of the checks of a target beside its speed.

mod damage;
mod integrity;

pub use damage::{damage, damage_notification, damaged_shares};
pub use integrity::integrity;
