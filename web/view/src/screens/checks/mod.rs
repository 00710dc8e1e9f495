//! Screens of the checks of a target beside its speed.

mod integrity;

pub use integrity::integrity;
