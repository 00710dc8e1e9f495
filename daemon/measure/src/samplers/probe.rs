//! The thread of the latency probe.
//!
//! The thread has at most one call in flight and records it in its own thread slot. No other thread ever waits for
//! the probe: if its call hangs, runs continue, and the worker can exit.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::probe_files::{GrowthOutcome, PreparedProbe, ProbeFiles, ProbeSite};
use super::probe_schedule::{ClockReading, ProbeSchedule, ProbeSlot, SlotCall};
use super::{ProbeSwitch, SampleReporter};
use crate::error::RunError;
use crate::platform::{self, FolderWatch};
use crate::recorder::{PROBE_THREAD_SLOT, Recorder};
use crate::sandbox::SandboxLocation;
use crate::timed_fs::{StopSwitch, TimedFs};
use longhaul_corpus::apple_double::owner_name;
use longhaul_model::{Failure, Operation, ProbePlan, ProbeSample, TargetName, Timestamp};

/// Minimum time in nanoseconds between opening the file of a request and the request itself. If opening is slow,
/// the time is twice the last duration of opening, but at most half of the probe's interval.
const MIN_LEAD_NS: u64 = 250_000_000;
/// First and longest pause before a probe that could not continue tries again. The pause doubles with each
/// attempt.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(64)];
/// Time in nanoseconds before the next attempt to grow the read file after a failed attempt.
const GROWTH_RETRY_NS: u64 = 60 * 1_000_000_000;
/// Time in nanoseconds before the next attempt to grow the read file after there was not enough free space.
const NO_SPACE_RETRY_NS: u64 = 3600 * 1_000_000_000;
/// Error name of a read that returned other bytes than were written.
const MISMATCH: &str = "MISMATCH";

/// Latency probe of a target, with everything that its thread needs.
pub struct Probe {
    /// Settings of the probe.
    pub plan: ProbePlan,
    /// Path of the target's folder.
    pub path: PathBuf,
    /// Name of the target.
    pub target: TargetName,
    /// Random id of this installation (machine id).
    pub machine: String,
    /// Flight recorder of the worker.
    pub recorder: Arc<Recorder>,
    /// Switch that turns the probe on and off.
    pub switch: Arc<ProbeSwitch>,
    /// Reporter that receives the samples.
    pub reporter: Arc<SampleReporter>,
    /// Device number of the target's file system; `None` if unknown.
    pub device: Option<u64>,
    /// Requests a sandbox from the thread that leads runs. The probe never creates one, because two threads that
    /// create a sandbox would conflict.
    pub request_sandbox: Box<dyn Fn() + Send>,
}

/// State of a probe that lasts over several sessions.
struct ProbeProgress {
    answered_slots: u64,
    device: Option<u64>,
}

/// Reason why a probe session ended.
enum SessionEnd {
    /// The probe was switched off.
    SwitchedOff,
    /// There is no sandbox yet.
    NoSandbox,
    /// An error prevents further requests.
    Failed(RunError),
}

impl From<RunError> for SessionEnd {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl Probe {
    /// Starts the thread of the probe. It ends with the process.
    ///
    /// # Errors
    ///
    /// If the operating system cannot create a thread.
    pub fn start(self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("probe".to_owned());
        thread.spawn(move || self.run()).map(drop)
    }

    /// Runs one session after the other. The pause between sessions grows until a request is answered.
    fn run(&self) {
        let [first, longest] = RETRY_PAUSES;
        let mut pause = first;
        let mut progress = ProbeProgress { answered_slots: 0, device: self.device };
        loop {
            self.switch.wait_until_on();
            let before = progress.answered_slots;
            let Err(end) = self.run_session(&mut progress) else { return };
            if progress.answered_slots > before {
                pause = first;
            }
            match end {
                SessionEnd::SwitchedOff => continue,
                SessionEnd::NoSandbox => (self.request_sandbox)(),
                SessionEnd::Failed(error) => self.reporter.report_disabled(error.failure().message),
            }
            self.switch.wait_until(platform::monotonic_ns() + pause.as_nanos() as u64);
            pause = (pause * 2).min(longest);
        }
    }

