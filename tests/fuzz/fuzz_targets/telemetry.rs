//! Fuzzes the telemetry parsers: headers, environment variables, endpoints and responses of a collector.
#![no_main]

use longhaul_model::Timestamp;
use longhaul_telemetry::endpoint;
use longhaul_telemetry::environment::EnvironmentVariables;
use longhaul_telemetry::headers::Headers;
use longhaul_telemetry::transport::message::Message;
use longhaul_telemetry::transport::response::{RawResponse, classify};

libfuzzer_sys::fuzz_target!(|input: (u16, String, Vec<u8>, i64)| {
    let (status, text, body, now) = input;
    let now = Timestamp::from_us(now);
    for headers in [Headers::from_variable(&text), Headers::from_file(&text)].iter().flatten() {
        assert!(
            headers.iter().all(|(name, value)| !name.contains(['\r', '\n']) && !value.contains(['\r', '\n']))
        );
    }
    let names = ["ENDPOINT", "HEADERS", "PROTOCOL", "COMPRESSION", "TIMEOUT"]
        .map(|name| format!("OTEL_EXPORTER_OTLP_{name}"));
    let environment = EnvironmentVariables::from_pairs(names.map(|name| (name, text.clone())));
    let _ =
        (environment.headers("traces"), environment.protocol("traces"), environment.compression("traces"));
    let _ = (environment.timeout("traces"), environment.attributes(), endpoint::validate(&text));
    let raw =
        RawResponse { status, media_type: Some(text.clone()), retry_after: Some(text), body: body.clone() };
    for sent in [Message::Traces(Default::default()), Message::Metrics(Default::default())] {
        let _ = classify(&raw, &sent, now);
        let _ = classify(&RawResponse { media_type: None, ..raw.clone() }, &sent, now);
    }
});
