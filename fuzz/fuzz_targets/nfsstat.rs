//! What nfsstat says about NFS mounts and their counters; the mount point is the one in the fixtures.
#![no_main]

use std::path::Path;

use longhaul_measure::model::Protocol;
use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|output: &[u8]| {
    let point = Path::new("/Volumes/media-nfs");
    let told = parse::nfsstat_at(output, point).map(|found| found.negotiated()).unwrap_or_default();
    let _ = parse::protocol_with(Protocol::Nfs(None), &told);
    let _ = parse::nfsstat_client(output);
});
