//! Removes what may be private from the log lines that are sent: the log names paths, hosts and users.

use std::time::Duration;

use opentelemetry::logs::{AnyValue, LogRecord, Logger, LoggerProvider, Severity};
use opentelemetry::{InstrumentationScope, Key};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogProcessor, SdkLogRecord, SdkLogger, SdkLoggerProvider};

/// Fields with text that longhaul defines itself, and names of targets, which every span has. Numbers are never private.
const PUBLIC_FIELDS: [&str; 8] =
    ["kind", "outcome", "problem", "signal", "status", "target_name", "version", "workload"];

/// Passes on each log line with its public fields only. The text of a line is constant: what differs is in its fields.
#[derive(Debug)]
pub struct PublicRecords<P> {
    processor: P,
    /// Creates empty records.
    logger: SdkLogger,
}

impl<P> PublicRecords<P> {
    /// Returns a processor that passes lines on to another one.
    pub fn new(processor: P) -> Self {
        Self { processor, logger: SdkLoggerProvider::builder().build().logger("") }
    }

    /// Returns the public part of a line.
    fn public(&self, record: &SdkLogRecord) -> SdkLogRecord {
        let mut public = self.logger.create_log_record();
        if let (Some(name), Some(severity)) = (record.severity_text(), record.severity_number()) {
            public.set_severity_text(name);
            public.set_severity_number(severity);
        }
        if let Some(target) = record.target() {
            public.set_target(target.clone());
        }
        if let Some(body) = record.body() {
            public.set_body(body.clone());
        }
        if let Some(context) = record.trace_context() {
            public.set_trace_context(context.trace_id, context.span_id, context.trace_flags);
        }
        record.timestamp().into_iter().for_each(|at| public.set_timestamp(at));
        record.observed_timestamp().into_iter().for_each(|at| public.set_observed_timestamp(at));
        public.add_attributes(record.attributes_iter().filter(|(key, value)| is_public(key, value)).cloned());
        public
    }
}

fn is_public(key: &Key, value: &AnyValue) -> bool {
    match value {
        AnyValue::Int(_) | AnyValue::Double(_) | AnyValue::Boolean(_) => true,
        _ => PUBLIC_FIELDS.contains(&key.as_str()),
    }
}

impl<P: LogProcessor> LogProcessor for PublicRecords<P> {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        self.processor.emit(&mut self.public(record), scope);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.processor.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.processor.shutdown_with_timeout(timeout)
    }

    fn event_enabled(&self, level: Severity, target: &str, name: Option<&str>) -> bool {
        self.processor.event_enabled(level, target, name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// Keeps the lines that it is passed.
    #[derive(Debug, Clone, Default)]
    struct Collector(Arc<Mutex<Vec<SdkLogRecord>>>);

    impl LogProcessor for Collector {
        fn emit(&self, record: &mut SdkLogRecord, _scope: &InstrumentationScope) {
            self.0.lock().push(record.clone());
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }
    }

    #[test]
    fn text_is_sent_only_in_fields_that_longhaul_defines() {
        let collector = Collector::default();
        let processor = PublicRecords::new(collector.clone());
        let provider = SdkLoggerProvider::builder().with_log_processor(processor).build();
        let logger = provider.logger("test");
        let mut record = logger.create_log_record();
        record.set_body("a problem".into());
        record.add_attribute("path", "/home/ada/secret.sqlite");
        record.add_attribute("problem", "database-damaged");
        record.add_attribute("round", 7);
        logger.emit(record);
        let sent = collector.0.lock();
        let fields: Vec<&str> = sent[0].attributes_iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(fields, ["problem", "round"]);
        assert_eq!(sent[0].body(), Some(&"a problem".into()));
    }
}
