//! Compares what was attributed with what was injected.

use longhaul_analysis::attribution::{Attribution, Layer};

use super::faults::Fault;
use super::runs::{Measured, NasSource, Share};
use crate::machines::{Findings, note};

/// Share of a metric's time that faults must add for the metric to count.
const MIN_INJECTED: f64 = 0.4;
/// Time that faults must add for the metric to count, in seconds: the kernel counts processor times in ticks of 10 ms.
const MIN_INJECTED_SECONDS: f64 = 0.3;
/// Allowed difference between an attributed and an injected share.
const TOLERANCE: f64 = 0.1;
/// Least share of trials whose largest part is named right.
const MIN_RIGHT: f64 = 0.95;

const COLUMNS: [&str; 8] =
    ["trial", "share", "NAS asked", "fault", "metric", "seconds", "injected, attributed (%)", "named"];

/// One trial: a fault alone, then with a second one.
#[derive(Clone, Copy)]
pub struct Trial {
    /// Number of the trial.
    pub number: u64,
    /// Share on which the tasks run.
    pub share: Share,
    /// Readings that the NAS gives.
    pub source: NasSource,
    /// First fault.
    pub first: Fault,
    /// Second fault.
    pub second: Option<Fault>,
}

/// Table and counts of all trials.
#[derive(Default)]
pub struct Score {
    findings: Findings,
    /// Metrics that faults made slower.
    trials: usize,
    largest_right: usize,
    named_right: usize,
    named_wrong: usize,
    shares: usize,
    shares_close: usize,
    quiet: usize,
    blamed: usize,
}

type Parts = [f64; Layer::ALL.len()];

fn seconds(found: &Attribution) -> Parts {
    Layer::ALL.map(|layer| found.seconds_of(layer).unwrap_or(0.0))
}

fn shares(parts: &Parts) -> Parts {
    let sum: f64 = parts.iter().sum();
    parts.map(|part| part / sum.max(f64::MIN_POSITIVE))
}

/// Run with one fault alone.
#[derive(Clone, Copy)]
pub struct Alone<'a> {
    /// The fault.
    pub fault: Fault,
    /// Times with it.
    pub run: &'a Measured,
}

/// Run with one or two faults, with what is needed to tell what each of them added.
#[derive(Clone, Copy)]
pub struct Slowed<'a> {
    /// Times without a fault.
    pub quiet: &'a Measured,
    /// Times with each of the faults alone.
    pub alone: &'a [Alone<'a>],
    /// Times with all of them.
    pub now: &'a Measured,
}

/// Compares the attribution of a run with what was injected: the parts of the quiet run, and what each fault added.
pub fn judge(trial: Trial, run: Slowed<'_>, score: &mut Score) {
    for now in &run.now.metrics {
        let Some(before) = run.quiet.metrics.iter().find(|one| one.metric == now.metric) else { continue };
        let injected = now.seconds - before.seconds;
        let shares = run.shares_of_faults(now.metric);
        let is_much = injected >= (MIN_INJECTED * now.seconds).max(MIN_INJECTED_SECONDS);
        let Some(shares) = shares.filter(|_| is_much) else { continue };
        let mut expected = seconds(before);
        for (one, share) in run.alone.iter().zip(&shares) {
            expected[visible(one.fault, trial.source) as usize] += injected * share;
        }
        let name = run.alone.iter().map(|one| format!("{:?}", one.fault)).collect::<Vec<_>>().join(" + ");
        let expected = self::shares(&expected);
        score.judge(&expected, now);
        let row = row(trial, &name, now, &expected);
        score.add(row);
    }
}

impl Slowed<'_> {
    /// Returns the share of each fault in what all of them added to a metric: as each one alone adds. Losses are drawn anew in each
    /// run: the time of one is measured in the run with losses alone, and their number counted. `None` if none adds anything.
    fn shares_of_faults(&self, metric: &'static str) -> Option<Vec<f64>> {
        let time = |run: &Measured| {
            run.metrics.iter().find(|one| one.metric == metric).map_or(0.0, |one| one.seconds)
        };
        let losses = |run: &Measured| run.lost.get(metric).copied().unwrap_or(0) as f64;
        let added = |one: &Alone<'_>| {
            let is_loss = matches!(one.fault, Fault::Loss(_));
            let repeated = if is_loss { losses(self.now) / losses(one.run).max(1.0) } else { 1.0 };
            (time(one.run) - time(self.quiet)).max(0.0) * repeated
        };
        let added: Vec<f64> = self.alone.iter().map(added).collect();
        let sum: f64 = added.iter().sum();
        (sum > 0.0).then(|| added.iter().map(|seconds| seconds / sum).collect())
    }
}

