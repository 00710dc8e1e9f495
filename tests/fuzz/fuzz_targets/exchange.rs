//! Fuzzes the exchange file of another user: what was read is unchanged after writing and reading it again.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(exchange) = longhaul_view::read(text) {
        assert_eq!(longhaul_view::read(&exchange.to_json()).ok(), Some(exchange));
    }
});
