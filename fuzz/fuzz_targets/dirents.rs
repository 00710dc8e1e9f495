//! Linux's folder listing.
#![no_main]

use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|buffer: &[u8]| {
    assert!(parse::dirents(buffer).count() <= buffer.len());
});
