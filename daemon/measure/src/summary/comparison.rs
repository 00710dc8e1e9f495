//! Two targets on one endpoint, or over all: what was found, and what may be said.

use serde::Serialize;
use utoipa::ToSchema;

use super::cell::{Cell, Position};
use super::change::Change;
use super::verdict::{Estimate, Rule, Standing, Verdict, verdict};
use super::words;
use crate::model::{CacheState, Presence, TargetName};
use crate::stats::{Bootstrap, Steadiness, ratio_of_sums};
use crate::workloads::WORKLOADS;

/// How often days are resampled for descriptive intervals: enough for two digits.
const REPLICATES: usize = 1000;

/// What a comparison is about.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Subject {
    /// `workload/endpoint`, or `overall`.
    pub key: String,
    /// The workload's name; `None` over all.
    pub workload: Option<&'static str>,
    /// What it is to a person: "opening a large folder".
    pub activity: String,
    /// Whether it met caches; `None` over all.
    pub cache: Option<CacheState>,
    /// Who waits.
    pub presence: Presence,
}

impl Subject {
    /// An endpoint.
    pub(super) fn of(position: Position) -> Self {
        let endpoint = position.endpoint();
        Self {
            key: position.key(),
            workload: Some(WORKLOADS[position.workload].name()),
            activity: endpoint.activity.to_owned(),
            cache: Some(endpoint.cache),
            presence: endpoint.presence,
        }
    }

    /// All tasks together, or those of one kind.
    pub(super) fn overall(key: &str, activity: &str) -> Self {
        Self {
            key: key.to_owned(),
            workload: None,
            activity: activity.to_owned(),
            cache: None,
            presence: Presence::Background,
        }
    }
}

/// How many rounds there were, and who won them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Rounds {
    /// Planned while both targets were settled, those that were skipped or void included.
    pub planned: usize,
    /// With a value of both.
    pub complete: usize,
    /// In which the first was faster.
    pub won_by_a: usize,
    /// In which the second was faster.
    pub won_by_b: usize,
    /// In which both failed.
    pub both_failed: usize,
}

/// Two targets on one endpoint, or over all.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Comparison {
    /// What it is about.
    pub subject: Subject,
    /// The first target.
    pub a: TargetName,
    /// The second target.
    pub b: TargetName,
    /// What may be said.
    pub verdict: Verdict,
    /// The same in words, with its numbers.
    pub text: String,
    /// The time on `b` divided by the time on `a`; `None` while anything fits.
    pub ratio: Option<Estimate>,
    /// The chance that the interval misses, however often somebody looks.
    pub alpha: f64,
    /// Days with complete rounds, but too few of them to count.
    pub thin_days: usize,
    /// The rounds.
    pub rounds: Rounds,
    /// Median times of both in seconds, without failures; `None` over all.
    pub typical_seconds: Option<(f64, f64)>,
    /// Seconds waited on `b` divided by those on `a`, failures at their cap. The interval is descriptive.
    pub waited: Option<Estimate>,
    /// How many more days are expected to decide it; `None` if decided, or if more days are not expected to.
    pub days_still_needed: Option<usize>,
    /// The smallest ratio that the interval can tell from 1 now; `None` while it can tell none.
    pub visible_ratio: Option<f64>,
    /// What neighbouring days share; above 0.3 the ratio itself wanders and intervals hold less well than they say.
    pub autocorrelation: Option<f64>,
    /// Whether the ratio kept still over the last five days that count; `None` with fewer. A badge: it decides nothing.
    pub is_steady: Option<bool>,
    /// A change of the ratio on the way; everything above is then about the newest part that is long enough.
    pub change: Option<Change>,
    /// The log ratio of each day that counts, by date.
    pub days: Vec<DayRatio>,
}

/// One day of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DayRatio {
    /// The local day.
    pub date: String,
    /// The median over its rounds of the time on `b` divided by that on `a`.
    pub ratio: f64,
}

/// What all comparisons of a week share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The chance that an interval of a pair may miss.
    pub(super) alpha: f64,
    /// From which ratio on a difference matters.
    pub(super) threshold: f64,
}

/// Judges a cell and puts it into words.
pub(super) fn compare(
    subject: Subject,
    (a, b): (&TargetName, &TargetName),
    (cell, standing): (&Cell, Standing),
    terms: Terms,
) -> Comparison {
    let Terms { alpha, threshold } = terms;
    let pairing = &cell.pairing;
    let rule = Rule { alpha, threshold, presence: subject.presence, typical: pairing.typical, standing };
    let series = cell.series.as_ref();
    let verdict = series.map_or(Verdict::NotEnoughData, |series| verdict(series, &rule));
    let more = |days: usize, series_days: usize| days.saturating_sub(series_days).max(1);
    let needed = series.filter(|_| !verdict.is_decided()).and_then(|series| {
        let needed = series.days_needed(threshold.ln(), alpha)?.max(super::verdict::OPENING_DAYS);
        Some(more(needed, series.days()))
    });
    let comparison = Comparison {
        a: a.clone(),
        b: b.clone(),
        verdict,
        text: String::new(),
        ratio: series.and_then(|series| Estimate::of_ratio(series, alpha)),
        alpha,
        thin_days: pairing.thin_days,
        rounds: Rounds {
            planned: pairing.planned,
            complete: pairing.complete,
            won_by_a: pairing.won_by_a,
            won_by_b: pairing.won_by_b,
            both_failed: pairing.both_failed,
        },
        typical_seconds: pairing.typical,
        waited: waited(&pairing.waited),
        days_still_needed: needed,
        visible_ratio: series.map(|series| series.minimum_visible(alpha)).filter(|ratio| ratio.is_finite()),
        autocorrelation: series.map(|series| series.corrected_autocorrelation()),
        is_steady: steadiness(&pairing.days).map(|steadiness| steadiness.is_steady()),
        change: cell.change.clone(),
        days: pairing
            .days
            .iter()
            .map(|(day, ratio)| DayRatio { date: super::calendar(*day).to_string(), ratio: ratio.exp() })
            .collect(),
        subject,
    };
    Comparison { text: words::comparison(&comparison, threshold), ..comparison }
}

impl Comparison {
    /// The target on which it takes less time, and the other one; `None` without an estimate.
    pub fn faster_and_slower(&self) -> Option<(&TargetName, &TargetName)> {
        let ratio = self.ratio?;
        Some(if ratio.value < 1.0 { (&self.b, &self.a) } else { (&self.a, &self.b) })
    }

    /// The target that is called better, if one is.
    pub fn winner(&self) -> Option<&TargetName> {
        self.faster_and_slower().filter(|_| self.verdict.names_a_winner()).map(|(faster, _)| faster)
    }
}

/// How much the ratio moved over the last days.
fn steadiness(days: &[(i64, f64)]) -> Option<Steadiness> {
    Steadiness::of_days(&days.iter().map(|(_, ratio)| ratio.exp()).collect::<Vec<_>>())
}

/// The ratio of the times waited. Its interval comes from resampled days and is a description, never a verdict.
fn waited(by_day: &[(i64, (f64, f64))]) -> Option<Estimate> {
    let days: Vec<(f64, f64)> = by_day.iter().map(|(_, sums)| *sums).collect();
    let bootstrap = Bootstrap { seed: days.len() as u64, replicates: REPLICATES, level: 0.95 };
    let (low, high) = bootstrap.interval(&days, ratio_of_sums)?;
    let value = ratio_of_sums(&days.iter().collect::<Vec<_>>())?;
    Some(Estimate { value, low, high, days: days.len() })
}
