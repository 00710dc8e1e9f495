//! The results of two shares.

use serde::Serialize;
use utoipa::ToSchema;

use super::comparison::Comparison;
use super::reliability::{Reliability, ReliabilityVerdict};
use super::sequential::SequentialWeeks;
use super::weekly_minutes::WeeklyMinutes;
use longhaul_model::TargetName;

/// Comparison of two shares.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PairSummary {
    /// First share.
    pub a: TargetName,
    /// Second share.
    pub b: TargetName,
    /// Comparison over all tasks; `None` while no round has a value of every weighted metric on both shares.
    pub headline: Option<Comparison>,
    /// Comparisons over all metrics of one kind of wait: first interactive, then background.
    pub by_wait_kind: Vec<Comparison>,
    /// Comparisons of single metrics; cold and warm are separate.
    pub tasks: Vec<Comparison>,
    /// Results of the sequential-weeks design, for shares that were measured in alternating weeks; else empty.
    pub sequential_weeks: Vec<SequentialWeeks>,
    /// Comparison of the failure episodes of both shares.
    pub reliability: Reliability,
    /// Difference in minutes a week for the user's usage profile; `None` without a profile, while the interval is infinite, or
    /// if days of another kind make most of it.
    pub weekly_minutes: Option<WeeklyMinutes>,
    /// Like `weekly_minutes`, but also if days of another kind make most of it. Only the recommendation uses it.
    #[serde(skip)]
    pub own_minutes: Option<WeeklyMinutes>,
    /// Like `own_minutes`, for an ordinary week; `None` if the user has given a usage profile. Only the recommendation uses it.
    #[serde(skip)]
    pub ordinary_minutes: Option<WeeklyMinutes>,
    /// Shares whose data differed from what was written, in their newest epoch. None of them is called better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<TargetName>,
    /// Shares on which a task failed in each of the last rounds, while the other share worked. None of them is recommended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<TargetName>,
}

impl PairSummary {
    /// Returns the better target by the verdict over all tasks; `None` without a winner, or if the winner fails more
    /// often or its data was damaged.
    pub fn winner(&self) -> Option<&TargetName> {
        let winner = self.headline.as_ref()?.winner()?;
        (self.less_reliable() != Some(winner) && !self.is_damaged(winner)).then_some(winner)
    }

    /// Returns true if data on the target differed from what was written.
    pub fn is_damaged(&self, name: &TargetName) -> bool {
        self.damaged.contains(name)
    }

    /// Returns the target that is proven to fail more often.
    pub fn less_reliable(&self) -> Option<&TargetName> {
        match self.reliability.verdict {
            ReliabilityVerdict::WorseA => Some(&self.a),
            ReliabilityVerdict::WorseB => Some(&self.b),
            ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => None,
        }
    }

    /// Returns true if the difference in waiting time over all tasks is decided.
    pub fn is_decided(&self) -> bool {
        self.headline.as_ref().is_some_and(|headline| headline.verdict.is_decided())
    }

    /// Returns true if the minutes a week that are known hold for all days, so that they can be shown.
    pub(super) fn has_minutes_of_all_days(&self) -> bool {
        self.own_minutes.or(self.ordinary_minutes).is_some_and(|minutes| minutes.is_of_all_days)
    }

    /// Returns the target of the pair that is not the given one.
    pub fn other(&self, name: &TargetName) -> &TargetName {
        if self.a == *name { &self.b } else { &self.a }
    }

    /// Returns true if the pair compares the target.
    pub fn includes(&self, name: &TargetName) -> bool {
        self.a == *name || self.b == *name
    }
}
