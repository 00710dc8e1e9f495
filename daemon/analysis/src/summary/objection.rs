//! Reasons for which a share that did not take more time is not recommended (docs/methodology.md#recommendation).

use serde::Serialize;
use utoipa::ToSchema;

use super::change::ChangePart;
use super::minutes_saved::{MinutesSaved, saved_in};
use super::pair_summary::PairSummary;
use longhaul_model::TargetName;

/// A share that took less time than the others, or about the same, and the reason for which it is not recommended.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Withheld {
    /// Share that is not recommended.
    pub target: TargetName,
    /// Share that it is compared with; the recommended one if there is one.
    pub instead_of: TargetName,
    /// Reason for which it is not recommended.
    pub objection: Objection,
}

/// Reason for which a share is not recommended although it took less time.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Objection {
    /// Data on it differed from what was written.
    Damaged,
    /// A task failed in each of its last rounds, while the other share worked.
    Failing,
    /// It is proven to fail more often.
    LessReliable,
    /// The ratio changed, there is no verdict about the days since, and in them it is not faster by a difference that matters.
    Changed {
        /// Day of the event at which it changed, or else the first day after the change, as an ISO date.
        date: String,
        /// Number of valid days since.
        days: usize,
    },
    /// It took less time in most rounds, but so much more in the others that it is not the faster one on average.
    Outliers {
        /// Geometric mean over all rounds of the time on it divided by the time on the other share.
        ratio: f64,
        /// Number of these rounds.
        rounds: usize,
    },
    /// For the usage profile it costs more time than the other share.
    MoreMinutes(MinutesSaved),
    /// The same, but the days are of two kinds, and no one number is right.
    MoreTime,
}

impl Objection {
    /// Returns true if the share does not work as it should, whatever time it takes.
    pub(super) fn is_flaw(&self) -> bool {
        matches!(self, Self::Damaged | Self::Failing | Self::LessReliable)
    }

    /// Returns true if it is about the time that the usage profile takes.
    pub(super) fn is_about_minutes(&self) -> bool {
        matches!(self, Self::MoreMinutes(_) | Self::MoreTime)
    }
}

impl PairSummary {
    /// Returns the target that took less time by the verdict over all tasks or, while that is open, in the rounds made so far.
    pub(super) fn faster(&self) -> Option<&TargetName> {
        let headline = self.headline.as_ref()?;
        if headline.verdict.is_decided() {
            return headline.winner();
        }
        let ratio = headline.so_far.ratio.filter(|ratio| ratio.is_difference())?;
        Some(if ratio.value > 1.0 { &self.a } else { &self.b })
    }

    /// Returns the target against which nothing speaks, if no difference of the times matters and the other target was damaged or
    /// fails.
    pub(super) fn unflawed_target(&self) -> Option<&TargetName> {
        let headline = self.headline.as_ref()?;
        let is_equal = headline.verdict.is_decided() && headline.winner().is_none();
        let is_flawed = |name| self.objection(name).as_ref().is_some_and(Objection::is_flaw);
        let is_unflawed = |name: &&TargetName| self.objection(name).is_none() && is_flawed(self.other(name));
        [&self.a, &self.b].into_iter().find(is_unflawed).filter(|_| is_equal)
    }

    /// Returns the first reason for which a target of the pair is not recommended although it took less time.
    pub(super) fn objection(&self, name: &TargetName) -> Option<Objection> {
        let headline = self.headline.as_ref()?;
        if self.is_damaged(name) {
            return Some(Objection::Damaged);
        }
        if self.failing.contains(name) {
            return Some(Objection::Failing);
        }
        if self.less_reliable() == Some(name) {
            return Some(Objection::LessReliable);
        }
        // Of the time on the target divided by the time on the other one.
        let ratio_of = |ratio: f64| if self.a == *name { 1.0 / ratio } else { ratio };
        if let Some(change) = headline.change.as_ref().filter(|change| {
            let is_judged = change.described == ChangePart::After && headline.verdict.is_decided();
            !is_judged && ratio_of(change.ratio_after) * headline.threshold > 1.0
        }) {
            return Some(Objection::Changed { date: change.date.clone(), days: change.days_after });
        }
        if let Some(ratio) = headline.ratio_with_outliers.map(ratio_of).filter(|ratio| *ratio >= 1.0) {
            return Some(Objection::Outliers { ratio, rounds: headline.rounds.complete });
        }
        // Minutes know nothing of failures and damage.
        let is_sound = self.less_reliable().is_none() && self.failing.is_empty() && self.damaged.is_empty();
        let saved = saved_in(self, name).filter(|saved| is_sound && saved.high < 0.0)?;
        Some(match self.has_minutes_of_all_days() {
            true => Objection::MoreMinutes(saved),
            false => Objection::MoreTime,
        })
    }
}
