//! Checks times and traffic against what is physically possible.

use std::collections::BTreeMap;

use longhaul_model::{CacheState, Outcome, TASKS, WaitMetric, median};

use crate::family::ProtocolLabel;
use crate::share::{PhaseKey, SharedPhase, SharedResults, SharedRun};

/// Phases in which several threads make calls at once. In all others calls follow each other.
const PARALLEL_PHASES: [&str; 4] = ["copy", "open", "speed-large", "speed-small"];
/// Largest number of threads of a task.
const MAX_THREADS: f64 = 64.0;
/// Phase that waits on a schedule of its own, so that its metric is not its duration.
const PACED_PHASE: &str = "browse";
/// Rounding of times in seconds, and the time that starting and ending a phase takes.
const SLACK: f64 = 1e-3;
/// Least share of the duration of its phases that a metric has, as the median over its runs. On a busy machine, closing a
/// folder takes longer than showing it in some runs.
const MIN_SHARE_OF_PHASES: f64 = 0.75;
/// Part of its phases that a metric may leave out in each run, in seconds.
const CLOSING: f64 = 0.02;
/// Least number of runs from which their median is judged.
const MIN_RUNS: usize = 5;
/// Largest number of requests that the SMB client sends as one message.
const CHAINED_REQUESTS: f64 = 3.0;
/// Least quotient of the time in calls and that of their round trips, as the median over the runs of a phase. A quotient below
/// 1 is impossible; the rest is the error of the round trip time, which is measured just before a run.
const MIN_ROUND_TRIPS: f64 = 0.8;
/// Least share of the bytes of a cold phase that crossed the wire, as the median over its runs.
const MIN_COLD_BYTES: f64 = 0.5;
/// Bytes from which the traffic of a phase says something.
const MIN_BYTES: u64 = 1 << 20;

/// Finds times that are impossible.
pub(super) fn times(share: &SharedResults) -> Vec<String> {
    let complete = || share.runs().map(|(_, run)| run).filter(|run| run.outcome == Outcome::Ok);
    let of_run = complete().find_map(|run| impossible_run(share, run));
    of_run.into_iter().chain(too_short_metric(share)).chain(too_few_round_trips(share)).collect()
}

fn impossible_run(share: &SharedResults, run: &SharedRun) -> Option<String> {
    let sum: f64 = run.phases.iter().map(|phase| phase.seconds).sum();
    if sum > run.seconds * 1.001 + SLACK {
        return Some(format!("a run of {} took {:.3} s, but its phases {sum:.3} s", run.task, run.seconds));
    }
    run.phases
        .iter()
        .find_map(|phase| too_long_calls(share, run, phase))
        .or_else(|| too_long_metric(share, run))
}

/// Finds a phase whose calls took longer than the phase itself.
fn too_long_calls(share: &SharedResults, run: &SharedRun, phase: &SharedPhase) -> Option<String> {
    let name = share.phases[phase.key].phase.as_str();
    let threads = if PARALLEL_PHASES.contains(&name) { MAX_THREADS } else { 1.0 };
    let calls = phase.call_ns as f64 / 1e9;
    let is_possible = calls <= phase.seconds * threads * 1.01 + SLACK;
    (!is_possible).then(|| {
        format!("the calls of {name} in {} took {calls:.3} s, but the phase {:.3} s", run.task, phase.seconds)
    })
}

