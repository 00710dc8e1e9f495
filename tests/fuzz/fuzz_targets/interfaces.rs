//! Fuzzes the parsers of interface and process counters, on both systems.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    assert!(parse::net_dev(&text).len() <= text.len());
    let _ = (parse::wireless_dbm(&text, "wlan0"), parse::process_disk_bytes(&text), parse::ifmib(bytes));
});
