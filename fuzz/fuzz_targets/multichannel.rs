//! What smbutil says about the bytes of SMB sessions.
#![no_main]

use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|output: &[u8]| {
    let sessions = parse::multichannel(output).unwrap_or_default();
    assert!(sessions.len() <= output.len());
});
