//! What the export reads from others: headers, variables, addresses, answers of a collector.
#![no_main]

use longhaul_telemetry::answer::{self, Expected, Raw};
use longhaul_telemetry::endpoint;
use longhaul_telemetry::environment::Environment;
use longhaul_telemetry::headers::Headers;

libfuzzer_sys::fuzz_target!(|input: (u16, String, Vec<u8>, i64)| {
    let (code, text, body, now_us) = input;
    for headers in [Headers::from_variable(&text), Headers::from_file(&text)].iter().flatten() {
        assert!(headers.iter().all(|(name, value)| !name.contains(['\r', '\n']) && !value.contains(['\r', '\n'])));
    }
    let names = ["ENDPOINT", "HEADERS", "PROTOCOL", "COMPRESSION", "TIMEOUT"].map(|name| format!("OTEL_EXPORTER_OTLP_{name}"));
    let environment = Environment::of(names.map(|name| (name, text.clone())));
    let _ = (environment.headers("traces"), environment.check_protocol("traces"), environment.compression("traces"));
    let _ = (environment.timeout("traces"), environment.attributes(), endpoint::checked(&text));
    let raw = Raw { code, media_type: Some(text.clone()), retry_after: Some(text), body: body.clone() };
    for expected in [Expected::Traces, Expected::Metrics, Expected::Logs] {
        let _ = answer::read(&raw, expected, now_us);
        let _ = answer::read(&Raw { media_type: None, ..raw.clone() }, expected, now_us);
    }
});
