//! Passive sampling: receives samples of the latency probes, reads counters, tracks stalls, and merges
//! everything until it is stored. Never accesses a target and never blocks.

mod aggregator;
mod baselines;
mod fact_changes;
mod self_traffic;
mod sensors;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use longhaul_measure::recorder::{InFlightCall, Recorder};
use longhaul_measure::samplers::{MeteredTraffic, Observation, PendingCall, StallLog, TrafficMeter};
use longhaul_model::{
    CounterSource, Event, LoadContext, MachineStep, Mount, Stall, Target, TargetName, WorkerSample,
};
use longhaul_store::Samples;
use serde_json::json;

use self::aggregator::SampleAggregator;
use self::baselines::LatencyBaselines;
use self::self_traffic::SelfTrafficTracker;
use self::usage::UsageCounter;
use crate::clock::ClockReading;
use crate::worker;

pub use fact_changes::{changed_facts, mount_facts, with_known_server};
pub use sensors::{Sensors, SystemSensors};

/// Time after the last use of a share for which it still counts as in use, in nanoseconds.
const IN_USE_WINDOW_NS: i64 = 300_000_000_000;
/// Time after the last use of a share for which its user still counts as active, in
/// nanoseconds. Decides whether a round yields.
const USER_ACTIVE_WINDOW_NS: i64 = 60_000_000_000;
/// Age from which a run's operation in flight is shown as a stall before it returns, in nanoseconds. Shorter
/// ones are reported when they return: writing out a large file may take seconds and
/// is not a stall of the share.
const RUN_STALL_THRESHOLD_NS: u64 = 10_000_000_000;

/// The state of the service that one sampling step needs.
pub struct SamplingContext<'a> {
    /// Current time on all clocks.
    pub now: ClockReading,
    /// Current time on the clock of the flight recorders, in nanoseconds.
    pub monotonic_ns: u64,
    /// Mounted targets and their mounts.
    pub mounts: &'a [(TargetName, Mount)],
    /// User-visible name of the load that longhaul itself causes. `None`: idle.
    pub during: Option<&'a str>,
}

/// State of passive sampling, from received samples to batches for the database.
pub struct Sampler {
    sensors: Box<dyn Sensors>,
    sender: Sender<(TargetName, WorkerSample)>,
    receiver: Receiver<(TargetName, WorkerSample)>,
    traffic_meter: TrafficMeter,
    stall_log: StallLog,
    aggregator: SampleAggregator,
    usage: UsageCounter,
    self_traffic: SelfTrafficTracker,
    latency_baselines: LatencyBaselines,
    /// Time at which a program other than longhaul last used each target, on the awake clock in nanoseconds.
    last_used_ns: BTreeMap<TargetName, i64>,
    /// Targets whose probe cannot run, with the reason.
    probe_errors: BTreeMap<TargetName, String>,
    /// Counters whose last reading showed reconnects. Reconnects in consecutive readings give one event.
    reconnecting: BTreeSet<(Option<TargetName>, CounterSource)>,
    /// Events since [`Sampler::take_events`] was last called.
    events: Vec<Event>,
    /// Stalls that the database refused and that are stored next time.
    unstored_stalls: Vec<Stall>,
    last_read_ns: Option<i64>,
}

impl Sampler {
    /// Creates a sampler without any samples.
    pub fn new(sensors: Box<dyn Sensors>) -> Self {
        let (sender, receiver) = channel();
        Self {
            sensors,
            sender,
            receiver,
            traffic_meter: TrafficMeter::default(),
            stall_log: StallLog::default(),
            aggregator: SampleAggregator::default(),
            usage: UsageCounter::default(),
            self_traffic: SelfTrafficTracker::default(),
            latency_baselines: LatencyBaselines::default(),
            last_used_ns: BTreeMap::new(),
            reconnecting: BTreeSet::new(),
            probe_errors: BTreeMap::new(),
            events: vec![],
            unstored_stalls: vec![],
            last_read_ns: None,
        }
    }

    /// Returns a channel to which workers send their samples.
    pub fn new_sender(&self) -> worker::SampleSender {
        self.sender.clone()
    }

    /// Sets the flight recorder of the process that serves a target. `None`: there is no process.
    pub fn set_recorder(&mut self, target: &TargetName, recorder: Option<Arc<Recorder>>) {
        self.self_traffic.set_recorder(target, recorder);
    }

