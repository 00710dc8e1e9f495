//! Passive sampling by the service, between rounds and during a round: what is read when, and stored when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_model::time::DAY;
use longhaul_model::{
    Event, Hint, Mount, ProbeMode, ProbePlan, ProbePolicy, ProtocolFamily, Stall, Target, TargetName,
};
use longhaul_store::Samples;
use serde_json::json;

use super::server_addresses::ServerAddresses;
use crate::clock::ClockReading;
use crate::config::Config;
use crate::database::Database;
use crate::host::ServerAddress;
use crate::mounts::MountTracker;
use crate::round_stop::RoundStop;
use crate::sampling::{Sampler, SamplingContext, Sensors, changed_facts, mount_facts, with_known_server};
use crate::status::ProbeState;
use crate::worker::{SampleSender, Worker};

/// Interval at which samples are stored, in nanoseconds of the awake clock. Long, so
/// that a disk can spin down in between.
const STORE_INTERVAL_NS: i64 = 300_000_000_000;
/// Time without any use of a share, and without a probe, after which counters are read less often, in nanoseconds of
/// the awake clock.
const QUIET_AFTER_NS: i64 = 300_000_000_000;
/// Shortest interval between two readings of the counters while nothing happens, so that the machine can sleep deeply.
const QUIET_COUNTER_INTERVAL: Duration = Duration::from_secs(60);
/// Interval at which facts about the machine are stored, in nanoseconds of the continuous clock.
const FACTS_INTERVAL_NS: i64 = DAY.as_nanos() as i64;

/// The state of the service that sampling needs.
#[derive(Clone, Copy)]
pub(super) struct SamplingView<'a> {
    /// Current time on all clocks.
    pub(super) now: ClockReading,
    pub(super) config: &'a Config,
    pub(super) mounts: &'a MountTracker,
    /// True while the probe must not send requests between rounds.
    pub(super) is_paused: bool,
}

/// The sampler, and the times and targets of its last steps.
pub(super) struct Sampling {
    sampler: Sampler,
    /// Time at which a share was last in use or probed, or at which the service started, on the awake clock in
    /// nanoseconds. `None`: it has just started.
    last_active_ns: Option<i64>,
    last_stored_ns: Option<i64>,
    last_facts_ns: Option<i64>,
    /// Targets whose facts were stored since the service started.
    seen_targets: BTreeSet<TargetName>,
    /// Targets whose facts were stored since a mount last changed.
    recorded_targets: BTreeSet<TargetName>,
    servers: ServerAddresses,
}

/// Returns the settings of the latency probe. `None`: the probe is disabled.
pub(super) fn probe_plan(config: &Config, seed: u64) -> Option<ProbePlan> {
    let sampling = &config.sampling;
    (sampling.probe_policy != ProbePolicy::Never).then(|| ProbePlan {
        interval_ms: u64::try_from(sampling.probe_interval.as_millis()).unwrap_or(u64::MAX),
        kinds: sampling.probe_kinds(),
        seed,
        initial_mode: ProbeMode::DuringRuns,
        read_file_bytes: ProbePlan::read_file_bytes_at(config.scale),
        reserve: config.settings.reserve,
    })
}

impl Sampling {
    /// Creates the sampling of a service that starts.
    pub(super) fn new(sensors: Box<dyn Sensors>) -> Self {
        Self {
            sampler: Sampler::new(sensors),
            last_active_ns: None,
            last_stored_ns: None,
            last_facts_ns: None,
            seen_targets: BTreeSet::new(),
            recorded_targets: BTreeSet::new(),
            servers: ServerAddresses::default(),
        }
    }

    /// Returns a channel to which workers send their samples.
    pub(super) fn new_sender(&self) -> SampleSender {
        self.sampler.new_sender()
    }

    /// Sets the flight recorder of the process that serves a target.
    pub(super) fn set_recorder(&mut self, target: &TargetName, recorder: Arc<Recorder>) {
        self.sampler.set_recorder(target, Some(recorder));
    }

