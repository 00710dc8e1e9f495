//! Fuzzes the messages between worker and supervisor.
#![no_main]

use longhaul_measure::worker::{WorkerCommand, WorkerMessage, WorkerSetup};

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    let _ = serde_json::from_slice::<WorkerMessage>(line);
    let _ = serde_json::from_slice::<WorkerCommand>(line);
    let _ = serde_json::from_slice::<WorkerSetup>(line);
});
