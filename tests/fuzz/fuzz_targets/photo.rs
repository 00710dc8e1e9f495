//! Fuzzes the decoding of photos read from a share: the embedded thumbnail, and the whole image.
#![no_main]

use longhaul_corpus::{decode, thumbnail};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(range) = thumbnail(bytes) {
        let _ = decode(&bytes[range]);
    }
    let _ = decode(bytes);
});
