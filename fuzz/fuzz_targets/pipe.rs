//! What worker and supervisor say to each other.
#![no_main]

use longhaul_measure::worker::{Command, Message, Setup};

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    let _ = serde_json::from_slice::<Message>(line);
    let _ = serde_json::from_slice::<Command>(line);
    let _ = serde_json::from_slice::<Setup>(line);
});