    /// Starts or stops the probe of a worker between rounds, with its process. The process also starts without the probe if a share
    /// was mounted again and only that can tell the address of its server.
    pub(super) fn update_probe(&mut self, worker: &mut Worker, view: SamplingView<'_>) {
        let target = worker.target().clone();
        // The address is one of the facts.
        if self.servers.update(worker) {
            self.recorded_targets.remove(&target.name);
        }
        let mode = self.probe_mode(&target, view);
        worker.set_probing(mode);
        let finds_server =
            !view.is_paused && self.servers.is_outdated(&target.name, view.mounts.mount(&target.name));
        match mode {
            ProbeMode::DuringRuns if !finds_server => worker.shut_down(),
            ProbeMode::On | ProbeMode::DuringRuns => {
                if let Err(error) = worker.ensure_started() {
                    tracing::debug!(target_name = %target.name, error = error.failure.message, "no probe");
                }
            }
        }
        let recorder = worker.recorder();
        if mode == ProbeMode::DuringRuns || recorder.is_none() {
            self.sampler.end_failures(&target.name, &view.now);
        }
        self.sampler.set_recorder(&target.name, recorder);
    }

    /// Collects samples and reads counters that are due. Returns events to record. `during` is the load that
    /// longhaul itself causes; `None`: idle.
    pub(super) fn collect(&mut self, view: SamplingView<'_>, during: Option<&str>) -> Vec<Event> {
        let mounts = self.mounted_targets(view);
        let context = SamplingContext {
            now: view.now,
            monotonic_ns: platform::monotonic_ns(),
            mounts: &mounts,
            during,
        };
        self.sampler.tick(&context);
        // Here and not only when the configuration changes: last samples of a removed target may arrive later.
        self.sampler.forget_removed(&view.config.targets);
        let is_active = view.config.targets.iter().any(|target| self.is_active(target, view));
        if is_active || self.last_active_ns.is_none() {
            self.last_active_ns = Some(view.now.awake_ns);
        }
        if let Some(interval) = self.counter_interval(view, during) {
            self.sampler.read_counters(&context, to_nanoseconds(interval));
        }
        self.sampler.take_events()
    }

    /// Returns whether a target is probed, or is a share that a user works on.
    fn is_active(&self, target: &Target, view: SamplingView<'_>) -> bool {
        let is_local = |mount: &Mount| mount.protocol.family() == ProtocolFamily::Local;
        let is_share = !view.mounts.mount(&target.name).is_some_and(is_local);
        let is_in_use = is_share && self.sampler.is_in_use(&target.name, &view.now);
        is_in_use || self.probe_mode(target, view) == ProbeMode::On
    }

    /// Returns the time between two readings of the counters: as configured, or longer while nothing happens.
    /// `None`: they are not read.
    pub(super) fn counter_interval(&self, view: SamplingView<'_>, during: Option<&str>) -> Option<Duration> {
        let interval = view.config.sampling.counter_interval.filter(|_| !view.config.targets.is_empty())?;
        let is_quiet = self.last_active_ns.is_some_and(|ns| view.now.awake_ns - ns >= QUIET_AFTER_NS);
        // A round reads them as configured, to notice a user to whom it must yield.
        let is_quiet = is_quiet && during.is_none();
        Some(if is_quiet { interval.max(QUIET_COUNTER_INTERVAL) } else { interval })
    }

    /// Returns the ongoing stalls if one has started or ended. Stalls are stored soon, because users look for
    /// them at once.
    pub(super) fn changed_stalls(&self) -> Option<Vec<Stall>> {
        self.sampler.has_stall_updates().then(|| self.sampler.ongoing_stalls().cloned().collect())
    }

