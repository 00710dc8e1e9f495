//! What goes on beside the runs: readings of counters become traffic.

mod traffic;

pub use traffic::{Look, Meter, Metered, Own, is_used};
