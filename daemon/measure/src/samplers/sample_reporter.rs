//! Collects the samples of a worker and sends them once a minute, or immediately if a sample is urgent.

use std::sync::Arc;

use crate::platform;
use crate::recorder::{PROBE_THREAD_SLOT, RawSlowCall, Recorder, SlowCallCollector};
use longhaul_model::{ProbeSample, SLEPT_NS, SLOW_CALL_NS, SlowCall, Timestamp, WorkerSample};
use parking_lot::Mutex;

/// Interval in nanoseconds at which collected samples are sent.
const BATCH_INTERVAL_NS: u64 = 60 * 1_000_000_000;
/// Maximum number of samples in one message. The end of a stall that lasted all night completes thousands of
/// samples.
const MAX_BATCH_SLOTS: usize = 500;

/// Receiver of samples.
type SampleSink = Box<dyn Fn(WorkerSample) + Send + Sync>;

/// Samples that have not been sent yet, and the state of the reporting.
#[derive(Default)]
struct State {
    slots: Vec<ProbeSample>,
    /// Processor time of the probe in nanoseconds: in total, and the part that was already reported.
    cpu_ns: (u64, u64),
    changed: Option<Timestamp>,
    /// Time of the last report, in nanoseconds of the monotonic clock.
    last_report_ns: u64,
    disabled_reason: Option<String>,
    slow_calls: SlowCallCollector,
    /// Total time that the machine had slept when slow calls were last collected, in nanoseconds.
    asleep_ns: u64,
}

/// Collector and sender of samples, used by the latency probe and by the thread that leads runs.
pub struct SampleReporter {
    sink: SampleSink,
    recorder: Arc<Recorder>,
    state: Mutex<State>,
}

impl SampleReporter {
    /// Creates a reporter that sends samples to `sink` and reads slow calls from `recorder`.
    pub fn new(sink: impl Fn(WorkerSample) + Send + Sync + 'static, recorder: Arc<Recorder>) -> Self {
        let (last_report_ns, asleep_ns) = (platform::monotonic_ns(), platform::asleep_ns());
        let state = Mutex::new(State { last_report_ns, asleep_ns, ..State::default() });
        Self { sink: Box::new(sink), recorder, state }
    }

    /// Adds samples of the probe. Sends all collected samples if one is urgent or the batch interval has passed.
    pub fn add_probes(&self, slots: impl IntoIterator<Item = ProbeSample>) {
        let mut state = self.state.lock();
        state.disabled_reason = None;
        let mut is_urgent = false;
        for slot in slots {
            // Samples during a run are urgent, because a round must yield quickly to a user whose share becomes
            // slow.
            is_urgent |= slot.error.is_some() || slot.latency_ns > SLOW_CALL_NS || slot.during.is_some();
            state.slots.push(slot);
            if state.slots.len() >= MAX_BATCH_SLOTS {
                self.send(&mut state);
            }
        }
        let is_due = platform::monotonic_ns().saturating_sub(state.last_report_ns) >= BATCH_INTERVAL_NS;
        if is_urgent || is_due {
            self.send(&mut state);
        }
    }

    /// Sets the total processor time of the probe in nanoseconds.
    pub fn set_cpu_ns(&self, nanoseconds: u64) {
        self.state.lock().cpu_ns.0 = nanoseconds;
    }

    /// Records that a user changed the target's folder. `at` is the time of detection.
    pub fn set_folder_changed(&self, at: Timestamp) {
        self.state.lock().changed = Some(at);
    }

    /// Reports that the probe cannot continue. The same reason is reported only once, until the probe has
    /// continued.
    pub fn report_disabled(&self, reason: String) {
        let mut state = self.state.lock();
        if state.disabled_reason.as_ref() != Some(&reason) {
            state.disabled_reason = Some(reason.clone());
            (self.sink)(WorkerSample::ProbeDisabled { reason });
        }
    }

    /// Reports the calls of more than a second that have returned since the last report: those of the current
    /// workload and of the probe. If the machine slept since then, they are dropped, because their durations may
    /// include sleep.
    pub fn report_slow_calls(&self, workload: Option<&str>) {
        let mut state = self.state.lock();
        let asleep_ns = platform::asleep_ns();
        let slept = asleep_ns.saturating_sub(state.asleep_ns) > SLEPT_NS;
        state.asleep_ns = asleep_ns;
        for (slot, call) in state.slow_calls.collect(&self.recorder).into_iter().filter(|_| !slept) {
            let workload = workload.filter(|_| slot != PROBE_THREAD_SLOT);
            (self.sink)(WorkerSample::SlowCall(slow_call(call, workload)));
        }
    }

    /// Sends all collected samples.
    pub fn flush(&self) {
        self.send(&mut self.state.lock());
    }

    fn send(&self, state: &mut State) {
        state.last_report_ns = platform::monotonic_ns();
        if !state.slots.is_empty() {
            let (slots, cost_ns) = (std::mem::take(&mut state.slots), state.cpu_ns.0 - state.cpu_ns.1);
            state.cpu_ns.1 = state.cpu_ns.0;
            (self.sink)(WorkerSample::Probes { slots, cost_ns });
        }
        if let Some(at_us) = state.changed.take() {
            (self.sink)(WorkerSample::FolderChanged { at_us });
        }
    }
}

