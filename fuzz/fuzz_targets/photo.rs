//! Photos as they come back from a share: the thumbnail in the head, and all the pixels.
#![no_main]

use longhaul_measure::corpus::{decode, thumbnail};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(range) = thumbnail(bytes) {
        let _ = decode(&bytes[range]);
    }
    let _ = decode(bytes);
});
