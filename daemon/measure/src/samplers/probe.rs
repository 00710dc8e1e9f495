//! The thread that asks.
//!
//! It has at most one call outstanding, records in a lane of its own, and nobody ever waits for it: a call that hangs
//! hangs alone, and the worker ends without it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::pool::{Grown, Pool, Site, Visit};
use super::slots::{Call, Moment, Slot, Slots};
use super::{Gate, Telling};
use crate::arena::Claim;
use crate::context::{Context, StopSwitch};
use crate::corpus::apple_double::twin_of;
use crate::error::RunError;
use crate::model::{Failure, Operation, ProbePlan, Probed, TargetName};
use crate::platform::{self, FolderWatch};
use crate::recorder::{PROBE_LANE, Recorder};

/// How long before its slot what it needs is opened at least, in nanoseconds: where that takes long, twice as long
/// before as it took the last time. Half an interval is the most.
const LEAD_NS: u64 = 250_000_000;
/// The pause after which a probe that could not go on tries again: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(64)];
/// How long a pool is left as it is when it could not grow, and when there was no space for it, in nanoseconds.
const FAILED_NS: u64 = 60 * 1_000_000_000;
const SHORT_NS: u64 = 3600 * 1_000_000_000;
/// The word for an answer that is not what was written.
const MISMATCH: &str = "MISMATCH";

/// All that the probe of a target has.
pub struct Probe {
    /// Its plan.
    pub plan: ProbePlan,
    /// The target's folder.
    pub path: PathBuf,
    /// The target.
    pub target: TargetName,
    /// The random id of this installation.
    pub machine: String,
    /// The flight recorder.
    pub recorder: Arc<Recorder>,
    /// Whether it may ask.
    pub gate: Arc<Gate>,
    /// Where answers go.
    pub telling: Arc<Telling>,
    /// The file system that the target lies on, if that is known.
    pub device: Option<u64>,
    /// Asks the thread that leads runs for an arena: two that make one would meet.
    pub claim: Box<dyn Fn() + Send>,
}

/// What a probe remembers from stretch to stretch.
struct SoFar {
    asked: u64,
    device: Option<u64>,
}

/// How a stretch of slots came to its end.
enum End {
    /// The probe may not ask any more.
    Closed,
    /// There is no arena yet.
    Homeless,
    /// It cannot go on.
    Lame(RunError),
}

impl From<RunError> for End {
    fn from(error: RunError) -> Self {
        Self::Lame(error)
    }
}

impl Probe {
    /// Starts the thread. It ends with the process.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("probe".to_owned());
        thread.spawn(move || self.go_on()).map(drop)
    }

    /// Stretch after stretch, with a pause that grows for as long as there is nothing to ask.
    fn go_on(&self) {
        let [first, longest] = PAUSES;
        let mut pause = first;
        let mut so_far = SoFar { asked: 0, device: self.device };
        loop {
            self.gate.wait_until_open();
            let before = so_far.asked;
            let Err(end) = self.stretch(&mut so_far) else { return };
            if so_far.asked > before {
                pause = first;
            }
            match end {
                End::Closed => continue,
                End::Homeless => (self.claim)(),
                End::Lame(error) => self.telling.lame(error.failure().message),
            }
            self.gate.wait_until(platform::monotonic_ns() + pause.as_nanos() as u64);
            pause = (pause * 2).min(longest);
        }
    }

    /// Asks slot after slot until there is a reason not to. Returns `Ok` only when the plan has nothing to ask.
    fn stretch(&self, so_far: &mut SoFar) -> Result<(), End> {
        let stop = StopSwitch::default();
        let context = Context::new(&self.recorder, PROBE_LANE, &stop);
        let begin_ns = platform::monotonic_ns();
        let plan = &self.plan;
        let Some(slots) = Slots::new(begin_ns, plan.interval_ms, &plan.kinds, plan.seed) else {
            return Ok(());
        };
        let claim = Claim { target_path: &self.path, target: &self.target, machine: &self.machine };
        let site =
            Site { claim, device: so_far.device, plan, salt: platform::wall_clock_us().cast_unsigned() };
        let pool = Pool::open(&site, &context)?.ok_or(End::Homeless)?;
        so_far.device = Some(pool.device());
        let watch = context.timed(Operation::Lookup, || FolderWatch::new(&self.path)).unwrap_or(None);
        let (lead_ns, free) = (LEAD_NS.min(slots.interval_ns() / 2), now());
        let mut stretch = Stretch { probe: self, context, slots, pool, lead_ns, free, grows_ns: 0 };
        loop {
            so_far.asked += u64::from(stretch.turn()?);
            self.telling.cost(platform::thread_cpu_ns());
            self.telling.waits(self.gate.beside().as_deref());
            if watch.as_ref().is_some_and(|watch| watch.changed(is_ours)) {
                self.telling.changed(platform::wall_clock_us());
            }
        }
    }
}

