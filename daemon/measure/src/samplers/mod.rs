//! What is learned of a target without loading it: answers of the light probe, traffic from readings of counters, and the
//! ledger of waits.
//!
//! [`slots`] says when the probe asks, `pool` what it asks about, `probe` is the thread that does; [`gate`] is how a worker
//! says whether it may.

pub mod gate;
mod ledger;
mod pool;
mod probe;
pub mod slots;
mod telling;
mod traffic;

pub use gate::Gate;
pub use ledger::{Flight, Ledger, seconds_waited};
pub use pool::{elsewhere, owns};
pub use probe::Probe;
pub use telling::{Hears, Telling};
pub(crate) use traffic::crossed;
pub use traffic::{Look, Meter, Metered, Own, is_used};
