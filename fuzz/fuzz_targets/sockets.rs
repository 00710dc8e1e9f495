//! TCP connections as the kernels of both systems list them.
#![no_main]

use longhaul_measure::platform::parse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert!(parse::sockets(bytes).connections.len() <= bytes.len());
    assert!(parse::pcblist(bytes).len() <= bytes.len());
});
