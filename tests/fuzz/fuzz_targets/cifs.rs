//! Fuzzes the parsers of SMB counters and dialects.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let text = String::from_utf8_lossy(text);
    let shares = parse::cifs_stats(&text).map_or(0, |found| found.shares.len());
    assert!(shares <= text.len());
    assert!(parse::cifs_connections(&text).len() <= text.len());
});