    /// Runs slot after slot until the session must end. Returns `Ok` only if the plan contains no kind of request.
    fn run_session(&self, progress: &mut ProbeProgress) -> Result<(), SessionEnd> {
        let stop = StopSwitch::default();
        let context = TimedFs::new(&self.recorder, PROBE_THREAD_SLOT, &stop);
        let begin_ns = platform::monotonic_ns();
        let plan = &self.plan;
        let Some(slots) = ProbeSchedule::new(begin_ns, plan.interval_ms, &plan.kinds, plan.seed) else {
            return Ok(());
        };
        let location =
            SandboxLocation { target_path: &self.path, target: &self.target, machine: &self.machine };
        let site = ProbeSite {
            location,
            device: progress.device,
            plan,
            salt: platform::wall_clock().as_us().cast_unsigned(),
        };
        let files = ProbeFiles::open(&site, &context)?.ok_or(SessionEnd::NoSandbox)?;
        // From now on, another file system at this path is refused: the share may be unmounted between two slots.
        progress.device = Some(files.device());
        let watch = context.timed(Operation::Lookup, || FolderWatch::new(&self.path)).unwrap_or(None);
        let (lead_ns, free) = (MIN_LEAD_NS.min(slots.interval_ns() / 2), clock_reading());
        let mut session =
            ProbeSession { probe: self, context, slots, files, lead_ns, last_free: free, next_growth_ns: 0 };
        loop {
            progress.answered_slots += u64::from(session.run_slot()?);
            self.reporter.set_cpu_ns(platform::thread_cpu_ns());
            self.reporter.report_slow_calls(self.switch.current_workload().as_deref());
            if watch.as_ref().is_some_and(|watch| watch.has_changed(is_sandbox_name)) {
                self.reporter.set_folder_changed(platform::wall_clock());
            }
        }
    }
}

/// Returns whether a name is a sandbox of any installation, or the AppleDouble file of a sandbox. Changes of these
/// are not made by a user.
fn is_sandbox_name(name: &[u8]) -> bool {
    owner_name(name).unwrap_or(name).starts_with(b".longhaul-")
}

fn clock_reading() -> ClockReading {
    ClockReading { awake_ns: platform::monotonic_ns(), asleep_ns: platform::asleep_ns() }
}

/// Session of the probe, in which slots are handled one after the other.
struct ProbeSession<'a> {
    probe: &'a Probe,
    context: TimedFs<'a>,
    slots: ProbeSchedule,
    files: ProbeFiles,
    lead_ns: u64,
    /// Time at which the probe last finished a slot. All slots up to this time are done.
    last_free: ClockReading,
    /// Earliest time at which the read file may grow again, in nanoseconds of the monotonic clock.
    next_growth_ns: u64,
}

/// Result of a probe request.
struct ProbeResult {
    returned: ClockReading,
    call_ns: Option<u64>,
    result: Result<(), RunError>,
}

