//! Fuzzes the parser of nfsstat's mounts; the mount point is the one in the fixtures.
#![no_main]

use std::path::Path;

use longhaul_measure::parse;
use longhaul_model::Protocol;

libfuzzer_sys::fuzz_target!(|output: &[u8]| {
    let point = Path::new("/Volumes/media-nfs");
    let negotiated = parse::nfsstat_at(output, point).map(|found| found.negotiated()).unwrap_or_default();
    let _ = parse::with_negotiated_version(Protocol::Nfs(None), &negotiated);
});
