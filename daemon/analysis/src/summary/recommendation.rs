//! The recommended target, from the results of all pairs (docs/methodology.md#recommendation).
//!
//! It adds no claim of its own: a target is recommended if each of its pairs says so.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::comparison::Comparison;
use super::minutes_saved::{MinutesSaved, minutes_saved};
use super::objection::{Objection, Withheld};
use super::pair_summary::PairSummary;
use longhaul_model::TargetName;

/// The recommended target, if the data supports one.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Recommendation {
    /// Target to use; `None` if the data names none.
    pub target: Option<TargetName>,
    /// Confidence of the recommendation; `None` while nothing can be said.
    pub confidence: Option<Confidence>,
    /// Minutes a week that the target saves; `None` until its verdict is decided, or while the interval is infinite.
    pub minutes_a_week: Option<MinutesSaved>,
    /// A share that took less time than all others, or about the same as the recommended one, or the only flawed one, and the
    /// reason for which it is not recommended; missing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
}

/// Confidence of a recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Every verdict about the target is decided.
    Decided,
    /// The target took less time in the rounds made so far; whether that lasts is not decided.
    SoFar,
    /// Every verdict over all tasks is decided, and no difference matters between the shares, except the withheld one if there is
    /// one.
    NoDifference,
    /// Every verdict over all tasks is decided, and no difference matters; but one share is faster for some tasks, another for
    /// others.
    DependsOnTask,
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
    let without_target = match faster_for_a_task(pairs).len() {
        0 | 1 => Confidence::NoDifference,
        _ => Confidence::DependsOnTask,
    };
    let flawed = flawed_among_equals(shares, pairs);
    let (target, confidence) = match (best(better), best(ahead)) {
        (Some(decided), _) => (Some(decided), Some(Confidence::Decided)),
        (None, Some(so_far)) => (Some(so_far), Some(Confidence::SoFar)),
        (None, None) => (None, (all_equal || flawed.is_some()).then_some(without_target)),
    };
    let decided = target.as_ref().filter(|_| confidence == Some(Confidence::Decided));
    let minutes_a_week = decided.and_then(|target| minutes_saved(target, pairs, reference));
    let withheld = match &target {
        None => best(PairSummary::faster).and_then(|fastest| withheld(&fastest, pairs)).or(flawed),
        Some(target) => flaws_of_others(target, pairs),
    };
    Recommendation { target, confidence, minutes_a_week, withheld }
}

/// Returns the target that is better by the verdict or, while that is open, by the rounds made so far.
fn ahead(pair: &PairSummary) -> Option<&TargetName> {
    pair.faster().filter(|faster| pair.objection(faster).is_none())
}

/// Returns the target that is better by the verdict, or, if no difference matters, the one that works while the other does not.
fn better(pair: &PairSummary) -> Option<&TargetName> {
    let is_decided = pair.headline.as_ref().is_some_and(|headline| headline.verdict.is_decided());
    ahead(pair).filter(|_| is_decided).or_else(|| pair.unflawed_target())
}

/// Returns the first reason against another share, if the recommended one is faster than none and the unflawed one in each of its
/// pairs.
fn flaws_of_others(recommended: &TargetName, pairs: &[PairSummary]) -> Option<Withheld> {
    let mut own = pairs.iter().filter(|pair| pair.includes(recommended));
    let first = own.clone().next().filter(|_| own.all(|pair| pair.unflawed_target() == Some(recommended)))?;
    let other = first.other(recommended);
    let objection = first.objection(other)?;
    Some(Withheld { target: other.clone(), instead_of: recommended.clone(), objection })
}

/// Returns the one share that was damaged or fails while all others are equal, if each of them is better than it; there are at least
/// two others.
fn flawed_among_equals(shares: &[&TargetName], pairs: &[PairSummary]) -> Option<Withheld> {
    shares.iter().find_map(|share| {
        let (own, others): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.includes(share));
        let is_worse = own.iter().all(|pair| better(pair) == Some(pair.other(share)));
        let is_last = is_worse && !others.is_empty() && others.into_iter().all(is_equal);
        let mut flaws = own.into_iter().filter(|_| is_last).filter_map(|pair| {
            let objection = pair.objection(share).filter(Objection::is_flaw)?;
            Some(Withheld { target: (*share).clone(), instead_of: pair.other(share).clone(), objection })
        });
        flaws.next()
    })
}

/// Returns the first reason for which a share that took less time than all others is not recommended.
fn withheld(target: &TargetName, pairs: &[PairSummary]) -> Option<Withheld> {
    let of_target = pairs.iter().filter(|pair| pair.includes(target));
    let objections = of_target.filter_map(|pair| Some((pair, pair.objection(target)?)));
    objections
        .map(|(pair, objection)| Withheld {
            target: target.clone(),
            instead_of: pair.other(target).clone(),
            objection,
        })
        .next()
}

/// Returns true if the verdict over all tasks is that no difference matters, and nothing speaks against either target.
fn is_equal(pair: &PairSummary) -> bool {
    let headline = pair.headline.as_ref();
    let is_decided = headline.is_some_and(|headline| headline.verdict.is_decided());
    let speaks_against = |name| pair.objection(name).filter(|objection| !objection.is_about_minutes());
    is_decided && pair.faster().is_none() && [&pair.a, &pair.b].into_iter().find_map(speaks_against).is_none()
}

/// Returns the targets that are decided to be faster than another one for a task that takes long enough to be noticed.
fn faster_for_a_task(pairs: &[PairSummary]) -> BTreeSet<&TargetName> {
    let is_noticed = |task: &&Comparison| !task.is_instant() && !task.is_contradicted_by_mean();
    let tasks = pairs.iter().flat_map(|pair| &pair.tasks).filter(is_noticed);
    tasks.filter_map(Comparison::winner).collect()
}