impl ProbeSession<'_> {
    /// Handles the next slot. Returns whether a request was made.
    fn run_slot(&mut self) -> Result<bool, SessionEnd> {
        let switch = &self.probe.switch;
        let during = switch.current_workload();
        self.maintain_files()?;
        let slot = self.next_slot(during.as_deref());
        if !switch.wait_until(slot.at_ns.saturating_sub(self.lead_ns)) {
            return Err(SessionEnd::SwitchedOff);
        }
        let request = self.prepare(slot);
        let is_early = platform::monotonic_ns() < slot.at_ns;
        if !switch.wait_until(slot.at_ns) {
            return Err(SessionEnd::SwitchedOff);
        }
        let woken_ns = is_early.then(platform::monotonic_ns);
        // If the file could not be opened ahead of the slot, opening is tried again at the time of the slot. Its
        // duration then counts as latency.
        let request = request.or_else(|_| self.prepare(slot));
        let during = switch.current_workload().or(during);
        let answer = match request {
            Ok(None) => {
                self.last_free = ClockReading { awake_ns: slot.at_ns, ..clock_reading() };
                return Ok(false);
            }
            Ok(Some(request)) => self.execute(request),
            Err(error) => ProbeResult { returned: clock_reading(), call_ns: None, result: Err(error) },
        };
        let call = SlotCall { slot, last_free: self.last_free, woken_ns, returned: answer.returned };
        self.report(&call, &answer, during);
        self.last_free = answer.returned;
        match answer.result {
            Err(error) if is_permanent(&error) => Err(SessionEnd::Failed(error)),
            _ => Ok(true),
        }
    }

    /// Opens the file that a slot needs, and adapts the lead time to the duration of opening. Returns `None` if
    /// there is nothing to read yet.
    fn prepare(&mut self, slot: ProbeSlot) -> Result<Option<PreparedProbe>, RunError> {
        let start = platform::monotonic_ns();
        let request = self.files.prepare(slot.kind, &self.context);
        let duration = platform::monotonic_ns().saturating_sub(start);
        if let Some(warning) = self.files.take_warning() {
            self.probe.reporter.report_disabled(warning);
        }
        let max_lead = self.slots.interval_ns() / 2;
        self.lead_ns = duration.saturating_mul(2).clamp(MIN_LEAD_NS.min(max_lead), max_lead);
        request
    }

    /// Maintains the read file between two slots: grows it if no run is in progress, and starts a new pass over
    /// it.
    fn maintain_files(&mut self) -> Result<(), SessionEnd> {
        let now = platform::monotonic_ns();
        let next = self.slots.next_after(self.last_free.awake_ns.max(now));
        // Maintenance must not delay the next slot, so it is skipped in the second half of an interval.
        if next.at_ns - now < self.slots.interval_ns() / 2 {
            return Ok(());
        }
        if !self.files.is_complete() && now >= self.next_growth_ns && self.probe.switch.allows_extra_calls() {
            match self.files.grow(&self.context) {
                Ok(GrowthOutcome::Grown) => {}
                Ok(GrowthOutcome::NoSpace(reason)) => {
                    self.next_growth_ns = now + NO_SPACE_RETRY_NS;
                    self.probe.reporter.report_disabled(reason);
                }
                Err(error) if is_permanent(&error) => return Err(SessionEnd::Failed(error)),
                Err(_) => self.next_growth_ns = now + GROWTH_RETRY_NS,
            }
        }
        match self.files.start_pass_if_done(&self.context) {
            Err(error) if is_permanent(&error) => Err(SessionEnd::Failed(error)),
            _ => Ok(()),
        }
    }

    /// Returns the next slot to handle. Slots that were missed during file maintenance are reported with their
    /// delay until now, except the latest one, which is returned and handled late.
    fn next_slot(&mut self, during: Option<&str>) -> ProbeSlot {
        let now = clock_reading();
        let mut missed: Vec<ProbeSlot> = self.slots.missed(self.last_free, now).collect();
        let Some(latest) = missed.pop() else {
            let is_void = now.slept_since(self.last_free);
            return self.slots.next_after(if is_void { now.awake_ns } else { self.last_free.awake_ns });
        };
        let label = SampleLabel::new(now, None, during.map(ToOwned::to_owned));
        self.probe.reporter.add_probes(missed.iter().map(|slot| label.missed_slot(*slot)));
        latest
    }

    fn execute(&self, mut request: PreparedProbe) -> ProbeResult {
        let start = platform::monotonic_ns();
        let result = request.execute(&self.context);
        let returned = clock_reading();
        let call_ns = Some(returned.awake_ns.saturating_sub(start));
        let result = result.and_then(|()| self.files.verify(&request));
        // An error of closing is ignored, because the written data is already on stable storage.
        let _ = request.close(&self.context);
        ProbeResult { returned, call_ns, result }
    }

    /// Reports the sample of a slot, and a sample for each slot that was missed while its call was in flight.
    fn report(&self, call: &SlotCall, answer: &ProbeResult, during: Option<String>) {
        let label = SampleLabel::new(call.returned, answer.result.as_ref().err().map(error_name), during);
        // Only the first sample has a call of its own.
        let mut call_ns = answer.call_ns;
        let samples = self.slots.latencies(call).map(|(slot, latency_ns)| ProbeSample {
            latency_ns,
            call_ns: call_ns.take(),
            ..label.missed_slot(slot)
        });
        self.probe.reporter.add_probes(samples);
    }
}