fn slow_call(call: RawSlowCall, workload: Option<&str>) -> SlowCall {
    let RawSlowCall { operation, at: at_us, duration_ns: nanoseconds, error } = call;
    let name = |number| platform::error_name(&std::io::Error::from_raw_os_error(number));
    let error =
        error.map(|number| name(number).filter(|_| number != 0).unwrap_or_else(|| "unknown".to_owned()));
    SlowCall { operation, at_us, duration_ns: nanoseconds, error, workload: workload.map(ToOwned::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{Operation, ProbeKind};

    /// Returns a reporter, and the samples that it has sent.
    fn reporter() -> (Arc<Mutex<Vec<WorkerSample>>>, SampleReporter) {
        let sent = Arc::new(Mutex::new(vec![]));
        let (sink, recorder) = (Arc::clone(&sent), Arc::new(Recorder::private().unwrap()));
        (sent, SampleReporter::new(move |sample| sink.lock().push(sample), recorder))
    }

    fn take(sent: &Mutex<Vec<WorkerSample>>) -> Vec<WorkerSample> {
        std::mem::take(&mut sent.lock())
    }

    fn slot(latency_ns: u64, error: Option<&str>) -> ProbeSample {
        let error = error.map(ToOwned::to_owned);
        ProbeSample {
            kind: ProbeKind::Read,
            at_us: Timestamp::from_us(1),
            latency_ns,
            call_ns: Some(1),
            error,
            during: None,
        }
    }

    fn lengths(samples: &[WorkerSample]) -> Vec<usize> {
        let length = |sample: &WorkerSample| match sample {
            WorkerSample::Probes { slots, .. } => slots.len(),
            other => panic!("{other:?}"),
        };
        samples.iter().map(length).collect()
    }

    #[test]
    fn samples_are_collected_until_one_is_slow_or_failed() {
        let (sent, reporter) = reporter();
        reporter.add_probes([slot(5_000, None), slot(6_000, None)]);
        assert_eq!(take(&sent), []);
        reporter.add_probes([slot(2 * SLOW_CALL_NS, None)]);
        assert_eq!(lengths(&take(&sent)), [3]);
        reporter.add_probes([slot(5_000, Some("EIO"))]);
        assert_eq!(lengths(&take(&sent)), [1]);
        reporter.add_probes([slot(5_000, None)]);
        reporter.flush();
        assert_eq!(lengths(&take(&sent)), [1]);
        reporter.flush();
        assert_eq!(take(&sent), []);
    }

    #[test]
    fn samples_during_a_run_are_sent_immediately() {
        let (sent, reporter) = reporter();
        reporter.add_probes([ProbeSample { during: Some("time-machine".to_owned()), ..slot(5_000, None) }]);
        assert_eq!(lengths(&take(&sent)), [1]);
    }

    #[test]
    fn samples_of_a_long_stall_are_sent_in_batches() {
        let (sent, reporter) = reporter();
        reporter.add_probes((0..1200).map(|_| slot(2 * SLOW_CALL_NS, None)));
        assert_eq!(lengths(&take(&sent)), [500, 500, 200]);
    }

    #[test]
    fn processor_time_is_reported_once() {
        let (sent, reporter) = reporter();
        let mut reported = vec![];
        for total in [300, 700, 700] {
            reporter.set_cpu_ns(total);
            reporter.add_probes([slot(1, None)]);
            reporter.flush();
            reported.extend(take(&sent).into_iter().map(|sample| match sample {
                WorkerSample::Probes { cost_ns, .. } => cost_ns,
                other => panic!("{other:?}"),
            }));
        }
        assert_eq!(reported, [300, 400, 0]);
    }

    #[test]
    fn same_reason_is_reported_once_until_the_probe_continues() {
        let (sent, reporter) = reporter();
        reporter.report_disabled("read-only".to_owned());
        reporter.report_disabled("read-only".to_owned());
        assert_eq!(take(&sent).len(), 1);
        reporter.add_probes([slot(1, None)]);
        reporter.report_disabled("read-only".to_owned());
        assert_eq!(take(&sent), [WorkerSample::ProbeDisabled { reason: "read-only".to_owned() }]);
    }

    #[test]
    fn slow_call_has_a_workload_unless_the_probe_made_it() {
        let (sent, reporter) = reporter();
        let call = RawSlowCall {
            operation: Operation::Sync,
            at: Timestamp::from_us(5),
            duration_ns: 7,
            error: Some(libc::EIO),
        };
        let of_probe = RawSlowCall { error: None, ..call };
        reporter.recorder.thread_slot(3).record_slow_call(call);
        reporter.recorder.thread_slot(PROBE_THREAD_SLOT).record_slow_call(of_probe);
        reporter.report_slow_calls(Some("photo-batch"));
        let error = Some("EIO".to_owned());
        let of_run = SlowCall {
            operation: Operation::Sync,
            at_us: Timestamp::from_us(5),
            duration_ns: 7,
            error,
            workload: Some("photo-batch".to_owned()),
        };
        let of_probe = SlowCall { error: None, workload: None, ..of_run.clone() };
        assert_eq!(take(&sent), [WorkerSample::SlowCall(of_run), WorkerSample::SlowCall(of_probe)]);
        reporter.report_slow_calls(Some("photo-batch"));
        assert_eq!(take(&sent), []);
    }
}
