//! The thread that sends stored rounds and samples to a collector. It sends only between rounds, never during
//! one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use longhaul_measure::command_thread::CommandThread;
use longhaul_measure::platform;
use longhaul_model::draw::draw;
use longhaul_model::status::{ExportStatus, SignalStatus};
use longhaul_model::{Hint, Timestamp};
use longhaul_store::{DeliveryStatus, OutboxStatus, Reader, SharedWriter, Signal};
use parking_lot::Mutex;

use crate::attributes;
use crate::batch::BatchBuilder;
use crate::check_results::CheckResults;
use crate::current_state::CurrentState;
use crate::diagnostics::{Diagnostics, DiagnosticsSettings};
use crate::export_pause::ExportPause;
use crate::retry::{Disposition, RetryState};
use crate::settings::ExportSettings;
use crate::transport::sender::Sender;

/// Interval at which the database is checked for finished rounds while sending is paused.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of items in a message.
const MAX_ITEMS: usize = 32;
/// Maximum pause between two messages while the queue is not empty.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// The part of the service's state that the exporter needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceView {
    /// Start of the next round. `None`: no round is planned.
    pub next_round: Option<Timestamp>,
    /// Current state, which is sent as metrics.
    pub state: CurrentState,
}

/// Dependencies of the exporter.
pub struct ExporterDeps {
    /// Path of the database.
    pub database: PathBuf,
    /// Writer of the database, which stores the delivery status.
    pub writer: SharedWriter,
    /// Pauses the export during a round.
    pub export_pause: Arc<ExportPause>,
    /// Returns the state of the service. `None`: the service has not reported its state yet.
    pub service_view: Box<dyn Fn() -> Option<ServiceView> + Send>,
    /// The service's own log lines and spans.
    pub diagnostics: Diagnostics,
    /// Called with the new status after every change.
    pub on_status: Box<dyn Fn(ExportStatus) + Send>,
}

/// Handle of the exporter thread.
pub struct Exporter {
    thread: CommandThread<Result<Option<ExportSettings>, String>>,
    status: Arc<Mutex<ExportStatus>>,
}

impl Exporter {
    /// Starts the thread. It sends nothing until [`Exporter::configure`] is called. If it panics, `report` gets a text that says so.
    ///
    /// # Errors
    ///
    /// The error of the operating system if no thread can be created.
    pub fn start(deps: ExporterDeps, report: impl FnOnce(String) + Send + 'static) -> std::io::Result<Self> {
        let status = Arc::new(Mutex::new(ExportStatus::default()));
        let shared = Arc::clone(&status);
        let work = |configs: &Receiver<_>| {
            let mut worker = ExporterThread {
                deps,
                status: shared,
                pipelines: vec![],
                machine: String::new(),
                settings: None,
                last_state_sent_ns: None,
                iterations: 0,
            };
            worker.run(configs);
        };
        let thread = Builder::new().name("telemetry".to_owned()).stack_size(1 << 20);
        Ok(Self { thread: CommandThread::start(thread, work, report)?, status })
    }

    /// Applies new settings. `Ok(None)`: nothing is exported. `Err`: the reason why the settings are invalid;
    /// the export stops and the status shows the reason.
    pub fn configure(&self, settings: Result<Option<ExportSettings>, String>) {
        self.thread.send(settings);
    }

    /// Returns the current status of the export.
    pub fn status(&self) -> ExportStatus {
        self.status.lock().clone()
    }

    /// Stops the thread. Returns within two seconds, even if the collector does not respond. A message in flight is repeated
    /// after the next start.
    pub fn stop(&self) {
        self.thread.stop();
    }
}

/// State of the export of one signal.
struct SignalPipeline {
    signal: Signal,
    sender: Sender,
    batch_builder: BatchBuilder,
    retry: RetryState,
    outbox: OutboxStatus,
    next_try: Option<Timestamp>,
    /// Reason why the collector rejected the latest current state. `None`: it did not.
    state_rejection: Option<String>,
}

struct ExporterThread {
    deps: ExporterDeps,
    status: Arc<Mutex<ExportStatus>>,
    pipelines: Vec<SignalPipeline>,
    machine: String,
    settings: Option<ExportSettings>,
    /// Time at which the current state was last sent, in nanoseconds of the monotonic clock. `None`: never.
    last_state_sent_ns: Option<u64>,
    iterations: u64,
}

impl ExporterThread {
    fn run(&mut self, configs: &Receiver<Result<Option<ExportSettings>, String>>) {
        let mut wait = None;
        loop {
            let settings = match wait {
                None => configs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => configs.recv_timeout(wait),
            };
            match settings {
                Ok(settings) => self.configure(settings),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.deps.diagnostics.stop(),
            }
            wait = self.run_due();
        }
    }

