//! Linux's mount table.
#![no_main]

use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|table: &[u8]| {
    for mount in parse::mountinfo(table) {
        let _ = (parse::asking_is_local(&mount.protocol), mount.protocol.to_string());
    }
});
