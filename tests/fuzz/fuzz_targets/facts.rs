//! Fuzzes the parsers of settings files and of tools that print one fact per line.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = parse::settings(text);
    let _ = parse::colon_separated(text);
    let _ = parse::tmutil_destinations(text);
});
