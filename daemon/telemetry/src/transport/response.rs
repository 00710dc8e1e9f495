//! Interprets the HTTP response of a collector. No I/O.
//!
//! OTLP 1.9, "OTLP/HTTP Response": with 2xx the data were accepted, and the body says what was rejected; 429,
//! 502, 503 and 504 ask for a retry; 400 rejects the data. All other codes are not about the data but about the
//! path to the collector (a wrong token, a wrong path, a proxy's page), so the data stay pending and are retried.

use std::time::Duration;

use jiff::fmt::rfc2822;
use longhaul_model::time::{DAY, Timestamp};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;

use crate::transport::message::Message;

/// Maximum delay that a collector can request.
pub(crate) const MAX_RETRY_AFTER: Duration = DAY;
/// Maximum number of characters kept of a collector's error message.
const MAX_MESSAGE_CHARS: usize = 300;
/// Media type of OTLP's protobuf encoding.
pub const PROTOBUF_MEDIA_TYPE: &str = "application/x-protobuf";

/// Result of sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportResult {
    /// The collector accepted the complete message.
    Accepted,
    /// The collector rejected a part of the message. The message must not be retried.
    PartiallyAccepted {
        /// Number of rejected spans or data points.
        rejected: u64,
        /// Reason given by the collector, or the error of the connection.
        reason: String,
    },
    /// The message was not accepted and should be retried later.
    RetryLater {
        /// Reason given by the collector, or the error of the connection.
        reason: String,
        /// Minimum delay requested by the collector. `None`: none requested.
        after: Option<Duration>,
    },
    /// The collector rejected the complete message permanently.
    Rejected {
        /// Reason given by the collector, or the error of the connection.
        reason: String,
    },
}

impl ExportResult {
    /// Returns the result of a message that was accepted except for a number of spans or data points, which is zero for most.
    pub(crate) fn accepted_except(rejected: i64, reason: &str) -> Self {
        match u64::try_from(rejected) {
            Ok(rejected @ 1..) => Self::PartiallyAccepted { rejected, reason: truncated(reason) },
            Ok(0) | Err(_) => Self::Accepted,
        }
    }
}

/// An HTTP response before interpretation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawResponse {
    /// HTTP status code.
    pub status: u16,
    /// Value of the header `Content-Type`.
    pub media_type: Option<String>,
    /// Value of the header `Retry-After`.
    pub retry_after: Option<String>,
    /// The response body, truncated if it is long.
    pub body: Vec<u8>,
}

/// Interprets the response to a message. `now` is the wall clock time, for dates in `Retry-After`.
pub fn classify(raw: &RawResponse, sent: &Message, now: Timestamp) -> ExportResult {
    match raw.status {
        200..=299 => classify_success(raw, sent),
        300..=399 => ExportResult::RetryLater {
            reason: format!(
                "{}: it redirects to another address, which is not followed; set the final address",
                raw.status
            ),
            after: None,
        },
        400 | 413 | 422 => ExportResult::Rejected { reason: response_text(raw) },
        _ => {
            let after = raw.retry_after.as_deref().and_then(|text| parse_retry_after(text, now));
            ExportResult::RetryLater { reason: response_text(raw), after }
        }
    }
}

/// Interprets a 2xx response. Only an OTLP response counts as accepted, because a proxy or the captive portal
/// of a hotel can also return a page with status 200.
fn classify_success(raw: &RawResponse, sent: &Message) -> ExportResult {
    let media_type =
        raw.media_type.as_deref().unwrap_or(PROTOBUF_MEDIA_TYPE).split(';').next().unwrap_or_default().trim();
    let is_empty = raw.body.is_empty();
    let partial = if media_type == PROTOBUF_MEDIA_TYPE { partial_success(&raw.body, sent) } else { None };
    match partial {
        None if is_empty && media_type.ends_with("json") => ExportResult::Accepted,
        None => {
            let reason = format!("{}, but not an OTLP response ({media_type})", raw.status);
            ExportResult::RetryLater { reason, after: None }
        }
        Some((rejected, reason)) => ExportResult::accepted_except(rejected, &reason),
    }
}

/// Returns the number of rejected values and the reason. `None`: the body is not the expected response message.
fn partial_success(body: &[u8], sent: &Message) -> Option<(i64, String)> {
    let found = match sent {
        Message::Traces(_) => ExportTraceServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_spans, partial.error_message)),
        Message::Metrics(_) => ExportMetricsServiceResponse::decode(body)
            .ok()?
            .partial_success
            .map(|partial| (partial.rejected_data_points, partial.error_message)),
    };
    Some(found.unwrap_or_default())
}

/// Returns the status code and the printable start of the body.
fn response_text(raw: &RawResponse) -> String {
    let is_readable = |c: &char| *c == ' ' || c.is_alphanumeric() || c.is_ascii_punctuation();
    let text: String = String::from_utf8_lossy(&raw.body).chars().filter(is_readable).collect();
    let text = truncated(text.trim());
    if text.is_empty() { raw.status.to_string() } else { format!("{}: {text}", raw.status) }
}

