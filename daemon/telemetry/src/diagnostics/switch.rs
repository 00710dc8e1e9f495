//! A processor that can be replaced while the service runs: the configuration of the export may change, but the
//! layers of the log are set up once.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::logs::Severity;
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogProcessor, SdkLogRecord};
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use parking_lot::{RwLock, RwLockReadGuard};

/// Passes everything to the current processor. Without one, everything is dropped. Clones share the processor.
#[derive(Debug)]
pub struct Switch<P>(Arc<RwLock<Option<P>>>);

impl<P> Clone for Switch<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P> Default for Switch<P> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P> Switch<P> {
    /// Returns true if there is a processor.
    pub fn is_on(&self) -> bool {
        self.current().is_some()
    }

    /// Sets the processor.
    pub fn turn_on(&self, processor: P) {
        *self.0.write() = Some(processor);
    }

    /// Removes the processor and returns it. `None`: there was none.
    pub fn turn_off(&self) -> Option<P> {
        self.0.write().take()
    }

    fn current(&self) -> RwLockReadGuard<'_, Option<P>> {
        self.0.read()
    }
}

impl<P: SpanProcessor> SpanProcessor for Switch<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.current().iter().for_each(|processor| processor.on_start(span, context));
    }

    fn on_end(&self, span: SpanData) {
        if let Some(processor) = &*self.current() {
            processor.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.current().as_ref().map_or(Ok(()), SpanProcessor::force_flush)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.turn_off().map_or(Ok(()), |processor| processor.shutdown_with_timeout(timeout))
    }
}

impl<P: LogProcessor> LogProcessor for Switch<P> {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        self.current().iter().for_each(|processor| processor.emit(record, scope));
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.current().as_ref().map_or(Ok(()), LogProcessor::force_flush)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.turn_off().map_or(Ok(()), |processor| processor.shutdown_with_timeout(timeout))
    }

    fn event_enabled(&self, _level: Severity, _target: &str, _name: Option<&str>) -> bool {
        self.is_on()
    }
}