    /// Stores the collected samples if they are due.
    pub(super) fn store_if_due(&mut self, view: SamplingView<'_>, database: &Database) {
        let stored_ns = *self.last_stored_ns.get_or_insert(view.now.awake_ns);
        if view.now.awake_ns - stored_ns >= STORE_INTERVAL_NS || self.sampler.has_stall_updates() {
            self.store(view, database);
        }
    }

    /// Stores the collected samples. If the database refuses them, they are kept in memory for the next time.
    pub(super) fn store(&mut self, view: SamplingView<'_>, database: &Database) {
        self.last_stored_ns = Some(view.now.awake_ns);
        let samples = self.sampler.take_samples(&view.now);
        if samples.is_empty() {
            return;
        }
        let samples = of_targets(samples, &view.config.targets);
        if let Err(error) = database.writer().add_samples(samples.clone()) {
            tracing::warn!(error = error.one_line(), "samples could not be stored; they are kept in memory");
            self.sampler.restore(samples);
        }
    }

    /// Returns the reason to stop a round that must yield to a user. `None`: it need not.
    pub(super) fn yield_reason(&self, view: SamplingView<'_>) -> Option<RoundStop> {
        let (target, slowdown) =
            self.sampler.overloaded_target(&view.now, view.config.schedule.yield_factor)?;
        Some(RoundStop::CutShort(format!(
            "yield: `{target}` responded {slowdown:.1} times slower than when idle, while a user was working on it"
        )))
    }

    /// Returns whether the probe of a target may send requests between rounds.
    fn probe_mode(&self, target: &Target, view: SamplingView<'_>) -> ProbeMode {
        let is_awake = |mount: &Mount| match mount.protocol.family() {
            // A rotating local disk may have spun down, and a request would wake it up.
            ProtocolFamily::Local => platform::is_rotational(mount) == Some(false),
            ProtocolFamily::Network | ProtocolFamily::Fuse | ProtocolFamily::Other => {
                self.sampler.is_in_use(&target.name, &view.now)
            }
        };
        match view.config.sampling.probe_policy {
            _ if view.is_paused => ProbeMode::DuringRuns,
            ProbePolicy::Always => ProbeMode::On,
            ProbePolicy::Active if view.mounts.mount(&target.name).is_some_and(is_awake) => ProbeMode::On,
            ProbePolicy::Active | ProbePolicy::Never => ProbeMode::DuringRuns,
        }
    }

    /// Returns the state of a target's probe for the status.
    pub(super) fn probe_state(&self, target: &Target, view: SamplingView<'_>) -> ProbeState {
        if view.is_paused || view.config.sampling.probe_policy == ProbePolicy::Never {
            return ProbeState::Off;
        }
        if let Some(reason) = self.sampler.probe_error(&target.name) {
            return ProbeState::Failed { reason: reason.to_owned() };
        }
        match self.probe_mode(target, view) {
            ProbeMode::On => ProbeState::Active,
            ProbeMode::DuringRuns => ProbeState::Waiting,
        }
    }

    /// Returns the mounts of the targets, with the addresses of their servers as far as they are known.
    pub(super) fn mounted_targets(&self, view: SamplingView<'_>) -> Vec<(TargetName, Mount)> {
        let mount = |target: &Target| {
            let mount = view.mounts.mount(&target.name)?;
            Some((target.name.clone(), self.servers.add_to(&target.name, mount)))
        };
        view.config.targets.iter().filter_map(mount).collect()
    }

    /// Returns the servers of the mounted targets.
    pub(super) fn servers(&self, view: SamplingView<'_>) -> BTreeSet<ServerAddress> {
        self.mounted_targets(view).iter().filter_map(|(_, mount)| ServerAddress::of(mount)).collect()
    }

    /// Forgets what was observed of all targets but these: a target with another path is another place. All facts are stored again.
    pub(super) fn keep_only(&mut self, kept: &[Target]) {
        self.sampler.keep_only(kept);
        self.servers.keep_only(kept);
        self.expire_facts();
    }

