//! An exporter that waits while a round runs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Key;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::runtime::Runtime;

use crate::export_pause::ExportPause;
use crate::transport::grpc;

/// Attribute with the module that created a span.
const MODULE: &str = "longhaul.log.module";

/// Sends a batch only while the export is not paused.
///
/// The SDK's batch processors send from their own threads whenever a batch is full or old enough. During a round
/// that would disturb what is measured: compression and the network compete with the calls that are timed. A
/// blocked exporter blocks only the thread of its processor; spans and log lines go on being queued.
#[derive(Debug)]
pub struct PausableExporter<E> {
    exporter: E,
    pause: Arc<ExportPause>,
    /// Drives the connection of gRPC, which the thread of a processor does not.
    runtime: Runtime,
}

impl<E> PausableExporter<E> {
    /// Wraps the exporter that `build` returns.
    ///
    /// # Errors
    ///
    /// The error of `build`, or the one of the operating system if it refuses a runtime.
    pub fn new<F: From<io::Error>>(
        pause: &Arc<ExportPause>,
        build: impl FnOnce() -> Result<E, F>,
    ) -> Result<Self, F> {
        let runtime = grpc::runtime()?;
        let context = runtime.enter();
        let exporter = build()?;
        drop(context);
        Ok(Self { exporter, pause: Arc::clone(pause), runtime })
    }
}

impl<E: SpanExporter> SpanExporter for PausableExporter<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        // tracing-opentelemetry calls the module `target`, which in longhaul is a measured folder.
        let attributes = batch.iter_mut().flat_map(|span| &mut span.attributes);
        let modules = attributes.filter(|attribute| attribute.key.as_str() == "target");
        modules.for_each(|attribute| attribute.key = Key::from_static_str(MODULE));
        let _permit = self.pause.acquire();
        self.runtime.block_on(self.exporter.export(batch))
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for PausableExporter<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let _permit = self.pause.acquire();
        self.runtime.block_on(self.exporter.export(batch))
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    use opentelemetry::{KeyValue, SpanId, TraceId};

    use super::*;
    use crate::trace::SpanFrame;

    /// Counts the spans that have the attribute of longhaul for their module.
    #[derive(Debug, Default)]
    struct Counter(AtomicUsize);

    impl SpanExporter for Counter {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            let attributes = batch.iter().flat_map(|span| &span.attributes);
            let count = attributes.filter(|attribute| attribute.key.as_str() == MODULE).count();
            self.0.fetch_add(count, Ordering::SeqCst);
            Ok(())
        }
    }

    fn span() -> SpanData {
        let frame = SpanFrame {
            trace_id: TraceId::from(1),
            span_id: SpanId::from(2),
            parent: SpanId::INVALID,
            name: "round".into(),
            began_ns: 0,
            ended_ns: 1,
        };
        frame.with_attributes(vec![KeyValue::new("target", "longhaul_service")])
    }

    #[test]
    fn batch_waits_until_the_round_is_over() {
        let pause = Arc::new(ExportPause::default());
        let exporter = PausableExporter::new(&pause, || io::Result::Ok(Counter::default())).unwrap();
        let sent = || exporter.exporter.0.load(Ordering::SeqCst);
        std::thread::scope(|scope| {
            let guard = pause.pause(Duration::ZERO);
            let sending = scope.spawn(|| {
                let mut export = pin!(exporter.export(vec![span()]));
                assert!(export.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
            });
            assert_eq!((sent(), sending.is_finished()), (0, false));
            drop(guard);
            sending.join().unwrap();
        });
        assert_eq!(sent(), 1);
    }
}
