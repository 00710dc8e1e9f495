//! Fuzzes the parser of the metrics of a node_exporter.
#![no_main]

use longhaul_nas::MAX_DISKS;
use longhaul_nas::parse::exposition;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(reading) = exposition::read(bytes) {
        assert!(reading.disks.len() <= MAX_DISKS);
        assert!(!reading.disks.is_empty() || reading.processors.is_some());
    }
});