    /// Expires all facts after a mount change, so that they are stored again.
    pub(super) fn expire_facts(&mut self) {
        self.last_facts_ns = None;
        self.recorded_targets.clear();
    }

    /// Stores facts about targets and the machine: at the start, after a mount change, and daily. Returns an event
    /// for each difference from the last stored facts, which may be from before a restart.
    pub(super) fn record_facts(&mut self, view: SamplingView<'_>, database: &Database) -> Vec<Event> {
        let mut events = self.record_mount_facts(view, database);
        let is_due =
            self.last_facts_ns.is_none_or(|last_ns| view.now.continuous_ns - last_ns >= FACTS_INTERVAL_NS);
        if is_due && let Some(facts) = self.sampler.read_facts() {
            self.last_facts_ns = Some(view.now.continuous_ns);
            events.extend(FactStore { database, now: &view.now }.update(None, &facts));
        }
        events
    }

    /// Stores the facts of the targets' mounts. Only the first facts since the start are compared with the
    /// stored ones; a later change was already recorded as a mount event.
    fn record_mount_facts(&mut self, view: SamplingView<'_>, database: &Database) -> Vec<Event> {
        let store = FactStore { database, now: &view.now };
        let mut events = vec![];
        for (target, mount) in self.mounted_targets(view) {
            // An idle automount tells nothing about the share that the next access mounts there.
            if mount.protocol.is_automount() || !self.recorded_targets.insert(target.clone()) {
                continue;
            }
            let facts = mount_facts(&mount);
            if self.seen_targets.insert(target.clone()) {
                events.extend(store.update(Some(&target), &facts));
            } else {
                store.save(target.as_str(), &facts);
            }
        }
        events
    }
}

/// Adds the targets of samples. Leaves out samples of targets that are no longer configured: because of one, the database would
/// refuse all.
fn of_targets(mut samples: Samples, targets: &[Target]) -> Samples {
    let is_configured = |name: &TargetName| targets.iter().any(|target| target.name == *name);
    samples.probes.retain(|step| is_configured(&step.target));
    samples.usage.retain(|step| is_configured(&step.target));
    samples.traffic.retain(|step| step.target.as_ref().is_none_or(is_configured));
    Samples { targets: targets.to_vec(), ..samples }
}

/// Stores facts at one time.
struct FactStore<'a> {
    database: &'a Database,
    now: &'a ClockReading,
}

impl FactStore<'_> {
    /// Stores facts that differ from the stored ones. Returns the event that records a difference.
    fn update(&self, target: Option<&TargetName>, facts: &BTreeMap<String, String>) -> Option<Event> {
        let subject = target.map_or("", TargetName::as_str);
        let before = self.database.reader().and_then(|reader| reader.environment_facts(subject));
        let before = before
            .inspect_err(|error| tracing::warn!(error = error.one_line(), "the stored facts cannot be read"))
            .ok()?;
        let facts = &before.as_ref().map_or_else(|| facts.clone(), |before| with_known_server(facts, before));
        let difference = before.as_ref().and_then(|before| changed_facts(before, facts));
        if before.is_none() || difference.is_some() {
            self.save(subject, facts);
        }
        Some(Event {
            target: target.cloned(),
            kind: "facts-changed".to_owned(),
            detail: json!(difference?),
            at_us: self.now.wall,
        })
    }

    fn save(&self, subject: &str, facts: &BTreeMap<String, String>) {
        let saved = self.database.writer().save_environment_facts(subject, facts, self.now.wall);
        if let Err(error) = saved {
            tracing::warn!(error = error.one_line(), "the facts could not be stored");
        }
    }
}

