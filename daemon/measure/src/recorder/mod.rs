//! The flight recorder: memory shared between a worker and its supervisor.
//!
//! The worker writes to it with plain atomic stores, so recording costs no syscall and the data survives the
//! worker. If a call never returns, the supervisor reads from the recorder which operation is in flight, since
//! when, and everything that was measured before. Each thread slot is written by one thread only, so no
//! read-modify-write instruction is needed.

mod calls;
mod flight_recorder;
mod slow_call_collector;
mod slow_calls;
mod verified;

pub use flight_recorder::{
    InFlightCall, PROBE_THREAD_SLOT, Recorder, RecorderSnapshot, THREAD_SLOTS, ThreadSlot,
};
pub use slow_call_collector::SlowCallCollector;
pub use slow_calls::RawSlowCall;
