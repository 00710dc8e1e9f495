//! Linux's mount table, and what a path on a mount says about it.
#![no_main]

use std::path::Path;

use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|table: &[u8]| {
    let mounts = parse::mountinfo(table);
    assert!(parse::askable(&mounts).iter().all(|place| parse::asking_is_local(&mounts[*place].protocol)));
    let path = String::from_utf8_lossy(table);
    for mount in mounts {
        let _ = parse::protocol_below(&mount, Path::new(&*path)).to_string();
    }
});
