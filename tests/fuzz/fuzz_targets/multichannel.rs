//! Fuzzes the parser of smbutil's session counters.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|output: &[u8]| {
    let sessions = parse::multichannel(output).unwrap_or_default();
    assert!(sessions.len() <= output.len());
});
