//! What pmset says about the power.
#![no_main]

use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|output: &str| {
    let _ = parse::pmset(output);
});
