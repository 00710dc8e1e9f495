//! Fuzzes the parsers of NFS counters.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let mounts = parse::mountstats(text);
    assert!(mounts.len() <= text.len());
    assert!(mounts.iter().all(|mount| !mount.is_known() || mount.version.starts_with("1.")));
});
