//! Lines of the log as a collector takes them.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use prost::Message;
use tracing::Level;

use super::work::Place;
use crate::Added;
use crate::attributes::{self, attribute, text, whole};
use crate::time::nanoseconds;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// How grave.
    pub level: Level,
    /// What it says.
    pub message: String,
    /// Which part of longhaul says so.
    pub from: String,
    /// Its particulars, by name.
    pub particulars: Vec<(String, String)>,
    /// What the service was busy with; `None`: nothing that is told.
    pub within: Option<Place>,
}

/// Lines as a message.
pub(super) fn message((machine, added): (&str, &Added), lines: &[Line], dropped: u64) -> Vec<u8> {
    let log_records = lines.iter().enumerate().map(|(place, line)| {
        // That lines are missing is said on the first one after the gap.
        let missing = (place == 0 && dropped > 0).then(|| attribute("longhaul.log.dropped", whole(dropped)));
        LogRecord { attributes: particulars(line).chain(missing).collect(), ..record(line) }
    });
    let scope_logs = ScopeLogs {
        scope: Some(attributes::scope()),
        log_records: log_records.collect(),
        schema_url: attributes::SCHEMA.to_owned(),
    };
    let resource_logs = vec![ResourceLogs {
        resource: Some(attributes::resource(machine, added)),
        scope_logs: vec![scope_logs],
        schema_url: attributes::SCHEMA.to_owned(),
    }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

fn particulars(line: &Line) -> impl Iterator<Item = KeyValue> {
    let from = attribute("longhaul.log.from", text(line.from.clone()));
    std::iter::once(from)
        .chain(line.particulars.iter().map(|(key, value)| attribute(key, text(value.clone()))))
}

fn record(line: &Line) -> LogRecord {
    let severity = match line.level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    };
    LogRecord {
        time_unix_nano: nanoseconds(line.at_us),
        observed_time_unix_nano: nanoseconds(line.at_us),
        severity_number: severity.into(),
        severity_text: line.level.to_string(),
        body: Some(AnyValue { value: Some(text(line.message.clone())) }),
        trace_id: line.within.map(|place| place.trace.to_vec()).unwrap_or_default(),
        span_id: line.within.map(|place| place.span.to_vec()).unwrap_or_default(),
        ..LogRecord::default()
    }
}