    /// Forgets targets that are no longer configured.
    pub fn forget_removed(&mut self, configured: &[Target]) {
        self.self_traffic.retain(|name| configured.iter().any(|target| target.name == *name));
        self.keep_only(configured);
    }

    /// Forgets what was observed of all targets but these. Their stalls end with what was observed last.
    pub fn keep_only(&mut self, kept: &[Target]) {
        let is_kept = |name: &TargetName| kept.iter().any(|target| target.name == *name);
        self.stall_log.end_removed(is_kept);
        self.latency_baselines.retain(is_kept);
        self.last_used_ns.retain(|target, _| is_kept(target));
        self.probe_errors.retain(|target, _| is_kept(target));
    }

    /// Ends the failures of a target whose probe sends no requests now, because no answer can end them.
    pub fn end_failures(&mut self, target: &TargetName, now: &ClockReading) {
        self.stall_log.end_failures(target, now.wall);
    }

    /// Receives pending samples and checks the operations in flight. Cheap, so that it can be called often.
    pub fn tick(&mut self, context: &SamplingContext<'_>) {
        self.leave_out_round(context);
        while let Ok((target, sample)) = self.receiver.try_recv() {
            self.on_sample(&target, sample, context);
        }
        for (target, recorder) in self.self_traffic.recorders() {
            // Without a process no call is in flight any more, whether or not the last one was reported.
            let flight = recorder.and_then(|recorder| longest_pending_call(recorder, context));
            self.stall_log.update_in_flight(target, flight, context.now.wall);
        }
        self.stall_log.close_finished(context.now.wall);
    }

    /// Leaves out the time between two readings in which a round runs, also if it is shorter than the time between them.
    fn leave_out_round(&mut self, context: &SamplingContext<'_>) {
        if context.during.is_some() {
            self.usage.leave_out();
        }
    }

    fn on_sample(&mut self, target: &TargetName, sample: WorkerSample, context: &SamplingContext<'_>) {
        match sample {
            WorkerSample::Probes { slots, cost_ns } => {
                self.probe_errors.remove(target);
                self.aggregator.add_machine(MachineStep {
                    at_us: context.now.wall,
                    probe_cpu_ns: cost_ns,
                    ..MachineStep::default()
                });
                for sample in slots {
                    let is_ours = context.during.is_some() || sample.during.is_some();
                    let load = if is_ours { LoadContext::Round } else { LoadContext::Idle };
                    self.usage.add_probe(target, &sample);
                    self.stall_log.record_probe(target, &sample);
                    self.latency_baselines.record(target, &sample, load);
                    self.aggregator.add_probe(target, &sample, load);
                }
            }
            WorkerSample::SlowCall(slow_call) => self.stall_log.record_slow_call(target, &slow_call),
            WorkerSample::FolderChanged { .. } => {
                self.last_used_ns.insert(target.clone(), context.now.awake_ns);
            }
            WorkerSample::ProbeDisabled { reason } => drop(self.probe_errors.insert(target.clone(), reason)),
        }
    }

    /// Reads all counters, unless the last reading is less than `interval_ns` nanoseconds old.
    pub fn read_counters(&mut self, context: &SamplingContext<'_>, interval_ns: i64) {
        let now_ns = context.now.awake_ns;
        if self.last_read_ns.is_some_and(|read_ns| now_ns - read_ns < interval_ns) {
            return;
        }
        self.last_read_ns = Some(now_ns);
        let Some(readings) = self.sensors.counter_readings(context.mounts) else {
            self.usage.leave_out();
            self.usage.add(&[], context.now.wall);
            return;
        };
        self.self_traffic.set_protocols(context.mounts);
        let self_traffic = self.self_traffic.totals();
        let observation = Observation {
            monotonic_ns: now_ns.cast_unsigned(),
            asleep_ns: context.now.asleep_ns().cast_unsigned(),
            self_traffic: &self_traffic,
        };
        let metered = self.traffic_meter.update(&readings, &observation);
        self.usage.add(&metered, context.now.wall);
        self.leave_out_round(context);
        for metered in metered {
            self.record_traffic(metered, &context.now);
        }
        let machine = self.sensors.machine_sample();
        self.aggregator.add_machine(MachineStep { at_us: context.now.wall, ..machine });
    }

