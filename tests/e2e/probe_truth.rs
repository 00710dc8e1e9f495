//! Compares the latency probe with a known truth: a file system that delays requests by a script, so that the latency
//! at each moment is known to the millisecond.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::fuse::slow::{Script, Slow};
use crate::support::probing::{RecordedSamples, Sampling, plan_every};
use crate::support::{Place, machine, mounts};
use longhaul_measure::platform::{monotonic_ns, wall_clock};
use longhaul_model::draw::draw;
use longhaul_model::{ProbePlan, ProbeSample, Timestamp};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;
/// Interval between two slots of the probe, in milliseconds.
const INTERVAL_MS: u64 = 50;
/// Time in nanoseconds for which a drawn delay stays in effect.
const CELL_NS: u64 = 200 * MILLISECOND;
/// Start of the stall, in nanoseconds after the start of the script.
const STALL_AFTER_NS: u64 = 32 * SECOND;
/// Duration of the script after the end of the stall, in nanoseconds.
const AFTER_STALL_NS: u64 = 22 * SECOND;
/// Largest p99 of the wake-up delay, in nanoseconds, with which the test is meaningful: 3 % of 20 ms.
const LATE_NS: u64 = 600_000;
/// Time for which the probe runs without any delay before the script starts.
const UNDELAYED_TIME: Duration = Duration::from_secs(5);

/// Script with random delays of 15 to 30 ms, mostly short, and one stall.
#[derive(Clone)]
struct Delays {
    /// Start of the script in nanoseconds on the monotonic clock; 0 before the start.
    begin_ns: Arc<AtomicU64>,
    stall_ns: u64,
}

impl Delays {
    /// Creates a script with a stall of 20 s, or of 200 s if `LONGHAUL_LONG_STALLS` is set.
    fn new() -> Self {
        let seconds = if std::env::var_os("LONGHAUL_LONG_STALLS").is_some() { 200 } else { 20 };
        Self { begin_ns: Arc::default(), stall_ns: seconds * SECOND }
    }

    fn begin(&self) -> u64 {
        let begin_ns = monotonic_ns();
        self.begin_ns.store(begin_ns, Ordering::SeqCst);
        begin_ns
    }

    fn seconds(&self) -> f64 {
        (STALL_AFTER_NS + self.stall_ns + AFTER_STALL_NS) as f64 / 1e9
    }

    /// Returns the delay in nanoseconds of a call that arrives this long after the start.
    fn delay_at(&self, since_ns: u64) -> u64 {
        let stall_end = STALL_AFTER_NS + self.stall_ns;
        if (STALL_AFTER_NS..stall_end).contains(&since_ns) {
            return stall_end - since_ns + delay_ns(stall_end);
        }
        delay_ns(since_ns)
    }
}

fn delay_ns(since_ns: u64) -> u64 {
    let drawn = (draw(3, 4, since_ns / CELL_NS) >> 11) as f64 / (1u64 << 53) as f64;
    15 * MILLISECOND + (15e6 * drawn.powi(3)) as u64
}

impl Script for Delays {
    fn answered_ns(&self, now_ns: u64, is_timed: bool) -> u64 {
        let begin_ns = self.begin_ns.load(Ordering::SeqCst);
        let Some(since) = now_ns.checked_sub(begin_ns).filter(|_| begin_ns > 0) else { return now_ns };
        let is_stalled = (STALL_AFTER_NS..STALL_AFTER_NS + self.stall_ns).contains(&since);
        if is_timed || is_stalled { now_ns + self.delay_at(since) } else { now_ns }
    }
}

