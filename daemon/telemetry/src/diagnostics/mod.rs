//! Sends the service's own spans and log lines to the collector, to diagnose longhaul itself, with the official
//! OpenTelemetry crates.
//!
//! They are not stored: what does not fit into the queue of a processor, and what a collector does not accept
//! after some attempts, is dropped. The log file still contains all log lines.

mod pausable_exporter;
mod public_records;
mod switch;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{ExporterBuildError, LogExporter, Protocol, SpanExporter};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{BatchConfigBuilder as LogBatchConfig, BatchLogProcessor, SdkLoggerProvider};
use opentelemetry_sdk::logs::{LogExporter as _, LogProcessor as _};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder as SpanBatchConfig, BatchSpanProcessor, SdkTracerProvider,
};
use opentelemetry_sdk::trace::{SpanExporter as _, SpanProcessor as _};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::attributes;
use crate::environment::{Compression, OtlpProtocol};
use crate::export_pause::ExportPause;
use crate::settings::{DiagnosticsEndpoints, OtlpEndpoint};
use crate::transport::connection::ConnectionError;
use crate::transport::grpc::GrpcTransport;
use crate::transport::http::HttpTransport;
use pausable_exporter::PausableExporter;
use public_records::PublicRecords;
use switch::Switch;

/// Maximum time to send what is queued when the export stops. The exporter must end within two seconds.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// An error when the export of the own spans and log lines is started.
#[derive(Debug, thiserror::Error)]
pub enum DiagnosticsError {
    /// The connection cannot be configured.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The system refuses what the threads that send need.
    #[error("the service's own log and spans cannot be sent: {0}")]
    Runtime(#[from] std::io::Error),
    /// The exporter does not accept its settings.
    #[error("the service's own log and spans cannot be sent: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// Settings that both signals share.
pub(crate) struct DiagnosticsSettings<'a> {
    /// Addresses of the collector.
    pub endpoints: &'a DiagnosticsEndpoints,
    /// Attributes of the resource.
    pub resource: Vec<KeyValue>,
    /// Time between two messages of a signal.
    pub interval: Duration,
}

/// The service's own spans and log lines. Nothing is recorded until the exporter starts it. Clones share the
/// state.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    spans: Switch<BatchSpanProcessor>,
    logs: Switch<PublicRecords<BatchLogProcessor>>,
}

impl Diagnostics {
    /// Returns the layer that records the spans and events of longhaul. Recording never waits for the collector.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracers = SdkTracerProvider::builder().with_span_processor(self.spans.clone()).build();
        let loggers = SdkLoggerProvider::builder().with_log_processor(self.logs.clone()).build();
        // A filter that depends on the switch instead of a layer that is exchanged: a span that was entered
        // must also be exited, or its context would stay active on its thread.
        let (spans, logs) = (self.spans.clone(), self.logs.clone());
        tracing_opentelemetry::layer()
            .with_tracer(tracers.tracer_with_scope(attributes::scope()))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(dynamic_filter_fn(move |from, _| from.is_span() && spans.is_on() && is_own(from)))
            .and_then(OpenTelemetryTracingBridge::new(&loggers).with_filter(dynamic_filter_fn(
                move |from, _| from.is_event() && logs.is_on() && is_own(from),
            )))
    }

    /// Starts to record and to send. Each signal has a thread of its own, which sends only while `pause` permits
    /// it.
    pub(crate) fn start(
        &self,
        settings: &DiagnosticsSettings<'_>,
        pause: &Arc<ExportPause>,
    ) -> Result<(), DiagnosticsError> {
        let resource = Resource::builder_empty()
            .with_schema_url(settings.resource.clone(), attributes::SCHEMA_URL)
            .build();
        let mut exporter = PausableExporter::new(pause, || span_exporter(&settings.endpoints.spans))?;
        exporter.set_resource(&resource);
        let config = SpanBatchConfig::default().with_scheduled_delay(settings.interval).build();
        self.spans.turn_on(BatchSpanProcessor::new(exporter, config));
        let mut exporter = PausableExporter::new(pause, || log_exporter(&settings.endpoints.logs))?;
        exporter.set_resource(&resource);
        let config = LogBatchConfig::default().with_scheduled_delay(settings.interval).build();
        let sender = BatchLogProcessor::builder(exporter).with_batch_config(config).build();
        self.logs.turn_on(PublicRecords::new(sender));
        Ok(())
    }

    /// Stops to record, and sends what is queued if the collector answers soon and no round runs.
    pub(crate) fn stop(&self) {
        // What cannot be sent in time is dropped, like any other part of these signals.
        let _ = self.spans.turn_off().map(|spans| spans.shutdown_with_timeout(FLUSH_TIMEOUT));
        let _ = self.logs.turn_off().map(|logs| logs.shutdown_with_timeout(FLUSH_TIMEOUT));
    }
}

/// Returns true for spans and events of longhaul. Those of the export itself are left out, because sending them
/// would create new ones.
fn is_own(from: &Metadata<'_>) -> bool {
    from.target().starts_with("longhaul") && !from.target().starts_with("longhaul_telemetry")
}

fn span_exporter(endpoint: &OtlpEndpoint) -> Result<SpanExporter, DiagnosticsError> {
    Ok(match endpoint.protocol {
        OtlpProtocol::HttpProtobuf => over_http(SpanExporter::builder().with_http(), endpoint)?.build()?,
        OtlpProtocol::Grpc => over_grpc(SpanExporter::builder().with_tonic(), endpoint)?.build()?,
    })
}

fn log_exporter(endpoint: &OtlpEndpoint) -> Result<LogExporter, DiagnosticsError> {
    Ok(match endpoint.protocol {
        OtlpProtocol::HttpProtobuf => over_http(LogExporter::builder().with_http(), endpoint)?.build()?,
        OtlpProtocol::Grpc => over_grpc(LogExporter::builder().with_tonic(), endpoint)?.build()?,
    })
}

fn over_http<B: WithHttpConfig + WithExportConfig>(
    builder: B,
    endpoint: &OtlpEndpoint,
) -> Result<B, ConnectionError> {
    let builder = builder.with_http_client(HttpTransport::new(endpoint)?).with_protocol(Protocol::HttpBinary);
    Ok(builder.with_endpoint(&endpoint.url).with_timeout(endpoint.timeout))
}

fn over_grpc<B: WithTonicConfig + WithExportConfig>(
    builder: B,
    endpoint: &OtlpEndpoint,
) -> Result<B, ConnectionError> {
    let transport = GrpcTransport::new(endpoint)?;
    let builder = builder.with_channel(transport.channel()).with_metadata(transport.metadata());
    let builder = builder.with_timeout(endpoint.timeout);
    Ok(match endpoint.compression {
        Compression::Gzip => builder.with_compression(opentelemetry_otlp::Compression::Gzip),
        Compression::None => builder,
    })
}