    fn configure(&mut self, settings: Result<Option<ExportSettings>, String>) {
        let is_new = settings.as_ref().ok() != Some(&self.settings);
        let built = settings.and_then(|settings| {
            if is_new {
                self.build_pipelines(settings.as_ref())?;
            }
            Ok(settings)
        });
        let problem = match built {
            Ok(settings) => {
                self.settings = settings;
                None
            }
            Err(problem) => {
                (self.pipelines, self.settings) = (vec![], None);
                self.deps.diagnostics.stop();
                tracing::warn!(problem, "nothing is exported");
                Some(problem)
            }
        };
        self.status.lock().problem = problem;
        self.publish();
    }

    fn build_pipelines(&mut self, settings: Option<&ExportSettings>) -> Result<(), String> {
        self.pipelines.clear();
        self.deps.diagnostics.stop();
        let Some(settings) = settings else { return Ok(()) };
        let text = |error: longhaul_store::Error| error.one_line();
        let reader = Reader::open(&self.deps.database).map_err(text)?;
        self.machine = reader.machine_id().map_err(text)?.unwrap_or_default();
        for signal in Signal::ALL {
            let Some(endpoint) = settings.endpoint(signal) else { continue };
            self.pipelines.push(SignalPipeline {
                signal,
                sender: Sender::new(endpoint).map_err(|error| error.to_string())?,
                batch_builder: BatchBuilder::new(
                    signal,
                    &self.machine,
                    &settings.attributes,
                    settings.temporality,
                ),
                retry: RetryState::default(),
                outbox: reader.outbox_status(signal).map_err(text)?,
                next_try: None,
                state_rejection: None,
            });
        }
        let Some(endpoints) = &settings.diagnostics else { return Ok(()) };
        let resource = attributes::resource_attributes(&self.machine, &settings.attributes);
        let diagnostics = DiagnosticsSettings { endpoints, resource, interval: settings.interval };
        let started = self.deps.diagnostics.start(&diagnostics, &self.deps.export_pause);
        started.map_err(|error| error.to_string())
    }

    /// Sends whatever is due. Returns the time until the next call is needed. `None`: wait for new settings.
    fn run_due(&mut self) -> Option<Duration> {
        let interval = self.settings.as_ref()?.interval;
        let view = (self.deps.service_view)();
        self.deps.export_pause.set_next_round(view.as_ref().and_then(|view| view.next_round));
        let (Some(view), Some(_)) = (view, self.deps.export_pause.try_acquire()) else {
            return Some(interval.min(POLL_INTERVAL));
        };
        let start = Instant::now();
        let has_more = match self.send_stored() {
            Ok(has_more) => has_more,
            Err(error) => {
                tracing::warn!(error = error.one_line(), "the export cannot read or update the database");
                false
            }
        };
        self.send_current_state(&view, interval);
        self.publish();
        // While the queue is not empty, the thread pauses as long as it worked, up to `MAX_PAUSE`, so that
        // catching up does not use all of a processor.
        let waits =
            self.pipelines.iter().map(|pipeline| pipeline.retry.time_until_due(platform::monotonic_ns()));
        let retry = waits.filter(|wait| !wait.is_zero()).min().unwrap_or(interval);
        Some(if has_more { start.elapsed().min(MAX_PAUSE) } else { retry.min(interval) })
    }

    /// Sends one message of each signal that is due. Returns true if there is more to send.
    fn send_stored(&mut self) -> longhaul_store::Result<bool> {
        let reader = Reader::open(&self.deps.database)?;
        let retention = self.settings.as_ref().map(|settings| settings.retention).unwrap_or_default();
        let Some(writer) = self.deps.writer.current() else { return Ok(false) };
        let jitter = self.jitter();
        let mut results = vec![];
        for pipeline in &mut self.pipelines {
            let Some(_permit) = self.deps.export_pause.try_acquire() else { break };
            results.push(pipeline.send_next(&reader, &writer, retention, jitter));
        }
        // Only now: a row of one signal that cannot be read must not hold back the others until they expire.
        results.into_iter().try_fold(false, |has_more, result| Ok(has_more | result?))
    }

    /// Sends the current state once per interval. A failed message is not repeated, because the next one is
    /// more recent.
    fn send_current_state(&mut self, view: &ServiceView, interval: Duration) {
        let now_ns = platform::monotonic_ns();
        let is_early = |sent_ns: u64| u128::from(now_ns - sent_ns) < interval.as_nanos();
        let jitter = self.jitter();
        let signals = self.pipelines.iter().map(SignalPipeline::status).collect();
        let Some(pipeline) = self.pipelines.iter_mut().find(|pipeline| pipeline.signal == Signal::Metrics)
        else {
            return;
        };
        if self.last_state_sent_ns.is_some_and(is_early) || !pipeline.retry.is_due(now_ns) {
            return;
        }
        let Some(_permit) = self.deps.export_pause.try_acquire() else { return };
        self.last_state_sent_ns = Some(now_ns);
        let at = platform::wall_clock();
        // Without the database, the rest of the state is still worth sending.
        let checks = Reader::open(&self.deps.database).and_then(|reader| CheckResults::read(&reader, at));
        let now = CurrentState { at, signals, checks: checks.unwrap_or_default(), ..view.state.clone() };
        let response = pipeline.sender.send(&pipeline.batch_builder.current_state_message(&now));
        // The response also shows whether the collector is reachable. The message itself is not retried.
        let disposition = pipeline.retry.on_health_check(&response, platform::monotonic_ns(), jitter);
        pipeline.note_state_delivery(disposition);
        pipeline.update_next_try();
    }