/// Values that all samples that were completed by the same call have in common.
struct SampleLabel {
    returned: ClockReading,
    returned_wall: Timestamp,
    error: Option<String>,
    during: Option<String>,
}

impl SampleLabel {
    fn new(returned: ClockReading, error: Option<String>, during: Option<String>) -> Self {
        let since_ns = platform::monotonic_ns().saturating_sub(returned.awake_ns);
        Self {
            returned,
            returned_wall: platform::wall_clock() - Duration::from_nanos(since_ns),
            error,
            during,
        }
    }

    /// Returns the sample of a slot that was missed and has no call of its own.
    fn missed_slot(&self, slot: ProbeSlot) -> ProbeSample {
        let latency_ns = self.returned.awake_ns.saturating_sub(slot.at_ns);
        ProbeSample {
            kind: slot.kind,
            at_us: self.returned_wall - Duration::from_nanos(latency_ns),
            latency_ns,
            call_ns: None,
            error: self.error.clone(),
            during: self.during.clone(),
        }
    }
}

/// Returns the name of an error for a sample: the system's name such as `EIO` if there is one.
fn error_name(error: &RunError) -> String {
    match error {
        RunError::Operation { source, .. }
        | RunError::AccessDenied { source, .. }
        | RunError::LocalDisk { source, .. } => {
            platform::error_name(source).unwrap_or_else(|| source.kind().to_string())
        }
        RunError::Damaged { .. } => MISMATCH.to_owned(),
        RunError::Refused(_) | RunError::NotExclusive { .. } => "ENODEV".to_owned(),
        RunError::PrivacyBlocked { .. } => Failure::BLOCKED.to_owned(),
        RunError::Stopped(_) => "EINTR".to_owned(),
    }
}

/// Returns whether an error lasts until a user corrects its cause. Errors of an unreachable server or network are
/// not permanent: the probe continues, because it measures how long they last.
fn is_permanent(error: &RunError) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match error {
        RunError::Operation { source, .. } => {
            matches!(source.kind(), NotFound | NotADirectory | PermissionDenied) || error.is_key_error()
        }
        RunError::AccessDenied { .. } | RunError::Refused(_) | RunError::PrivacyBlocked { .. } => true,
        RunError::LocalDisk { .. }
        | RunError::Damaged { .. }
        | RunError::NotExclusive { .. }
        | RunError::Stopped(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_ticket_lasts_until_a_user_acts() {
        let failed = |code| {
            is_permanent(&RunError::operation(
                Operation::Read,
                std::path::Path::new("/nas/file"),
                io::Error::from_raw_os_error(code),
            ))
        };
        assert!(platform::KEY_ERRORS.iter().copied().all(failed));
        assert!(!failed(libc::EIO));
    }

    #[test]
    fn sandboxes_and_their_apple_doubles_are_recognized() {
        assert!(is_sandbox_name(b".longhaul-m-nas") && is_sandbox_name(b"._.longhaul-m-nas"));
        assert!(!is_sandbox_name(b"photo.jpg") && !is_sandbox_name(b"._photo.jpg"));
    }
}
