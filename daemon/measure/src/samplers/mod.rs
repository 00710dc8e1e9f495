//! What is learned of a target without loading it: the light probe.
//!
//! [`slots`] says when it asks, `pool` what it asks about, `probe` is the thread that does; [`gate`] is how a worker says
//! whether it may.

pub mod gate;
mod pool;
mod probe;
pub mod slots;
mod telling;

pub use gate::Gate;
pub use pool::{elsewhere, owns};
pub use probe::Probe;
pub use telling::{Hears, Telling};
