//! Which target to use, from the results of all pairs (docs/methodology.md#recommendation).
//!
//! It adds no claim of its own: a target is recommended if each of its pairs says so.

use serde::Serialize;
use utoipa::ToSchema;

use super::pair_summary::PairSummary;
use super::reliability::ReliabilityVerdict;
use super::weekly_minutes::WeeklyMinutes;
use longhaul_model::TargetName;

/// Which target to use, as far as the data says.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Recommendation {
    /// Target to use; `None` if the data names none.
    pub target: Option<TargetName>,
    /// Confidence of the recommendation; `None` while nothing can be said.
    pub confidence: Option<Confidence>,
    /// Minutes a week that the target saves; `None` until its verdict is decided, or while the interval is infinite.
    pub minutes_a_week: Option<MinutesSaved>,
}

/// Confidence of a recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Every verdict about the target is decided.
    Decided,
    /// The target took less time in the rounds made so far; whether that lasts is not decided.
    SoFar,
    /// Every verdict is decided, and no difference matters.
    NoDifference,
}

/// Minutes a week that a target saves.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MinutesSaved {
    /// Minutes a week less than on the other target.
    pub value: f64,
    /// Lower end of the interval, valid however often the report is read.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Target that takes longer.
    pub instead_of: TargetName,
    /// Usage profile for which this holds.
    pub profile: ProfileSource,
    /// Number of days over which the profile was counted; missing unless it is `counted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_days: Option<f64>,
}

/// Source of a usage profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileSource {
    /// The user's own, from the configuration.
    Own,
    /// Counted on the mounts.
    Counted,
    /// An ordinary week, because the user has given none and too little was counted ([`longhaul_model::PROFILE_LINES`]).
    OrdinaryWeek,
}

/// Returns the recommendation from the results of all pairs of the given shares. `reference` is the share that the
/// minutes are compared with, unless it is itself recommended.
pub(super) fn recommendation(
    shares: &[&TargetName],
    pairs: &[PairSummary],
    reference: Option<&TargetName>,
) -> Recommendation {
    let best = |beats: fn(&PairSummary) -> Option<&TargetName>| {
        let beats_all = |share: &&&TargetName| {
            pairs.iter().filter(|pair| pair.includes(share)).all(|pair| beats(pair) == Some(**share))
        };
        shares.iter().find(beats_all).filter(|_| shares.len() > 1).map(|share| (*share).clone())
    };
    let all_equal = !pairs.is_empty() && pairs.iter().all(is_equal);
    let (target, confidence) = match (best(PairSummary::winner), best(ahead)) {
        (Some(decided), _) => (Some(decided), Some(Confidence::Decided)),
        (None, Some(so_far)) => (Some(so_far), Some(Confidence::SoFar)),
        (None, None) => (None, all_equal.then_some(Confidence::NoDifference)),
    };
    let decided = target.as_ref().filter(|_| confidence == Some(Confidence::Decided));
    let minutes_a_week = decided.and_then(|target| minutes_saved(target, pairs, reference));
    Recommendation { target, confidence, minutes_a_week }
}

/// Returns the target that is better by the verdict or, while that is open, by the rounds made so far.
fn ahead(pair: &PairSummary) -> Option<&TargetName> {
    let headline = pair.headline.as_ref()?;
    if headline.verdict.is_decided() {
        return pair.winner();
    }
    let ratio = headline.so_far.ratio.filter(|ratio| ratio.is_difference())?;
    let faster = if ratio.value > 1.0 { &pair.a } else { &pair.b };
    (pair.less_reliable() != Some(faster) && !pair.is_damaged(faster)).then_some(faster)
}

/// Returns true if the verdict is that no difference matters, neither target fails more often, and no data was damaged.
fn is_equal(pair: &PairSummary) -> bool {
    let headline = pair.headline.as_ref();
    headline.is_some_and(|headline| headline.verdict.is_decided() && !headline.verdict.has_winner())
        && pair.damaged.is_empty()
        && match pair.reliability.verdict {
            ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => true,
            ReliabilityVerdict::WorseA | ReliabilityVerdict::WorseB => false,
        }
}

/// Returns the minutes that a target saves: against the reference, or else against the target that comes closest.
fn minutes_saved(
    target: &TargetName,
    pairs: &[PairSummary],
    reference: Option<&TargetName>,
) -> Option<MinutesSaved> {
    let mut saved: Vec<MinutesSaved> =
        pairs.iter().filter(|pair| pair.includes(target)).filter_map(|pair| saved_in(pair, target)).collect();
    saved.sort_by(|one, other| one.value.total_cmp(&other.value));
    let of_reference = saved.iter().find(|saved| Some(&saved.instead_of) == reference);
    of_reference.or(saved.first()).cloned()
}

fn saved_in(pair: &PairSummary, target: &TargetName) -> Option<MinutesSaved> {
    let (minutes, profile) = match (pair.weekly_minutes, pair.ordinary_minutes) {
        (Some(own), _) if own.counted_days.is_some() => (own, ProfileSource::Counted),
        (Some(own), _) => (own, ProfileSource::Own),
        (None, ordinary) => (ordinary?, ProfileSource::OrdinaryWeek),
    };
    let WeeklyMinutes { value, low, high, counted_days, .. } = minutes;
    // The minutes of a pair are those that its second target takes more.
    Some(if pair.a == *target {
        MinutesSaved { value, low, high, instead_of: pair.b.clone(), profile, counted_days }
    } else {
        MinutesSaved {
            value: -value,
            low: -high,
            high: -low,
            instead_of: pair.a.clone(),
            profile,
            counted_days,
        }
    })
}
