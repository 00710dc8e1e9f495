//! What an answer of a collector means. Pure.
//!
//! OTLP 1.9, "OTLP/HTTP Response": 2xx took it, with what it left out in the body; 429, 502, 503 and 504 want it later; 400
//! does not want it at all. Everything else is not about the data but about the way to the collector (a wrong token, a
//! wrong path, a proxy's page), and nothing is given up for it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use longhaul_store::Signal;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

/// The longest wait that a collector may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);
/// So much of a collector's words is kept.
const MOST_WORDS: usize = 300;
/// The media type of OTLP's binary form.
pub const PROTOBUF: &str = "application/x-protobuf";

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// All of it was taken.
    Taken,
    /// Some of it was not taken, and must not be sent again.
    TakenInPart {
        /// How many values were not taken.
        refused: u64,
        /// Why.
        why: String,
    },
    /// It is to be tried again, not before that time has passed if one is given.
    Later {
        /// Why.
        why: String,
        /// What the collector asks for.
        after: Option<Duration>,
    },
    /// It is not taken, and will not be.
    Refused {
        /// Why.
        why: String,
    },
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Raw {
    /// The status code.
    pub code: u16,
    /// The header `Content-Type`.
    pub media_type: Option<String>,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The body, or its begin.
    pub body: Vec<u8>,
}

/// Which response message is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// That of the trace service.
    Traces,
    /// That of the metrics service.
    Metrics,
    /// That of the logs service.
    Logs,
}

impl Expected {
    /// That of the service which takes a signal.
    pub const fn of(signal: Signal) -> Self {
        match signal {
            Signal::Traces => Self::Traces,
            Signal::Metrics | Signal::Samples => Self::Metrics,
        }
    }
}

/// What an answer means. `now_us` is the wall clock, for dates in `Retry-After`.
pub fn read(raw: &Raw, expected: Expected, now_us: i64) -> Answer {
    match raw.code {
        200..=299 => taken(raw, expected),
        400 | 413 | 422 => Answer::Refused { why: said(raw) },
        _ => {
            let after = raw.retry_after.as_deref().and_then(|text| retry_after(text, now_us));
            Answer::Later { why: said(raw), after }
        }
    }
}

/// A page of a proxy or of a hotel's network answers 200 too: only what speaks OTLP has taken anything.
fn taken(raw: &Raw, expected: Expected) -> Answer {
    let media_type =
        raw.media_type.as_deref().unwrap_or(PROTOBUF).split(';').next().unwrap_or_default().trim();
    let is_empty = raw.body.is_empty();
    let partial = if media_type == PROTOBUF { partial(&raw.body, expected) } else { None };
    match partial {
        None if is_empty && media_type.ends_with("json") => Answer::Taken,
        None => {
            let why = format!("{} with something that is no answer of a collector ({media_type})", raw.code);
            Answer::Later { why, after: None }
        }
        Some((0, _)) => Answer::Taken,
        Some((refused, why)) => Answer::TakenInPart { refused, why: shortened(&why) },
    }
}

/// How many values were refused, and why; `None`: the body is no such message.
fn partial(body: &[u8], expected: Expected) -> Option<(u64, String)> {
    let found = match expected {
        Expected::Traces => ExportTraceServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_spans, partial.error_message)),
        Expected::Metrics => ExportMetricsServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_data_points, partial.error_message)),
        Expected::Logs => ExportLogsServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_log_records, partial.error_message)),
    };
    let (refused, why) = found.unwrap_or_default();
    Some((u64::try_from(refused).unwrap_or(0), why))
}

/// The status and the readable begin of the body.
fn said(raw: &Raw) -> String {
    let is_readable = |c: &char| *c == ' ' || c.is_alphanumeric() || c.is_ascii_punctuation();
    let text: String = String::from_utf8_lossy(&raw.body).chars().filter(is_readable).collect();
    let text = shortened(text.trim());
    if text.is_empty() { raw.code.to_string() } else { format!("{}: {text}", raw.code) }
}