/// Tells arenas of any installation, and their AppleDouble files: they are no user's doing.
fn is_ours(name: &[u8]) -> bool {
    twin_of(name).unwrap_or(name).starts_with(b".longhaul-")
}

fn now() -> Moment {
    Moment { awake_ns: platform::monotonic_ns(), asleep_ns: platform::asleep_ns() }
}

/// Slots that are asked one after the other.
struct Stretch<'a> {
    probe: &'a Probe,
    context: Context<'a>,
    slots: Slots,
    pool: Pool,
    lead_ns: u64,
    /// When the probe was last free: the slots up to then are dealt with.
    free: Moment,
    /// When the pool may grow again, on the monotonic clock.
    grows_ns: u64,
}

/// What came of asking.
struct Answer {
    returned: Moment,
    call_ns: Option<u64>,
    result: Result<(), RunError>,
}

impl Stretch<'_> {
    /// Deals with the next slot, and says whether it was asked.
    fn turn(&mut self) -> Result<bool, End> {
        let gate = &self.probe.gate;
        let beside = gate.beside();
        self.tend()?;
        let slot = self.next(beside.as_deref());
        if !gate.wait_until(slot.at_ns.saturating_sub(self.lead_ns)) {
            return Err(End::Closed);
        }
        let visit = self.visit(slot);
        let is_early = platform::monotonic_ns() < slot.at_ns;
        if !gate.wait_until(slot.at_ns) {
            return Err(End::Closed);
        }
        let woken_ns = is_early.then(platform::monotonic_ns);
        // What could not be opened early is tried once more in time: then its delay is the slot's.
        let visit = visit.or_else(|_| self.visit(slot));
        let beside = gate.beside().or(beside);
        let answer = match visit {
            Ok(None) => {
                self.free = Moment { awake_ns: slot.at_ns, ..now() };
                return Ok(false);
            }
            Ok(Some(visit)) => self.ask(visit),
            Err(error) => Answer { returned: now(), call_ns: None, result: Err(error) },
        };
        let call = Call { slot, free: self.free, woken_ns, returned: answer.returned };
        self.tell(&call, &answer, beside);
        self.free = answer.returned;
        match answer.result {
            Err(error) if is_final(&error) => Err(End::Lame(error)),
            _ => Ok(true),
        }
    }

    /// Opens what a slot needs, and notes how early that has to begin.
    fn visit(&mut self, slot: Slot) -> Result<Option<Visit>, RunError> {
        let began = platform::monotonic_ns();
        let visit = self.pool.visit(slot.kind, &self.context);
        let took = platform::monotonic_ns().saturating_sub(began);
        if let Some(note) = self.pool.take_note() {
            self.probe.telling.lame(note);
        }
        let most = self.slots.interval_ns() / 2;
        self.lead_ns = took.saturating_mul(2).clamp(LEAD_NS.min(most), most);
        visit
    }

    /// Between two slots: lets the pool grow where nobody is disturbed, and begins a new pass over it.
    fn tend(&mut self) -> Result<(), End> {
        let began = platform::monotonic_ns();
        let next = self.slots.after(self.free.awake_ns.max(began));
        if next.at_ns - began < self.slots.interval_ns() / 2 {
            return Ok(());
        }
        if !self.pool.is_complete() && began >= self.grows_ns && self.probe.gate.may_build() {
            match self.pool.grow(&self.context) {
                Ok(Grown::Yes) => {}
                Ok(Grown::Short(reason)) => {
                    self.grows_ns = began + SHORT_NS;
                    self.probe.telling.lame(reason);
                }
                Err(error) if is_final(&error) => return Err(End::Lame(error)),
                Err(_) => self.grows_ns = began + FAILED_NS,
            }
        }
        match self.pool.renew(&self.context) {
            Err(error) if is_final(&error) => Err(End::Lame(error)),
            _ => Ok(()),
        }
    }

    /// The slot to ask. Those that passed while a pool grew or a file was closed waited until now, but for the latest,
    /// which is asked late.
    fn next(&mut self, beside: Option<&str>) -> Slot {
        let now = now();
        let mut passed: Vec<Slot> = self.slots.passed(self.free, now).collect();
        let Some(latest) = passed.pop() else {
            let is_void = now.slept_since(self.free);
            return self.slots.after(if is_void { now.awake_ns } else { self.free.awake_ns });
        };
        let label = Label::of(now, None, beside.map(ToOwned::to_owned));
        self.probe.telling.probed(passed.iter().map(|slot| label.passed(*slot)));
        latest
    }

    fn ask(&self, mut visit: Visit) -> Answer {
        let began = platform::monotonic_ns();
        let result = visit.ask(&self.context);
        let returned = now();
        let call_ns = Some(returned.awake_ns.saturating_sub(began));
        let result = result.and_then(|()| self.pool.check(&visit));
        // Where closing fails nothing was lost: what was written is on stable storage.
        let _ = visit.close(&self.context);
        Answer { returned, call_ns, result }
    }

    /// Tells of a slot and of those that passed meanwhile.
    fn tell(&self, call: &Call, answer: &Answer, beside: Option<String>) {
        let label = Label::of(call.returned, answer.result.as_ref().err().map(word), beside);
        let mut call_ns = answer.call_ns;
        let felt = self.slots.felt(call).map(|(slot, latency_ns)| Probed {
            latency_ns,
            call_ns: call_ns.take(),
            ..label.passed(slot)
        });
        self.probe.telling.probed(felt);
    }
}

