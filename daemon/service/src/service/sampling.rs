//! What the service does for samples while it waits and while a round goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use longhaul_measure::model::{Family, Mount, ProbePlan, Probing, Target, TargetName, Touch};
use longhaul_measure::platform;
use longhaul_store::Samples;
use serde_json::json;

use super::Service;
use crate::clock::Moment;
use crate::config::Config;
use crate::round::Stop;
use crate::sampling::{Scene, differences, facts_of_mount};
use crate::status::ProbeState;
use crate::worker::Worker;

/// How often samples are stored, in nanoseconds of the awake clock: a disk may sleep in between.
const KEEP_EVERY_NS: i64 = 300_000_000_000;
/// How often samples are taken in during a round, in nanoseconds.
const TICK_NS: u64 = 1_000_000_000;
/// So long workers may take to tell what they have when the service ends.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How often the surroundings are written down, in nanoseconds of the continuous clock.
const DAY_NS: i64 = 86_400_000_000_000;

/// When what was done last.
#[derive(Debug, Default)]
pub(super) struct Diary {
    /// When samples were last taken in during a round, by the clock of the flight recorders.
    ticked_ns: u64,
    kept_ns: Option<i64>,
    written_ns: Option<i64>,
    /// The targets that have been looked at since the start, and those among them since mounts changed last.
    met: BTreeSet<TargetName>,
    known: BTreeSet<TargetName>,
    /// The servers' addresses as the last processes of the workers found them, for where the mount table does not tell them.
    servers: BTreeMap<TargetName, IpAddr>,
}

/// How the probe of a target goes; `None`: there is none.
pub(super) fn plan(config: &Config, seed: u64) -> Option<ProbePlan> {
    let sampling = &config.sampling;
    (sampling.touch != Touch::Never).then(|| ProbePlan {
        interval_ms: u64::try_from(sampling.probe_every.as_millis()).unwrap_or(u64::MAX),
        kinds: sampling.kinds(),
        seed,
        begins: Probing::DuringRuns,
        pool_bytes: ProbePlan::pool_bytes_at(config.scale),
        free_floor: config.settings.free_floor,
    })
}

impl Service {
    /// Between rounds: has a process there for each probe that may ask, and takes in what came.
    pub(super) fn sample(&mut self) {
        let _span = tracing::debug_span!("sample").entered();
        let now = self.seen;
        let mut workers = std::mem::take(&mut self.workers);
        for worker in &mut workers {
            let target = worker.target().clone();
            worker.close(self.why_not_sampled(&target));
            match self.probing(&target, &now) {
                Probing::On => {
                    worker.set_probing(Probing::On);
                    if let Err(ending) = worker.sample() {
                        tracing::debug!(target_name = %target.name, message = ending.failure.message, "no probe");
                    }
                }
                Probing::DuringRuns => {
                    worker.set_probing(Probing::DuringRuns);
                    worker.dismiss();
                }
            }
            self.sampler.borrow_mut().follow(&target.name, worker.recorder());
            let server = worker.server.map(|server| (target.name.clone(), server));
            self.diary.borrow_mut().servers.extend(server);
        }
        self.workers = workers;
        self.take_samples(&now, None);
        self.write_journal(&now);
    }

    /// In a round, once a second: takes in what came, and says whether the round has to yield to a person who waits for it.
    pub(super) fn sample_beside(&self) -> Option<Stop> {
        let monotonic_ns = platform::monotonic_ns();
        if monotonic_ns.saturating_sub(self.diary.borrow().ticked_ns) < TICK_NS {
            return None;
        }
        self.diary.borrow_mut().ticked_ns = monotonic_ns;
        let now = self.clock.glance();
        self.take_samples(&now, Some("a round"));
        let factor = self.config.schedule.yield_factor;
        let (target, times) = self.sampler.borrow().suffers(&now, factor)?;
        Some(Stop::CutShort(format!(
            "yield: `{target}` answered {times:.1} times slower than when it is calm, while somebody worked on it"
        )))
    }

    fn take_samples(&self, now: &Moment, beside: Option<&str>) {
        let mounts = self.mounted();
        let scene = Scene { now: *now, monotonic_ns: platform::monotonic_ns(), mounts: &mounts, beside };
        let mut sampler = self.sampler.borrow_mut();
        sampler.tick(&scene);
        if let Some(every) = self.config.sampling.counters_every {
            sampler.look(&scene, nanoseconds(every));
        }
        for event in sampler.events() {
            self.event(event.target.as_ref(), &event.kind, event.detail);
        }
        if sampler.has_news() {
            self.desk.set_stalls(sampler.stalls().cloned().collect());
        }
        drop(sampler);
        let kept_ns = *self.diary.borrow_mut().kept_ns.get_or_insert(now.awake_ns);
        if now.awake_ns - kept_ns >= KEEP_EVERY_NS || self.sampler.borrow().has_news() {
            self.keep_samples(now);
        }
    }

    /// Stores what has come together. What the database does not take is kept for the next time.
    fn keep_samples(&self, now: &Moment) {
        self.diary.borrow_mut().kept_ns = Some(now.awake_ns);
        let samples = self.sampler.borrow_mut().take(now);
        if samples.is_empty() {
            return;
        }
        let samples = Samples { targets: self.config.targets.clone(), ..samples };
        if let Err(error) = self.database.writer().add_samples(samples.clone()) {
            tracing::warn!(%error, "samples could not be kept; they are kept in memory");
            self.sampler.borrow_mut().bring_back(samples);
        }
    }