    /// Returns a random number from 0 to 1 for the retry delay, so that many machines do not retry at the same
    /// time.
    fn jitter(&mut self) -> f64 {
        self.iterations += 1;
        draw(platform::monotonic_ns(), 0x6a69, self.iterations) as f64 / u64::MAX as f64
    }

    fn publish(&self) {
        let mut status = self.status.lock();
        status.signals = self.pipelines.iter().map(SignalPipeline::status).collect();
        (self.deps.on_status)(status.clone());
    }
}

impl SignalPipeline {
    /// Sends the next message of this signal if it is due. Returns true if more can be sent immediately.
    fn send_next(
        &mut self,
        reader: &Reader,
        writer: &longhaul_store::Writer,
        retention: Duration,
        jitter: f64,
    ) -> longhaul_store::Result<bool> {
        let (now_ns, now) = (platform::monotonic_ns(), platform::wall_clock());
        self.outbox = reader.outbox_status(self.signal)?;
        if self.outbox.pending == 0 || !self.retry.is_due(now_ns) {
            return Ok(false);
        }
        writer.expire(self.signal, now - retention, now)?;
        let limit = self.retry.max_items(MAX_ITEMS);
        let items = reader.pending_items(self.signal, u32::try_from(limit).unwrap_or(u32::MAX))?;
        let Some(batch) = self.batch_builder.build(reader, &items)? else {
            self.outbox = reader.outbox_status(self.signal)?;
            return Ok(false);
        };
        let response = self.sender.send(&batch.message);
        let disposition =
            self.retry.on_response(&response, batch.items.len(), platform::monotonic_ns(), jitter);
        let is_final = disposition != Disposition::Retry;
        if let Disposition::Final(status) = disposition {
            log_delivery(self.signal, &batch.items, &status);
            writer.record_delivery(self.signal, batch.items, status, platform::wall_clock())?;
            self.batch_builder = batch.next_builder;
        }
        self.outbox = reader.outbox_status(self.signal)?;
        self.update_next_try();
        Ok(self.outbox.pending > 0 && (is_final || self.next_try.is_none()))
    }

    /// Keeps the reason why the current state was rejected, and logs the first of several rejections.
    fn note_state_delivery(&mut self, disposition: Disposition) {
        let rejection = match disposition {
            Disposition::Retry => return,
            Disposition::Final(DeliveryStatus::Rejected(reason)) => Some(reason),
            Disposition::Final(DeliveryStatus::Sent | DeliveryStatus::Expired) => None,
        };
        if let (Some(reason), None) = (&rejection, &self.state_rejection) {
            tracing::warn!(reason, "the collector rejected the current state");
        }
        self.state_rejection = rejection;
    }

    fn update_next_try(&mut self) {
        let wait = self.retry.time_until_due(platform::monotonic_ns());
        self.next_try = (!wait.is_zero()).then(|| platform::wall_clock() + wait);
    }

    fn status(&self) -> SignalStatus {
        let stored = &self.outbox;
        let of_state = self.state_rejection.as_ref().map(|reason| format!("current state: {reason}"));
        let of_item = stored
            .last_rejection
            .as_ref()
            .map(|rejection| format!("{}: {}", item_label(self.signal, rejection.item), rejection.reason));
        let rejections: Vec<String> = of_item.into_iter().chain(of_state).collect();
        SignalStatus {
            name: self.signal.name().to_owned(),
            endpoint: self.sender.display_url(),
            pending: stored.pending,
            sent: stored.sent,
            rejected: stored.rejected,
            expired: stored.expired,
            last_sent_us: stored.last_sent,
            last_rejection: (!rejections.is_empty()).then(|| rejections.join("; ")),
            last_failure: self.retry.failure_reason().map(ToOwned::to_owned),
            next_try_us: self.next_try,
        }
    }
}

/// Returns the name of an item for messages: the number of the round, or the start of the samples.
fn item_label(signal: Signal, item: i64) -> String {
    match signal {
        Signal::Traces | Signal::Metrics => format!("round {item}"),
        Signal::Samples => jiff::Timestamp::from_microsecond(item)
            .map_or_else(|_| item.to_string(), |start| format!("samples from {start}")),
    }
}

fn log_delivery(signal: Signal, items: &[i64], status: &DeliveryStatus) {
    let (first, count) = (items.first(), items.len());
    match status {
        DeliveryStatus::Rejected(why) => {
            tracing::warn!(signal = signal.name(), first, count, why, "the collector rejected data");
        }
        DeliveryStatus::Sent | DeliveryStatus::Expired => {
            tracing::debug!(signal = signal.name(), first, count, "items were sent")
        }
    }
}
