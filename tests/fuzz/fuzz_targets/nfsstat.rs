//! Fuzzes the parser of nfsstat's mounts.
#![no_main]

use longhaul_measure::parse;
use longhaul_model::Protocol;

libfuzzer_sys::fuzz_target!(|output: &[u8]| {
    for mount in parse::nfsstat(output).unwrap_or_default() {
        let _ = parse::with_negotiated_version(Protocol::Nfs(None), &mount.negotiated());
    }
});