/// Returns the layer in which a fault shows: without readings of the NAS its disk is a part of the server.
fn visible(fault: Fault, source: NasSource) -> Layer {
    match (fault.layer(), source) {
        (Layer::ServerDisk, NasSource::None) => Layer::Server,
        (layer, _) => layer,
    }
}

/// Returns whether a layer has the largest expected share, or one that is as large within the tolerance.
fn is_among_largest(expected: &Parts, layer: Layer) -> bool {
    let largest = expected.iter().copied().fold(0.0, f64::max);
    expected[layer as usize] >= largest - TOLERANCE
}

/// Returns the cells of one line of the table.
fn row(trial: Trial, fault: &str, found: &Attribution, expected: &Parts) -> [String; 8] {
    let percent = |parts: &Parts| parts.map(|part| format!("{:.0}", part * 100.0)).join("/");
    [
        trial.number.to_string(),
        trial.share.name.to_owned(),
        if trial.source == NasSource::Disk { "disk" } else { "no" }.to_owned(),
        fault.to_owned(),
        found.metric.to_owned(),
        format!("{:.2}", found.seconds),
        format!("{}, {}", percent(expected), percent(&shares(&seconds(found)))),
        found.largest.map_or("-", Layer::name).to_owned(),
    ]
}

impl Score {
    /// Adds a run without faults.
    pub fn add_quiet(&mut self, trial: Trial, quiet: &Measured) {
        for found in &quiet.metrics {
            self.quiet += 1;
            self.blamed += usize::from(found.largest.is_some());
            let row = row(trial, "none", found, &shares(&seconds(found)));
            self.add(row);
        }
    }

    /// Prints the table and the counts, and returns what does not hold.
    pub fn findings(self) -> Findings {
        let Self { mut findings, trials, largest_right, named_right, named_wrong, blamed, quiet, .. } = self;
        findings.print(&COLUMNS);
        note(&format!(
            "{largest_right} of {trials} largest parts right; {named_right} named right, {named_wrong} wrong; {} of {} shares \
             within 10 points; {blamed} named in {quiet} quiet metrics",
            self.shares_close, self.shares
        ));
        let least = MIN_RIGHT * trials as f64;
        let right = || format!("{largest_right} of {trials} largest parts right");
        findings.check(largest_right as f64 >= least, right);
        findings.check(named_right as f64 >= least, || format!("{named_right} of {trials} named right"));
        findings.check((trials - named_wrong) as f64 >= least, || {
            format!("{named_wrong} of {trials} named wrong")
        });
        findings.check(blamed == 0, || format!("{blamed} of {quiet} named without a fault"));
        findings
    }

    /// Counts a metric that faults made slower.
    fn judge(&mut self, expected: &Parts, found: &Attribution) {
        let attributed = shares(&seconds(found));
        let largest = Layer::ALL
            .into_iter()
            .max_by(|one, other| attributed[*one as usize].total_cmp(&attributed[*other as usize]));
        self.trials += 1;
        self.largest_right += usize::from(largest.is_some_and(|layer| is_among_largest(expected, layer)));
        if let Some(layer) = found.largest {
            let is_right = is_among_largest(expected, layer);
            self.named_right += usize::from(is_right);
            self.named_wrong += usize::from(!is_right);
        }
        self.shares += Layer::ALL.len();
        let is_close =
            |layer: &Layer| (expected[*layer as usize] - attributed[*layer as usize]).abs() <= TOLERANCE;
        self.shares_close += Layer::ALL.iter().filter(|layer| is_close(layer)).count();
    }

    /// Adds a line to the table, and prints it at once: a long test that fails still shows what it found.
    fn add(&mut self, row: [String; 8]) {
        self.findings.row(&row.each_ref().map(String::as_str));
        note(self.findings.rows.last().map_or("", String::as_str));
    }
}