    fn record_traffic(&mut self, metered: MeteredTraffic, now: &ClockReading) {
        let MeteredTraffic { target, traffic, is_used, .. } = metered;
        if let Some(target) = target.as_ref().filter(|_| is_used == Some(true)) {
            self.last_used_ns.insert(target.clone(), now.awake_ns);
        }
        let counter = (target.clone(), traffic.source.clone());
        match traffic.reconnects {
            Some(0) => drop(self.reconnecting.remove(&counter)),
            Some(count) if self.reconnecting.insert(counter) => {
                let detail = json!({ "counter": traffic.source.name(), "count": count });
                let kind = "reconnect".to_owned();
                self.events.push(Event { target: target.clone(), kind, detail, at_us: now.wall });
            }
            Some(_) | None => {}
        }
        self.aggregator.add_traffic(target, traffic, now.wall);
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Returns whether a stall has started or ended. Stalls are stored soon, because users look for them at once.
    pub fn has_stall_updates(&self) -> bool {
        self.stall_log.has_updates()
    }

    /// Returns stored facts about the machine, such as kernel and network settings. `None`: not known yet.
    pub fn read_facts(&mut self) -> Option<BTreeMap<String, String>> {
        self.sensors.machine_facts()
    }

    /// Takes the samples and stalls since the last call, to be stored. The field `targets` is left to the caller.
    pub fn take_samples(&mut self, now: &ClockReading) -> Samples {
        let mut stalls = std::mem::take(&mut self.unstored_stalls);
        stalls.extend(self.stall_log.take_updates());
        Samples { stalls, usage: self.usage.take(), now: now.wall, ..self.aggregator.take() }
    }

    /// Adds samples and stalls back that could not be stored.
    pub fn restore(&mut self, mut samples: Samples) {
        self.unstored_stalls.append(&mut samples.stalls);
        self.usage.restore(std::mem::take(&mut samples.usage));
        self.aggregator.restore(samples);
    }

    /// Returns whether a user used a target recently. The probe accesses only such
    /// targets, so that it wakes up no sleeping disk.
    pub fn is_in_use(&self, target: &TargetName, now: &ClockReading) -> bool {
        self.was_used_within(target, now, IN_USE_WINDOW_NS)
    }

    fn was_used_within(&self, target: &TargetName, now: &ClockReading, nanoseconds: i64) -> bool {
        self.last_used_ns.get(target).is_some_and(|used_ns| now.awake_ns - used_ns < nanoseconds)
    }

    /// Returns a target that a user works on and that a round slows down by more than
    /// `factor`, with its slowdown relative to idle.
    pub fn overloaded_target(&self, now: &ClockReading, factor: f64) -> Option<(TargetName, f64)> {
        let is_active = |target: &TargetName| self.was_used_within(target, now, USER_ACTIVE_WINDOW_NS);
        let mut slowdowns = self.latency_baselines.slowdowns(now.wall);
        let (target, times) = slowdowns.find(|(target, times)| *times > factor && is_active(target))?;
        Some((target.clone(), times))
    }

    /// Returns the reason why the probe of a target cannot run. `None`: no problem is known.
    pub fn probe_error(&self, target: &TargetName) -> Option<&str> {
        self.probe_errors.get(target).map(String::as_str)
    }

    /// Returns the ongoing stalls.
    pub fn ongoing_stalls(&self) -> impl Iterator<Item = &Stall> {
        self.stall_log.ongoing()
    }
}

/// Returns the operation in flight for longest: of the probe, or of a run if it is
/// older than [`RUN_STALL_THRESHOLD_NS`].
fn longest_pending_call<'a>(recorder: &Recorder, context: &SamplingContext<'a>) -> Option<PendingCall<'a>> {
    let age_ns = |flight: &InFlightCall| context.monotonic_ns.saturating_sub(flight.since_ns);
    let of_run = recorder.in_flight().filter(|flight| age_ns(flight) >= RUN_STALL_THRESHOLD_NS);
    let flights = recorder.probe_in_flight().map(|flight| (flight, "probe"));
    let flights = flights.into_iter().chain(of_run.map(|flight| (flight, "a run")));
    let (flight, source) = flights.min_by_key(|(flight, _)| flight.since_ns)?;
    Some(PendingCall {
        operation: flight.operation,
        since: context.now.wall - Duration::from_nanos(age_ns(&flight)),
        source,
        during: context.during,
    })
}
