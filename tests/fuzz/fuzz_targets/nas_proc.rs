//! Fuzzes the parser of the counters of a Linux NAS.
#![no_main]

use longhaul_nas::MAX_DISKS;
use longhaul_nas::parse::proc_files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(reading) = proc_files::read(bytes) {
        assert!(reading.disks.len() <= MAX_DISKS);
        assert!(!reading.disks.is_empty() || reading.processors.is_some());
    }
});
