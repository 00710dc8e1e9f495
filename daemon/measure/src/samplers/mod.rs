//! What goes on beside the runs, sampled without loading the share: readings of counters become traffic, waits become
//! lines of a ledger.

mod ledger;
mod traffic;

pub use ledger::{Ledger, seconds_waited};
pub use traffic::{Look, Meter, Metered, Own, is_used};
