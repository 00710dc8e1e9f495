//! Fuzzes the parser of the Linux mount table, and the detection of a mount's protocol.
#![no_main]

use std::path::Path;

use longhaul_measure::parse;
use longhaul_model::Protocol;

libfuzzer_sys::fuzz_target!(|table: &[u8]| {
    let mounts = parse::mountinfo(table);
    let is_local = |index: usize| matches!(mounts[index].protocol, Protocol::Local(_));
    assert!(parse::safe_to_statfs(&mounts).into_iter().all(is_local));
    let path = String::from_utf8_lossy(table);
    for mount in mounts {
        let _ = parse::protocol_at(&mount, Path::new(&*path)).to_string();
    }
});