/// Returns each metric of a run with its time and the duration of its phases.
fn metrics<'s>(
    share: &'s SharedResults,
    run: &'s SharedRun,
) -> impl Iterator<Item = (&'static WaitMetric, f64, f64)> + use<'s> {
    let task = TASKS.iter().find(|task| task.name() == run.task);
    let metrics = task.into_iter().flat_map(|task| task.metrics()).zip(&run.times);
    metrics.filter_map(move |(metric, time)| Some((metric, (*time)?, duration(share, run, metric)?)))
}

/// Finds a metric that took longer than its phases.
fn too_long_metric(share: &SharedResults, run: &SharedRun) -> Option<String> {
    let is_too_long = |(_, time, phases): &(&WaitMetric, f64, f64)| *time > phases * 1.001 + SLACK;
    let (metric, time, phases) = metrics(share, run).find(is_too_long)?;
    Some(format!("{} took {time:.3} s, but its phases {phases:.3} s", metric.name))
}

/// Returns the median of the values of runs; `None` if they are too few to be judged.
fn typical(values: &[f64]) -> Option<f64> {
    median(values).filter(|_| values.len() >= MIN_RUNS)
}

/// Finds a metric that is usually much shorter than its phases.
fn too_short_metric(share: &SharedResults) -> Option<String> {
    let mut quotients: BTreeMap<(usize, &str), Vec<f64>> = BTreeMap::new();
    for (_, run) in share.runs() {
        for (metric, time, phases) in metrics(share, run) {
            let is_paced = metric.figures.iter().any(|(phase, _)| *phase == PACED_PHASE);
            let known = quotients.entry((share.target_of(run), metric.name)).or_default();
            known.extend((!is_paced).then(|| (time + CLOSING) / phases.max(SLACK)));
        }
    }
    quotients.iter().find_map(|((_, name), values)| {
        let typical = typical(values).filter(|typical| *typical < MIN_SHARE_OF_PHASES)?;
        Some(format!("{name} took {:.0} % of the time of its phases", typical * 100.0))
    })
}

/// Returns the duration of the phases of a metric; `None` if one is missing.
fn duration(share: &SharedResults, run: &SharedRun, metric: &WaitMetric) -> Option<f64> {
    let cache = metric.cache;
    let is_of =
        |key: &PhaseKey, name: &str| key.phase == name && (cache == CacheState::None || key.cache == cache);
    let seconds = |(name, _): &(&str, &str)| {
        let phase = run.phases.iter().find(|phase| is_of(&share.phases[phase.key], name))?;
        Some(phase.seconds)
    };
    metric.figures.iter().map(seconds).sum()
}

/// Finds a phase whose calls were answered faster than the network allows. Only phases without file data are judged: there, a
/// thread waits for each request.
fn too_few_round_trips(share: &SharedResults) -> Option<String> {
    let mut quotients: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for (_, run) in share.runs() {
        let Some(rtt) = run.rtt_us.filter(|rtt| *rtt > 0) else { continue };
        let chained = if share.epochs[run.epoch].protocol.is_smb() { CHAINED_REQUESTS } else { 1.0 };
        for phase in run.phases.iter().filter(|phase| phase.read == 0 && phase.written == 0) {
            let Some(requests) = phase.requests.filter(|requests| *requests >= 20) else { continue };
            let least = requests as f64 / chained * rtt as f64 / 1e6;
            quotients
                .entry((share.target_of(run), phase.key))
                .or_default()
                .push(phase.call_ns as f64 / 1e9 / least);
        }
    }
    quotients.iter().find_map(|((_, key), values)| {
        let typical = typical(values).filter(|typical| *typical < MIN_ROUND_TRIPS)?;
        let PhaseKey { phase, task, .. } = &share.phases[*key];
        Some(format!("{phase} of {task} took {typical:.2} times as long as its round trips alone"))
    })
}

/// Finds cold phases whose data did not cross the wire. There is none to a local disk, which may have it in memory.
pub(super) fn traffic(share: &SharedResults) -> Vec<String> {
    let mut shares: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    let has_wire = |run: &SharedRun| share.epochs[run.epoch].protocol != ProtocolLabel::Local;
    for run in share.runs().map(|(_, run)| run).filter(|run| has_wire(run)) {
        for phase in run.phases.iter().filter(|phase| phase.read >= MIN_BYTES) {
            let Some(crossed) = phase.wire_read else { continue };
            if share.phases[phase.key].cache == CacheState::Cold {
                let known = shares.entry((share.target_of(run), phase.key)).or_default();
                known.push(crossed as f64 / phase.read as f64);
            }
        }
    }
    let found = shares.iter().find_map(|((_, key), values)| {
        let typical = typical(values).filter(|typical| *typical < MIN_COLD_BYTES)?;
        let PhaseKey { phase, task, .. } = &share.phases[*key];
        let percent = typical * 100.0;
        Some(format!("only {percent:.0} % of the bytes that {phase} of {task} read cold crossed the wire"))
    });
    found.into_iter().collect()
}
