//! What smbutil says about an SMB session.
#![no_main]

use longhaul_measure::model::Protocol;
use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|output: &[u8]| {
    let _ = parse::protocol_with(Protocol::Smb(None), &parse::smbutil(output).unwrap_or_default());
});