#[test]
#[ignore = "needs a machine that hands responses over within 0.3 ms; on the one of November 2026 p50 is 5 % off, with older code too"]
fn probe_measures_true_latency_but_a_closed_loop_not() {
    mounts::only_in_own_mounts!(probe_measures_true_latency_but_a_closed_loop_not);
    // Processor time taken by other programs would look like a delay of the file system.
    machine::request_realtime_priority();
    let place = Place::new();
    let (at, local, delays) = (place.folder("mount"), place.folder("local"), Delays::new());
    let slow = Slow::mount(&at, 1, delays.clone());
    let plan = ProbePlan { read_file_bytes: 16 << 20, ..plan_every(INTERVAL_MS) };
    let pool_bytes = plan.read_file_bytes;
    let mut sampling = Sampling::on(&at, &local, plan);
    let recorder = sampling.start();
    machine::wait_until("the probe's file to be created", || slow.largest_file() == pool_bytes);
    let finished = recorder.total_bytes();
    machine::wait_until("the first reads", || recorder.total_bytes().0 > finished.0 + 50_000);

    std::thread::sleep(UNDELAYED_TIME);
    let sleeper = Sleeper::start();
    let begin = wall_clock();
    delays.begin();
    machine::wait_until("the probe to be stalled", || {
        recorder.probe_in_flight().is_some_and(|flight| flight.since_ns + SECOND < monotonic_ns())
    });
    assert_eq!(recorder.in_flight(), None, "the probe hangs, not a run");
    std::thread::sleep(Duration::from_secs_f64(delays.seconds() - STALL_AFTER_NS as f64 / 1e9 - 1.5));
    let recorded = sampling.end();
    let late_ns = sleeper.late_ns();
    let late_ms = late_ns as f64 / 1e6;
    assert!(
        late_ns <= LATE_NS,
        "this machine wakes a sleeping thread {late_ms:.1} ms late at p99: too late to measure"
    );
    let request_times = std::mem::take(&mut *slow.controls.request_times.lock().unwrap());
    check(&recorded, &Truth { delays, begin, request_times });
    drop(slow);
}

/// Thread that only sleeps, to measure how late this machine wakes threads.
struct Sleeper {
    ends: Arc<AtomicU64>,
    thread: JoinHandle<Vec<u64>>,
}

impl Sleeper {
    fn start() -> Self {
        const NAP: Duration = Duration::from_millis(5);
        let ends = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut late = vec![];
            while seen.load(Ordering::Relaxed) == 0 {
                let began_ns = monotonic_ns();
                std::thread::sleep(NAP);
                late.push((monotonic_ns() - began_ns).saturating_sub(NAP.as_nanos() as u64));
            }
            late
        });
        Self { ends, thread }
    }

    /// Stops the thread and returns the p99 of its wake-up delay in nanoseconds.
    fn late_ns(self) -> u64 {
        self.ends.store(1, Ordering::Relaxed);
        let mut late = self.thread.join().unwrap();
        late.sort_unstable();
        quantile(&late, 0.99)
    }
}

/// Known truth: the script, and the times at which the file system answered.
struct Truth {
    delays: Delays,
    /// Start of the script.
    begin: Timestamp,
    /// Arrival and answer time of each request, in nanoseconds on the monotonic clock. A busy machine may answer
    /// later than the script requires.
    request_times: Vec<(u64, u64)>,
}

impl Truth {
    /// Returns the true latency of a request at a slot's scheduled time, in nanoseconds: from that time (or from the
    /// arrival of the request, if none was pending then) until the next answer, plus the time to and from the file
    /// system.
    fn true_latency_ns(&self, slot: &ProbeSample, path_ns: u64) -> u64 {
        let begin_ns = self.delays.begin_ns.load(Ordering::SeqCst);
        let asked_ns = begin_ns + slot.at_us.since(self.begin).as_nanos() as u64;
        let next = self.request_times.partition_point(|(_, answered_ns)| *answered_ns <= asked_ns);
        let (arrived_ns, answered_ns) = self.request_times[next.min(self.request_times.len() - 1)];
        answered_ns.saturating_sub(arrived_ns.max(asked_ns)) + path_ns
    }

    /// Checks that the file system answered no request earlier than the script requires.
    fn check_script(&self) {
        let begin_ns = self.delays.begin_ns.load(Ordering::SeqCst);
        let scripted = self.request_times.iter().filter(|(arrived_ns, _)| *arrived_ns >= begin_ns);
        for (arrived_ns, answered_ns) in scripted {
            assert!(*answered_ns >= arrived_ns + self.delays.delay_at(arrived_ns - begin_ns));
        }
    }
}

fn check(recorded: &RecordedSamples, known: &Truth) {
    known.check_script();
    let slots: Vec<ProbeSample> = recorded
        .slots()
        .into_iter()
        .filter(|slot| slot.at_us > known.begin + Duration::from_millis(500))
        .collect();
    check_slots(&slots);
    check_quantiles(&slots, known, path_ns(recorded, known.begin));
    check_stall(recorded, known);
}

/// Checks that the samples are in order, that none failed, and that nearly all slots have one.
fn check_slots(slots: &[ProbeSample]) {
    assert!(
        slots.iter().all(|slot| slot.error.is_none()),
        "{:?}",
        slots.iter().find(|slot| slot.error.is_some())
    );
    assert!(
        slots.windows(2).all(|two| two[0].at_us < two[1].at_us),
        "samples are in the order of their scheduled times"
    );
    let spanned =
        slots[slots.len() - 1].at_us.seconds_since(slots[0].at_us) / (INTERVAL_MS as f64 / 1000.0) + 1.0;
    // If the machine does not run the probe in time, a slot has no sample.
    assert!(
        (0.995..1.0005).contains(&(slots.len() as f64 / spanned)),
        "{} of {spanned:.1} slots",
        slots.len()
    );
}