/// What the slots that were answered at one moment share.
struct Label {
    returned: Moment,
    returned_us: i64,
    error: Option<String>,
    beside: Option<String>,
}

impl Label {
    fn of(returned: Moment, error: Option<String>, beside: Option<String>) -> Self {
        let since_ns = platform::monotonic_ns().saturating_sub(returned.awake_ns);
        Self { returned, returned_us: platform::wall_clock_us() - microseconds(since_ns), error, beside }
    }

    /// A slot that passed without a call of its own.
    fn passed(&self, slot: Slot) -> Probed {
        let latency_ns = self.returned.awake_ns.saturating_sub(slot.at_ns);
        Probed {
            kind: slot.kind,
            at_us: self.returned_us - microseconds(latency_ns),
            latency_ns,
            call_ns: None,
            error: self.error.clone(),
            beside: self.beside.clone(),
        }
    }
}

fn microseconds(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds / 1000).unwrap_or(i64::MAX)
}

/// The word for an error: the system's name for it where it has one.
fn word(error: &RunError) -> String {
    match error {
        RunError::Operation { source, .. } | RunError::Local { source, .. } => {
            platform::error_name(source).unwrap_or_else(|| source.kind().to_string())
        }
        RunError::Damaged { .. } => MISMATCH.to_owned(),
        RunError::Refused(_) | RunError::NotOurs { .. } => "ENODEV".to_owned(),
        RunError::Blocked { .. } => Failure::BLOCKED.to_owned(),
        RunError::Stopped(_) => "EINTR".to_owned(),
    }
}

/// Whether there is no sense in asking again before something was done about it. What comes from a server or a network
/// that is away is not final: how long that lasts is what is measured.
fn is_final(error: &RunError) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match error {
        RunError::Operation { source, .. } => {
            matches!(source.kind(), NotFound | NotADirectory | PermissionDenied)
        }
        RunError::Refused(_) | RunError::Blocked { .. } => true,
        RunError::Local { .. }
        | RunError::Damaged { .. }
        | RunError::NotOurs { .. }
        | RunError::Stopped(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arenas_and_their_twins_are_no_users_doing() {
        assert!(is_ours(b".longhaul-m-nas") && is_ours(b"._.longhaul-m-nas"));
        assert!(!is_ours(b"photo.jpg") && !is_ours(b"._photo.jpg"));
    }
}