    /// At the end: what has come so far, what the workers have together, and stalls that longhaul does not see the end of.
    pub(super) fn keep_last_samples(&mut self) {
        self.workers.iter_mut().for_each(Worker::dismiss);
        let began = Instant::now();
        self.workers
            .iter_mut()
            .for_each(|worker| worker.await_end(LAST_WORDS.saturating_sub(began.elapsed())));
        let now = self.clock.glance();
        self.take_samples(&now, None);
        self.keep_samples(&now);
        if let Err(error) = self.database.writer().close_stalls(now.wall_us) {
            tracing::warn!(%error, "stalls that go on could not be closed");
        }
    }

    /// Whether the probe of a target may ask between rounds.
    fn probing(&self, target: &Target, now: &Moment) -> Probing {
        let book = self.book.borrow();
        let is_awake = |mount: &Mount| match mount.protocol.family() {
            Family::Local => platform::spins(mount) == Some(false),
            Family::Network | Family::Fuse | Family::Other => {
                self.sampler.borrow().is_used(&target.name, now)
            }
        };
        let is_paused = self.pause != crate::desk::Pause::Off || self.safe_mode;
        match self.config.sampling.touch {
            _ if is_paused => Probing::DuringRuns,
            Touch::Always => Probing::On,
            Touch::Active if book.mount(&target.name).is_some_and(is_awake) => Probing::On,
            Touch::Active | Touch::Never => Probing::DuringRuns,
        }
    }

    /// What the probe of a target does, for the status.
    pub(super) fn probe_state(&self, target: &Target, now: &Moment) -> ProbeState {
        if self.config.sampling.touch == Touch::Never {
            return ProbeState::Off;
        }
        if let Some(reason) = self.sampler.borrow().lameness(&target.name) {
            return ProbeState::Lame { reason: reason.to_owned() };
        }
        match self.probing(target, now) {
            Probing::On => ProbeState::Asking,
            Probing::DuringRuns => ProbeState::Waiting,
        }
    }

    fn mounted(&self) -> Vec<(TargetName, Mount)> {
        let (book, diary) = (self.book.borrow(), self.diary.borrow());
        let mount = |target: &Target| {
            let mut mount = book.mount(&target.name)?.clone();
            mount.server = mount.server.or_else(|| diary.servers.get(&target.name).copied());
            Some((target.name.clone(), mount))
        };
        self.config.targets.iter().filter_map(mount).collect()
    }

    /// The addresses of the targets' servers, as far as they are known.
    pub(super) fn servers(&self) -> BTreeSet<IpAddr> {
        self.mounted().into_iter().filter_map(|(_, mount)| mount.server).collect()
    }

    /// Writes down what targets and machine are like: at the start, after a change of mounts, and daily. A difference from
    /// the last time, which may have been before a restart, is an event.
    fn write_journal(&self, now: &Moment) {
        self.meet_targets(now);
        let is_due =
            self.diary.borrow().written_ns.is_none_or(|then_ns| now.continuous_ns - then_ns >= DAY_NS);
        if !is_due {
            return;
        }
        let Some(facts) = self.sampler.borrow_mut().facts() else { return };
        self.diary.borrow_mut().written_ns = Some(now.continuous_ns);
        self.note_facts(None, &facts, now);
    }

    /// What mounts changed is due to be written down again.
    pub(super) fn turn_page(&self) {
        let mut diary = self.diary.borrow_mut();
        diary.written_ns = None;
        diary.known.clear();
    }

    /// The first look at a target is compared with what the last service wrote down; what changes while this one runs is an
    /// event of its own.
    fn meet_targets(&self, now: &Moment) {
        for (target, mount) in self.mounted() {
            if !self.diary.borrow_mut().known.insert(target.clone()) {
                continue;
            }
            let facts = facts_of_mount(&mount);
            if self.diary.borrow_mut().met.insert(target.clone()) {
                self.note_facts(Some(&target), &facts, now);
            } else {
                self.keep_facts(target.as_str(), &facts, now);
            }
        }
    }

    fn note_facts(&self, target: Option<&TargetName>, facts: &BTreeMap<String, String>, now: &Moment) {
        let subject = target.map_or("", TargetName::as_str);
        let before = self.database.reader().and_then(|reader| reader.surroundings(subject));
        let difference = match &before {
            Ok(Some(before)) => differences(before, facts),
            Ok(None) => None,
            Err(error) => return tracing::warn!(%error, "the journal cannot be read"),
        };
        if difference.is_none() && matches!(before, Ok(Some(_))) {
            return;
        }
        if let Some(changed) = difference {
            self.event(target, "changed", json!(changed));
        }
        self.keep_facts(subject, facts, now);
    }

    fn keep_facts(&self, subject: &str, facts: &BTreeMap<String, String>, now: &Moment) {
        if let Err(error) = self.database.writer().keep_surroundings(subject, facts, now.wall_us) {
            tracing::warn!(%error, "the journal cannot be kept");
        }
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
