//! Fuzzes the parsers of the TCP connection lists of the Linux and macOS kernels.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = parse::route_interface_index(bytes);
    assert!(parse::sockets(bytes).connections.len() <= bytes.len());
    assert!(parse::pcblist(bytes).len() <= bytes.len());
});
