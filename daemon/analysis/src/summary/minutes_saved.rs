//! The minutes a week that a share saves (docs/methodology.md#recommendation).

use serde::Serialize;
use utoipa::ToSchema;

use super::pair_summary::PairSummary;
use super::weekly_minutes::WeeklyMinutes;
use longhaul_model::TargetName;

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

/// Returns the minutes that a target saves: against the reference, or else against the target that comes closest.
pub(super) fn minutes_saved(
    target: &TargetName,
    pairs: &[PairSummary],
    reference: Option<&TargetName>,
) -> Option<MinutesSaved> {
    let is_shown = |pair: &&PairSummary| pair.includes(target) && pair.has_minutes_of_all_days();
    let mut saved: Vec<MinutesSaved> =
        pairs.iter().filter(is_shown).filter_map(|pair| saved_in(pair, target)).collect();
    saved.sort_by(|one, other| one.value.total_cmp(&other.value));
    let of_reference = saved.iter().find(|saved| Some(&saved.instead_of) == reference);
    of_reference.or(saved.first()).cloned()
}

/// Returns the minutes that a target saves against the other target of a pair, also those that are not shown; negative if it costs
/// them.
pub(super) fn saved_in(pair: &PairSummary, target: &TargetName) -> Option<MinutesSaved> {
    let (minutes, profile) = match (pair.own_minutes, pair.ordinary_minutes) {
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
