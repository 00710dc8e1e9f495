//! What the service does for samples: it hears the probes, reads the counters, keeps the ledger, and gathers all of it
//! until it is stored. It touches no target and waits for nothing.

mod feeling;
mod gathered;
mod journal;
mod own;
mod sensors;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use longhaul_measure::model::{Beside, Event, MachineStep, Mount, Sampled, Source, Stall, TargetName};
use longhaul_measure::recorder::{InFlight, Recorder};
use longhaul_measure::samplers::{Flight, Ledger, Look, Meter, Metered};
use longhaul_store::Samples;
use serde_json::json;

use self::feeling::Feelings;
use self::gathered::Gathered;
use self::own::OwnBook;
use crate::clock::Moment;
use crate::schedule::backoff::{Felt, must_yield};
use crate::worker;

pub use journal::{differences, facts_of_mount};
pub use sensors::{Sensors, SystemSensors};

/// For so long after its last use a share counts as used, in nanoseconds.
const USED_FOR_NS: i64 = 300_000_000_000;
/// A person who used a share so long ago still works on it, in nanoseconds: what the back-off asks.
const WORKING_FOR_NS: i64 = 60_000_000_000;
/// A call of a run that has been in flight for so long is a stall before it returns, in nanoseconds. Shorter ones are told
/// when they do: writing out a large file may take seconds and is no stall of the share.
const RUN_STALL_NS: u64 = 10_000_000_000;

/// Everything that a tick needs to know.
pub struct Scene<'a> {
    /// The moment it is.
    pub now: Moment,
    /// The same moment on the clock of the flight recorders, in nanoseconds.
    pub monotonic_ns: u64,
    /// The targets that are mounted, and how.
    pub mounts: &'a [(TargetName, Mount)],
    /// What of ours goes on, for people; `None`: nothing.
    pub beside: Option<&'a str>,
}

/// See the module.
pub struct Sampler {
    sensors: Box<dyn Sensors>,
    sender: Sender<(TargetName, Sampled)>,
    heard: Receiver<(TargetName, Sampled)>,
    meter: Meter,
    ledger: Ledger,
    gathered: Gathered,
    own: OwnBook,
    feelings: Feelings,
    /// When somebody else than longhaul was last seen to use each target, by the awake clock in nanoseconds.
    used: BTreeMap<TargetName, i64>,
    /// Probes that cannot go on, and why.
    lame: BTreeMap<TargetName, String>,
    /// Whose connection is being made again and again: one event for all of it.
    reconnecting: BTreeSet<(Option<TargetName>, Source)>,
    events: Vec<Event>,
    /// Lines of the ledger that the database did not take.
    unkept: Vec<Stall>,
    looked_ns: Option<i64>,
}

impl Sampler {
    /// A sampler that has seen nothing yet.
    pub fn new(sensors: Box<dyn Sensors>) -> Self {
        let (sender, heard) = channel();
        Self {
            sensors,
            sender,
            heard,
            meter: Meter::default(),
            ledger: Ledger::default(),
            gathered: Gathered::default(),
            own: OwnBook::default(),
            feelings: Feelings::default(),
            used: BTreeMap::new(),
            reconnecting: BTreeSet::new(),
            lame: BTreeMap::new(),
            events: vec![],
            unkept: vec![],
            looked_ns: None,
        }
    }

    /// Where workers send what they sample.
    pub fn ear(&self) -> worker::Samples {
        self.sender.clone()
    }

    /// The flight recorder of the process that serves a target now; `None`: there is none.
    pub fn follow(&mut self, target: &TargetName, recorder: Option<Arc<Recorder>>) {
        self.own.follow(target, recorder);
    }

    /// Takes in what has come, and looks at the calls in flight. Often, and at no cost.
    pub fn tick(&mut self, scene: &Scene<'_>) {
        while let Ok((target, sampled)) = self.heard.try_recv() {
            self.hear(&target, sampled, scene);
        }
        for (target, recorder) in self.own.recorders() {
            let flight = flight(recorder, scene);
            self.ledger.in_flight(target, flight, (scene.now.wall_us, scene.beside));
        }
        self.ledger.settle(scene.now.wall_us);
    }

    fn hear(&mut self, target: &TargetName, sampled: Sampled, scene: &Scene<'_>) {
        match sampled {
            Sampled::Probed { slots, cost_ns } => {
                self.lame.remove(target);
                let at_us = scene.now.wall_us;
                self.gathered.machine(MachineStep { at_us, probe_ns: cost_ns, ..MachineStep::default() });
                for slot in slots {
                    let is_ours = scene.beside.is_some() || slot.beside.is_some();
                    let beside = if is_ours { Beside::Round } else { Beside::Calm };
                    self.ledger.probed(target, &slot);
                    self.feelings.take(target, &slot, beside);
                    self.gathered.probe(target, &slot, beside);
                }
            }
            Sampled::Waited(waited) => self.ledger.waited(target, &waited),
            Sampled::Changed { .. } => drop(self.used.insert(target.clone(), scene.now.awake_ns)),
            Sampled::Lame { reason } => drop(self.lame.insert(target.clone(), reason)),
        }
    }

