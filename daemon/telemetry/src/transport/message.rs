//! The messages that are sent for stored rounds and samples.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

/// A message of OTLP.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Spans.
    Traces(ExportTraceServiceRequest),
    /// Data points.
    Metrics(ExportMetricsServiceRequest),
}

impl Message {
    /// Returns the message in OTLP's protobuf encoding.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Traces(request) => request.encode_to_vec(),
            Self::Metrics(request) => request.encode_to_vec(),
        }
    }
}
