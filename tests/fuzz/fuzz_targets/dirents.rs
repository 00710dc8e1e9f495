//! Fuzzes the parser of Linux folder listings (`getdents64`).
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|buffer: &[u8]| {
    assert!(parse::dirents(buffer).count() <= buffer.len());
});
