//! Somebody else's file, read and written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(exchange) = longhaul_report::read(text) {
        assert_eq!(longhaul_report::read(&exchange.to_json()).ok(), Some(exchange));
    }
});
