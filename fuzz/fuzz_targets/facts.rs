//! Files of settings, and tools that print a fact a line.
#![no_main]

use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = parse::settings(text);
    let _ = parse::named_lines(text);
    let _ = parse::tmutil_destinations(text);
});
