//! Names that are found in an arena: whose they are must be told of any.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use longhaul_measure::corpus::tree::Tree;
use longhaul_measure::workloads::WORKLOADS;

libfuzzer_sys::fuzz_target!(|name: &[u8]| {
    let _ = Tree::number_in(name);
    let path = Path::new(OsStr::from_bytes(name));
    let _ = WORKLOADS.iter().filter(|workload| workload.owns(path)).count();
});