    /// Reads every counter, unless the last look was less than this ago.
    pub fn look(&mut self, scene: &Scene<'_>, every_ns: i64) {
        let now_ns = scene.now.awake_ns;
        if self.looked_ns.is_some_and(|looked_ns| now_ns - looked_ns < every_ns) {
            return;
        }
        self.looked_ns = Some(now_ns);
        let Some(readings) = self.sensors.readings(scene.mounts) else { return };
        let own = self.own.totals();
        let look = Look {
            monotonic_ns: now_ns.cast_unsigned(),
            asleep_ns: scene.now.asleep_ns().cast_unsigned(),
            own: &own,
        };
        for metered in self.meter.feed(&readings, &look) {
            self.meter_read(metered, &scene.now);
        }
        let machine = self.sensors.machine();
        self.gathered.machine(MachineStep { at_us: scene.now.wall_us, ..machine });
    }

    fn meter_read(&mut self, metered: Metered, now: &Moment) {
        let Metered { target, traffic, used } = metered;
        if let Some(target) = target.as_ref().filter(|_| used == Some(true)) {
            self.used.insert(target.clone(), now.awake_ns);
        }
        let counter = (target.clone(), traffic.source.clone());
        match traffic.reconnects {
            Some(0) => drop(self.reconnecting.remove(&counter)),
            Some(count) if self.reconnecting.insert(counter) => {
                let detail = json!({ "counter": traffic.source.name(), "count": count });
                let kind = "reconnect".to_owned();
                self.events.push(Event { target: target.clone(), kind, detail, at_us: now.wall_us });
            }
            Some(_) | None => {}
        }
        self.gathered.traffic(target, traffic, now.wall_us);
    }

    /// What happened since this was last asked.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Whether something has to be stored soon: a line of the ledger, which people look for at once.
    pub fn has_news(&self) -> bool {
        self.ledger.has_news()
    }

    /// What the machine is like; `None`: not known yet.
    pub fn facts(&mut self) -> Option<BTreeMap<String, String>> {
        self.sensors.facts()
    }

    /// What has come together since this was last asked, to be stored. The targets are left to the caller.
    pub fn take(&mut self, now: &Moment) -> Samples {
        let mut stalls = std::mem::take(&mut self.unkept);
        stalls.extend(self.ledger.take_news());
        Samples { stalls, now_us: now.wall_us, ..self.gathered.take() }
    }

    /// Brings back what could not be stored.
    pub fn bring_back(&mut self, mut samples: Samples) {
        self.unkept.append(&mut samples.stalls);
        self.gathered.bring_back(samples);
    }

    /// Whether somebody uses a target, so that a probe wakes nobody up.
    pub fn is_used(&self, target: &TargetName, now: &Moment) -> bool {
        self.was_used_within(target, now, USED_FOR_NS)
    }

    fn was_used_within(&self, target: &TargetName, now: &Moment, nanoseconds: i64) -> bool {
        self.used.get(target).is_some_and(|used_ns| now.awake_ns - used_ns < nanoseconds)
    }

    /// The target whose person has to wait for a round of ours, with how many times slower than calm it answers.
    pub fn suffers(&self, now: &Moment, factor: f64) -> Option<(TargetName, f64)> {
        let suffers = |(target, felt): (&TargetName, Felt)| {
            let is_user_active = Some(self.was_used_within(target, now, WORKING_FOR_NS));
            let felt = Felt { is_user_active, ..felt };
            must_yield(&felt, factor).then(|| (target.clone(), felt.now_us.zip(felt.calm_us)))
        };
        let (target, times) = self.feelings.felt(now.wall_us).find_map(suffers)?;
        times.map(|(slow, calm)| (target, slow / calm))
    }

    /// Why the probe of a target cannot go on; `None`: nothing is known against it.
    pub fn lameness(&self, target: &TargetName) -> Option<&str> {
        self.lame.get(target).map(String::as_str)
    }

    /// The stalls that go on.
    pub fn stalls(&self) -> impl Iterator<Item = &Stall> {
        self.ledger.open()
    }
}

/// The call that has been in flight for longest: of the probe, or of a run if it is a stall by itself.
fn flight<'a>(recorder: &Recorder, scene: &Scene<'_>) -> Option<Flight<'a>> {
    let age_ns = |flight: &InFlight| scene.monotonic_ns.saturating_sub(flight.since_ns);
    let of_run = recorder.in_flight().filter(|flight| age_ns(flight) >= RUN_STALL_NS);
    let flights = recorder.probe_in_flight().map(|flight| (flight, "probe"));
    let flights = flights.into_iter().chain(of_run.map(|flight| (flight, "a run")));
    let (flight, who) = flights.min_by_key(|(flight, _)| flight.since_ns)?;
    let age_us = i64::try_from(age_ns(&flight) / 1000).unwrap_or(i64::MAX);
    Some(Flight { operation: flight.operation, since_us: scene.now.wall_us.saturating_sub(age_us), who })
}