/// Checks that the quantiles of the probe match the truth, and that those of a closed loop, which sends a request
/// only after the previous response, do not.
fn check_quantiles(slots: &[ProbeSample], known: &Truth, path_ns: u64) {
    let mut truth: Vec<u64> = slots.iter().map(|slot| known.true_latency_ns(slot, path_ns)).collect();
    let mut probe: Vec<u64> = slots.iter().map(|slot| slot.latency_ns).collect();
    // A closed loop would have measured exactly these call durations.
    let mut closed: Vec<u64> = slots.iter().filter_map(|slot| slot.call_ns).collect();
    [&mut truth, &mut probe, &mut closed].into_iter().for_each(|values| values.sort_unstable());
    eprintln!(
        "| {} slots every {INTERVAL_MS} ms, {} calls, a stall of {} s, {:.3} ms without delay",
        slots.len(),
        closed.len(),
        known.delays.stall_ns / SECOND,
        path_ns as f64 / 1e6
    );
    eprintln!("| {:>6} {:>14} {:>14} {:>14}", "ms", "truth", "probe", "closed loop");
    let line = |share: f64| {
        let at = [&truth, &probe, &closed].map(|values| quantile(values, share));
        let [truth, probe, closed] = at.map(|nanoseconds| nanoseconds as f64 / 1e6);
        eprintln!("| {:>6} {truth:>14.3} {probe:>14.3} {closed:>14.3}", format!("p{}", share * 100.0));
        at
    };
    for share in [0.5, 0.99, 0.999] {
        let [truth, probe, _] = line(share);
        let allowed = (truth as f64 * 0.03).max(0.2e6);
        assert!(
            (truth as f64 - probe as f64).abs() <= allowed,
            "p{}: {probe} ns, truth {truth} ns",
            share * 100.0
        );
    }
    // The same calls with the delays of the script: of a thousand calls a single one decides p99.9, and a busy
    // machine may delay one by itself.
    let mut scripted: Vec<u64> = slots.iter().filter_map(|slot| call_delay_ns(slot, known)).collect();
    scripted.sort_unstable();
    assert!(quantile(&truth, 0.999) > 100 * quantile(&scripted, 0.999), "a closed loop hides the stall");
    assert!(
        quantile(&truth, 0.99) > 100 * quantile(&closed, 0.99),
        "a closed loop hides the stall in measured values too"
    );
}

/// Checks that the stall is reported once, with its start and duration.
fn check_stall(recorded: &RecordedSamples, Truth { delays, begin, .. }: &Truth) {
    let waits = recorded.slow_calls();
    let [stall] = &waits[..] else { panic!("not exactly one slow call: {waits:?}") };
    let start_error = stall.at_us.seconds_since(*begin) - STALL_AFTER_NS as f64 / 1e9;
    assert!(start_error.abs() < 1.0 && stall.workload.is_none(), "{stall:?}");
    assert!((stall.duration_ns as f64 - delays.stall_ns as f64).abs() < 1e9, "{stall:?}");
}

/// Returns the time in nanoseconds that a call needs to and from the FUSE file system, which is part of the latency
/// but not of the script: the median of the calls before the script started.
fn path_ns(recorded: &RecordedSamples, begin: Timestamp) -> u64 {
    let before = recorded.slots().into_iter().filter(|slot| slot.at_us < begin - Duration::from_millis(100));
    let calls: Vec<u64> = before.filter_map(|slot| slot.call_ns).collect();
    assert!(calls.len() >= 50, "{} calls without a delay", calls.len());
    // Only the latest calls: earlier ones ran while the probe's file was created.
    let mut latest = calls[calls.len() - 50..].to_vec();
    latest.sort_unstable();
    quantile(&latest, 0.5)
}

/// Returns the scripted delay of a slot's call in nanoseconds, from the time of the call; `None` if the slot had no
/// call.
fn call_delay_ns(slot: &ProbeSample, Truth { delays, begin, .. }: &Truth) -> Option<u64> {
    let since_ns = slot.at_us.since(*begin).as_nanos() as u64;
    Some(delays.delay_at(since_ns + slot.latency_ns.saturating_sub(slot.call_ns?)))
}

/// Returns the smallest value that at least this share of the sorted values does not exceed.
fn quantile(sorted: &[u64], share: f64) -> u64 {
    sorted[((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}
