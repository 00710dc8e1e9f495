//! Attribution: which layer the time of a task is spent in.
//!
//! The time of a phase is split in this order, so that the parts always add up to the time that a user felt:
//!
//! 1. **Client**: the worker used a processor or waited for one, and so did the threads of the kernel that handle answers.
//! 2. The worker was blocked for the rest. Requests overlap (read-ahead, write-back, threads), so their total time may be
//!    longer: the **answers** take as much of the blocked time as they can explain, and overlapping requests share it.
//! 3. **Queue**: of what the answers do not explain, the time for which requests waited before they were sent. What is left
//!    then belongs to the client: nothing was asked of the server meanwhile.
//! 4. **Wire**: of the answers, round trips × shortest round-trip time + bytes ÷ bandwidth + retransmissions.
//! 5. **Server**: the rest of the answers. If the NAS reports the time in which its disk was busy, **server disk** is that
//!    part of it.
//!
//! A part that no source can separate is unknown (`None`), never zero, and its time stays in the next larger layer: without
//! readings of the NAS all of it is the server's.

mod bandwidth;
mod estimate;
mod layer;
mod metric_parts;
mod outstanding;
mod phase_parts;
mod summary;
mod trips_in_order;

pub use layer::{Attribution, Layer, Part, disk_seconds};
pub use summary::attribute;
pub use trips_in_order::TripsInOrder;

/// Number of newest rounds whose time is attributed, unless a user asks for more: a day of the default schedule, so that what
/// slows a share down since yesterday is named today.
pub const ATTRIBUTED_ROUNDS: u32 = 24;

#[cfg(test)]
mod tests;
