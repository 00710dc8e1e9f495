//! JSON form of the answer at a glance, for the widgets of other dashboards.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{Confidence, WeeklySummary};
use longhaul_model::TargetName;
use longhaul_model::status::Status;
use serde::Serialize;
use utoipa::ToSchema;

use crate::screens::recommendation;
use crate::screens::status::all_problems;
use crate::time::zoned;

/// The answer at a glance: one flat object, because widgets show single keys.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Glance {
    /// Recommendation as an English sentence.
    pub recommendation: String,
    /// Target to use; null if the data names none.
    pub target: Option<TargetName>,
    /// Minutes a week that the target saves; null if they are not known.
    pub minutes_a_week: Option<f64>,
    /// Confidence of the recommendation; null while nothing can be said.
    pub confidence: Option<Confidence>,
    /// Number of problems at this moment: ongoing stalls, problems of the service, targets that cannot be measured. Failures and old
    /// states of the past weeks, which the overview lists as well, are not counted. Null while the service starts.
    pub problems: Option<usize>,
    /// End of the last scheduled round, as RFC 3339 in UTC; null if there was none.
    pub last_round: Option<String>,
}

impl Glance {
    /// Returns the answer from the newest week and the state of the service, if it is known.
    pub fn new(weekly: &WeeklySummary, status: Option<&Status>) -> Self {
        let ended = status.and_then(|status| status.last_round.as_ref()).map(|round| round.ended_us);
        Self {
            recommendation: recommendation::heading(weekly),
            target: weekly.recommendation.target.clone(),
            minutes_a_week: weekly.recommendation.minutes_a_week.as_ref().map(|saved| saved.value),
            confidence: weekly.recommendation.confidence,
            problems: status.map(|status| all_problems(status, &TimeZone::UTC).len()),
            last_round: ended
                .and_then(|ended| zoned(ended, &TimeZone::UTC))
                .map(|ended| ended.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        }
    }
}
