//! Reads the system's counters, load and facts, without blocking the service.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_model::{CounterReading, MachineStep, Mount, TargetName};

use crate::host::{Metrics, memory_available};

/// Time that the service waits for a reading. If a helper program takes longer, the
/// reading is picked up by a later call.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(100);
/// Stack size of a background thread, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// A source of counter readings, load samples and machine facts.
pub trait Sensors: Send {
    /// Reads all counters of the mounted targets. `None`: the reading is not ready yet.
    fn counter_readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<CounterReading>>;

    /// Returns the load of the machine since the last call. The caller sets the time.
    fn machine_sample(&mut self) -> MachineStep {
        MachineStep::default()
    }

    /// Returns rarely changing facts about the machine, for the event log. `None`: the facts are not ready yet.
    fn machine_facts(&mut self) -> Option<BTreeMap<String, String>> {
        None
    }
}

/// Runs a slow query on its own thread, so that a slow helper program of the system blocks no other thread.
struct BackgroundQuery<Question, Answer> {
    requests: SyncSender<Question>,
    responses: Receiver<Answer>,
    /// True if a request was sent whose response has not arrived.
    is_pending: bool,
}

impl<Question: Send + 'static, Answer: Send + 'static> BackgroundQuery<Question, Answer> {
    fn new(name: &str, run: impl Fn(Question) -> Answer + Send + 'static) -> Self {
        let (requests, pending) = sync_channel(1);
        let (response, responses) = sync_channel(1);
        let work = move || pending.into_iter().try_for_each(|request| response.send(run(request)));
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        // If the system refuses a new thread, these values stay unknown and everything else continues.
        let _ = thread.spawn(work);
        Self { requests, responses, is_pending: false }
    }

    /// Returns the response, waiting briefly. `None`: not ready yet; a later call returns
    /// the response to this request.
    fn query(&mut self, request: impl FnOnce() -> Question) -> Option<Answer> {
        if !self.is_pending {
            self.requests.try_send(request()).ok()?;
            self.is_pending = true;
        }
        let response = self.responses.recv_timeout(RESPONSE_TIMEOUT).ok()?;
        self.is_pending = false;
        Some(response)
    }
}

/// Sensors of the machine that the service runs on.
pub struct SystemSensors {
    counters: BackgroundQuery<Vec<(TargetName, Mount)>, Vec<CounterReading>>,
    facts: BackgroundQuery<(), BTreeMap<String, String>>,
    metrics: Metrics,
}

impl Default for SystemSensors {
    fn default() -> Self {
        Self {
            counters: BackgroundQuery::new("counters", |mounts: Vec<(TargetName, Mount)>| {
                platform::read_counters(&mounts)
            }),
            facts: BackgroundQuery::new("facts", |()| platform::machine_facts()),
            metrics: Metrics::default(),
        }
    }
}

impl Sensors for SystemSensors {
    fn counter_readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<CounterReading>> {
        self.counters.query(|| mounts.to_vec())
    }

    fn machine_sample(&mut self) -> MachineStep {
        let share = self.metrics.processor_share();
        MachineStep {
            observations: 1,
            processor_share: share,
            processor_share_max: share,
            memory_available_min: memory_available(),
            load_average_max: platform::load_average(),
            signal_dbm_min: platform::signal_dbm().map(f64::from),
            ..MachineStep::default()
        }
    }

    fn machine_facts(&mut self) -> Option<BTreeMap<String, String>> {
        self.facts.query(|| ())
    }
}
