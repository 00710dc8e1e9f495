//! Fuzzes the parser of smbutil's session options.
#![no_main]

use longhaul_measure::parse;
use longhaul_model::Protocol;

libfuzzer_sys::fuzz_target!(|output: &[u8]| {
    let _ = parse::with_negotiated_version(Protocol::Smb(None), &parse::smbutil(output).unwrap_or_default());
});
