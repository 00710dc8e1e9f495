//! Fuzzes the stored file of a recording, behind its checksum.
#![no_main]

use longhaul_recording::Recording;

/// First bytes of the file: name and version.
const HEAD: &[u8] = b"longhaul recording\n\x01";

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let mut checksum = flate2::Crc::new();
    checksum.update(body);
    let file = [HEAD, &checksum.sum().to_le_bytes(), body].concat();
    if let Ok(recording) = Recording::from_bytes(&file) {
        assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
    }
    let _ = Recording::from_bytes(body);
});
