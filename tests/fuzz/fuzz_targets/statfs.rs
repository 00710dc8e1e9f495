//! Fuzzes the parser of the macOS mount table: type, source and flags.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|facts: (&[u8], &[u8], u32)| {
    let (type_name, from_name, flags) = facts;
    let _ = parse::statfs(type_name, from_name, flags);
    for known in ["smbfs", "nfs", "afpfs", "webdav", "macfuse", "apfs"] {
        let _ = parse::statfs(known.as_bytes(), from_name, flags);
    }
});
