//! Fuzzes the parser of macOS folder listings (`getattrlistbulk`).
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|buffer: &[u8]| {
    let entries = parse::bulk(buffer).count();
    assert!(entries <= buffer.len());
    assert!(parse::bulk_length(buffer, entries).is_some_and(|length| length <= buffer.len()));
    let _ = parse::finder_info(buffer);
});
