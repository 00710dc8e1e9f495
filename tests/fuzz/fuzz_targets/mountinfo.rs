//! Fuzzes the parser of the Linux mount table, and the detection of a mount's protocol.
#![no_main]

use std::path::Path;

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|table: &[u8]| {
    let mounts = parse::mountinfo(table);
    assert!(
        parse::safe_to_statfs(&mounts).iter().all(|index| parse::is_statfs_local(&mounts[*index].protocol))
    );
    let path = String::from_utf8_lossy(table);
    for mount in mounts {
        let _ = parse::protocol_at(&mount, Path::new(&*path)).to_string();
    }
});
