//! Fuzzes the check of file names in a sandbox: for any name it must decide which workload owns the file.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use longhaul_corpus::tree::Tree;
use longhaul_measure::workloads::WORKLOADS;

libfuzzer_sys::fuzz_target!(|name: &[u8]| {
    let _ = Tree::parse_number(name);
    let path = Path::new(OsStr::from_bytes(name));
    let _ = WORKLOADS.iter().filter(|workload| workload.owns(path)).count();
});