fn shortened(text: &str) -> String {
    text.chars().take(MOST_WORDS).collect()
}

/// The header `Retry-After`: seconds, or a date (RFC 9110, 10.2.3). At most a day; a date that has passed is no wait.
pub fn retry_after(text: &str, now_us: i64) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(LONGEST_WAIT));
    }
    let date: Timestamp = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait_us = date.as_microsecond().saturating_sub(now_us).max(0);
    Some(Duration::from_micros(wait_us.cast_unsigned()).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
    use proptest::prelude::*;

    use super::*;

    fn raw(code: u16) -> Raw {
        Raw { code, ..Raw::default() }
    }

    fn with_body(code: u16, media_type: &str, body: &[u8]) -> Raw {
        Raw { media_type: Some(media_type.to_owned()), body: body.into(), ..raw(code) }
    }

    #[test]
    fn only_what_speaks_otlp_has_taken_anything() {
        let read = |raw: &Raw| read(raw, Expected::Traces, 0);
        assert_eq!(read(&raw(200)), Answer::Taken);
        assert_eq!(read(&with_body(202, PROTOBUF, b"")), Answer::Taken);
        for page in
            [with_body(200, "text/html; charset=utf-8", b"<html>"), with_body(200, PROTOBUF, b"<html>")]
        {
            assert!(matches!(read(&page), Answer::Later { .. }), "{page:?}");
        }
    }

    #[test]
    fn what_was_left_out_is_counted() {
        let partial_success =
            Some(ExportTracePartialSuccess { rejected_spans: 3, error_message: "too old".into() });
        let body = ExportTraceServiceResponse { partial_success }.encode_to_vec();
        let answer = read(&with_body(200, PROTOBUF, &body), Expected::Traces, 0);
        assert_eq!(answer, Answer::TakenInPart { refused: 3, why: "too old".into() });
    }

    #[test]
    fn only_what_is_about_the_data_gives_the_data_up() {
        for code in [400, 413, 422] {
            assert!(matches!(read(&raw(code), Expected::Traces, 0), Answer::Refused { .. }), "{code}");
        }
        for code in [301, 401, 403, 404, 408, 429, 500, 502, 503, 504] {
            assert!(matches!(read(&raw(code), Expected::Traces, 0), Answer::Later { .. }), "{code}");
        }
        let why = read(&with_body(400, "text/plain", b"no \x00such\n thing"), Expected::Metrics, 0);
        assert_eq!(why, Answer::Refused { why: "400: no such thing".into() });
    }

    #[test]
    fn a_wait_is_seconds_or_a_date_and_at_most_a_day() {
        let seconds = Duration::from_secs;
        assert_eq!(retry_after(" 120 ", 0), Some(seconds(120)));
        assert_eq!(retry_after("99999999999999999999999", 0), Some(LONGEST_WAIT));
        // The example of RFC 9110: Fri, 31 Dec 1999 23:59:59 GMT is 946684799 s after 1970.
        let at = |now_s: i64| retry_after("Fri, 31 Dec 1999 23:59:59 GMT", now_s * 1_000_000);
        assert_eq!((at(946_684_789), at(946_684_800)), (Some(seconds(10)), Some(Duration::ZERO)));
        for bad in ["", "soon", "-1", "1.5", "1999-12-31"] {
            assert_eq!(retry_after(bad, 0), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_header_and_any_body_are_read_without_panic(
            code in any::<u16>(), header in any::<Option<String>>(), media_type in any::<Option<String>>(),
            body in proptest::collection::vec(any::<u8>(), 0..200), now_us in any::<i64>(),
        ) {
            let raw = Raw { code, media_type, retry_after: header, body };
            for expected in [Expected::Traces, Expected::Metrics, Expected::Logs] {
                if let Answer::Later { after: Some(after), .. } = read(&raw, expected, now_us) {
                    prop_assert!(after <= LONGEST_WAIT);
                }
            }
        }
    }
}