/// Returns the start of a message of a collector.
pub(crate) fn truncated(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Parses the header `Retry-After`: seconds or a date (RFC 9110, 10.2.3). The result is at most one day; a past
/// date gives zero. `None`: the value is invalid.
pub fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Timestamp::from_us(date.as_microsecond()).since(now).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceRequest,
    };
    use proptest::prelude::*;

    use super::*;

    fn spans() -> Message {
        Message::Traces(ExportTraceServiceRequest::default())
    }

    fn points() -> Message {
        Message::Metrics(ExportMetricsServiceRequest::default())
    }

    fn raw(code: u16) -> RawResponse {
        RawResponse { status: code, ..RawResponse::default() }
    }

    fn with_body(code: u16, media_type: &str, body: &[u8]) -> RawResponse {
        RawResponse { media_type: Some(media_type.to_owned()), body: body.into(), ..raw(code) }
    }

    #[test]
    fn only_an_otlp_response_counts_as_accepted() {
        let read = |raw: &RawResponse| classify(raw, &spans(), Timestamp::UNIX_EPOCH);
        assert_eq!(read(&raw(200)), ExportResult::Accepted);
        assert_eq!(read(&with_body(202, PROTOBUF_MEDIA_TYPE, b"")), ExportResult::Accepted);
        for page in [
            with_body(200, "text/html; charset=utf-8", b"<html>"),
            with_body(200, PROTOBUF_MEDIA_TYPE, b"<html>"),
        ] {
            assert!(matches!(read(&page), ExportResult::RetryLater { .. }), "{page:?}");
        }
    }

    #[test]
    fn partial_success_has_the_rejected_count() {
        let partial_success =
            Some(ExportTracePartialSuccess { rejected_spans: 3, error_message: "too old".into() });
        let body = ExportTraceServiceResponse { partial_success }.encode_to_vec();
        let result = classify(&with_body(200, PROTOBUF_MEDIA_TYPE, &body), &spans(), Timestamp::UNIX_EPOCH);
        assert_eq!(result, ExportResult::PartiallyAccepted { rejected: 3, reason: "too old".into() });
    }

    #[test]
    fn only_400_413_and_422_reject_the_data() {
        for code in [400, 413, 422] {
            assert!(
                matches!(
                    classify(&raw(code), &spans(), Timestamp::UNIX_EPOCH),
                    ExportResult::Rejected { .. }
                ),
                "{code}"
            );
        }
        for code in [301, 401, 403, 404, 408, 429, 500, 502, 503, 504] {
            assert!(
                matches!(
                    classify(&raw(code), &spans(), Timestamp::UNIX_EPOCH),
                    ExportResult::RetryLater { .. }
                ),
                "{code}"
            );
        }
        let reason =
            classify(&with_body(400, "text/plain", b"no \x00such\n thing"), &points(), Timestamp::UNIX_EPOCH);
        assert_eq!(reason, ExportResult::Rejected { reason: "400: no such thing".into() });
    }

    #[test]
    fn redirect_is_retried_later_and_names_the_next_step() {
        for code in [301, 302, 307, 308] {
            let found = classify(&raw(code), &spans(), Timestamp::from_us(0));
            let ExportResult::RetryLater { reason, after: None } = found else { panic!("{found:?}") };
            assert!(reason.contains("not followed; set the final address"), "{reason}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_up_to_one_day() {
        let seconds = Duration::from_secs;
        assert_eq!(parse_retry_after(" 120 ", Timestamp::UNIX_EPOCH), Some(seconds(120)));
        assert_eq!(
            parse_retry_after("99999999999999999999999", Timestamp::UNIX_EPOCH),
            Some(MAX_RETRY_AFTER)
        );
        // Example of RFC 9110: Fri, 31 Dec 1999 23:59:59 GMT is 946684799 s after the start of 1970.
        let at = |now_s: i64| {
            parse_retry_after("Fri, 31 Dec 1999 23:59:59 GMT", Timestamp::from_us(now_s * 1_000_000))
        };
        assert_eq!((at(946_684_789), at(946_684_800)), (Some(seconds(10)), Some(Duration::ZERO)));
        for bad in ["", "soon", "-1", "1.5", "1999-12-31"] {
            assert_eq!(parse_retry_after(bad, Timestamp::UNIX_EPOCH), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_response_is_classified_without_panic(
            status in any::<u16>(), retry_after in any::<Option<String>>(), media_type in any::<Option<String>>(),
            body in proptest::collection::vec(any::<u8>(), 0..200), us in any::<i64>(),
        ) {
            let raw = RawResponse { status, media_type, retry_after, body };
            let now = Timestamp::from_us(us);
            for sent in [spans(), points()] {
                if let ExportResult::RetryLater { after: Some(after), .. } = classify(&raw, &sent, now) {
                    prop_assert!(after <= MAX_RETRY_AFTER);
                }
            }
        }
    }
}