fn to_nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_model::{CounterReading, ProbeKind, ProbeSample, Protocol, Role, Timestamp, WorkerSample};

    use super::*;
    use crate::worker::Launcher;

    struct NoSensors;

    impl Sensors for NoSensors {
        fn counter_readings(&mut self, _: &[(TargetName, Mount)]) -> Option<Vec<CounterReading>> {
            None
        }
    }

    fn share(name: &str) -> Target {
        Target { name: name.parse().unwrap(), path: format!("/m/{name}").into(), role: Role::Share }
    }

    /// Returns the time this many seconds after the start.
    fn after(seconds: i64) -> ClockReading {
        ClockReading {
            wall: Timestamp::from_us(seconds * 1_000_000),
            awake_ns: seconds * 1_000_000_000,
            ..ClockReading::default()
        }
    }

    /// Returns a sample of the probe that failed this many seconds after the start.
    fn failure(seconds: i64) -> WorkerSample {
        let slot = ProbeSample {
            kind: ProbeKind::Read,
            at_us: after(seconds).wall,
            latency_ns: 5,
            call_ns: Some(5),
            error: Some("EIO".to_owned()),
            during: None,
        };
        WorkerSample::Probes { slots: vec![slot], cost_ns: 0 }
    }

    #[test]
    fn failures_end_when_the_probe_stops() {
        let config = Config { targets: vec![share("smb")], ..Config::default() };
        let (mounts, mut sampling) = (MountTracker::default(), Sampling::new(Box::new(NoSensors)));
        let launcher = Launcher::for_database("/bin/true".into(), Path::new("/nonexistent/x.sqlite"), "m");
        let mut worker = Worker::new(share("smb"), launcher);
        sampling.new_sender().send((share("smb").name, failure(100))).unwrap();
        let mut ongoing_at = |seconds: i64| {
            let view =
                SamplingView { now: after(seconds), config: &config, mounts: &mounts, is_paused: true };
            sampling.update_probe(&mut worker, view);
            sampling.collect(view, None);
            sampling.sampler.ongoing_stalls().count()
        };
        assert_eq!([ongoing_at(101), ongoing_at(120)], [1, 0]);
    }

    #[test]
    fn removed_target_does_not_keep_other_samples_from_being_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("longhaul.sqlite");
        let (database, _) = Database::open(&path, &[], after(1).wall).unwrap();
        let config = Config { targets: vec![share("smb")], ..Config::default() };
        let (mounts, mut sampling) = (MountTracker::default(), Sampling::new(Box::new(NoSensors)));
        for target in ["smb", "removed"] {
            sampling.new_sender().send((share(target).name, failure(100))).unwrap();
        }
        for seconds in [101, 120] {
            let view =
                SamplingView { now: after(seconds), config: &config, mounts: &mounts, is_paused: false };
            sampling.collect(view, None);
            sampling.store(view, &database);
        }
        let ongoing: Vec<&str> =
            sampling.sampler.ongoing_stalls().map(|stall| stall.target.as_str()).collect();
        assert_eq!(ongoing, ["smb"]);
        let unstored = sampling.sampler.take_samples(&after(120));
        assert!(unstored.is_empty(), "{unstored:?}");
    }

    #[test]
    fn counters_are_read_less_often_after_five_quiet_minutes() {
        let target = share("smb");
        let mut mounts = MountTracker::default();
        mounts.update(std::slice::from_ref(&target), &[Mount::new("/m/smb", "nas:/x", Protocol::Smb(None))]);
        let config = Config { targets: vec![target], ..Config::default() };
        let mut sampling = Sampling::new(Box::new(NoSensors));
        let mut interval_at = |seconds: i64, during: Option<&str>| {
            let now = ClockReading { awake_ns: seconds * 1_000_000_000, ..ClockReading::default() };
            let view = SamplingView { now, config: &config, mounts: &mounts, is_paused: false };
            sampling.collect(view, during);
            sampling.counter_interval(view, during).unwrap().as_secs()
        };
        assert_eq!([interval_at(0, None), interval_at(299, None), interval_at(300, None)], [10, 10, 60]);
        assert_eq!([interval_at(310, Some("a round")), interval_at(320, None)], [10, 60]);
    }
}
