//! JSON form of a week and of a pair: the data with its sentences.

use longhaul_analysis::summary::{
    AtRoundTrip, ClientCaching, ComparedRounds, Comparison, Confidence, DayRatio, EventLine, Excluded,
    Failures, Freshness, LastingChange, MetricRow, MinutesSaved, PairSummary, RatioEstimate, Recommendation,
    Reliability, ReplayFidelity, RoundTripUnused, RoundsOfWeek, Scores, SequentialWeeks, SoFar, Subject,
    TargetLine, Verdict, Week, WeeklyMinutes, WeeklySummary, Withheld,
};
use longhaul_model::{AnalysisSettings, Scale, TargetName};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::screens::{recommendation, sentences, so_far};

/// A week: `report --json` and `/api/v1/week`. The weekly summary, plus the client caching verdicts that the
/// export does not contain.
#[derive(Debug, Serialize, ToSchema)]
pub struct WeekJson<'a> {
    /// The weekly summary.
    #[serde(flatten, with = "WeeklyForm")]
    pub weekly: &'a WeeklySummary,
    /// The verdict on client caching, for each protocol.
    #[serde(serialize_with = "caching")]
    pub caching: &'a [ClientCaching],
}

/// A property that JSON has and the data has not: a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Sentence {
    /// Name of the schema with the property.
    pub schema: &'static str,
    /// Name of the property.
    pub property: &'static str,
    /// Property that precedes it.
    pub after: &'static str,
    /// Description of the property.
    pub description: &'static str,
}

/// The sentences of the forms, for the OpenAPI document.
pub const SENTENCES: [Sentence; 5] = [
    Sentence {
        schema: "Comparison",
        property: "text",
        after: "verdict",
        description: "Verdict as an English sentence, with its numbers.",
    },
    Sentence {
        schema: "Recommendation",
        property: "text",
        after: "target",
        description: "Recommendation as an English sentence.",
    },
    Sentence {
        schema: "SoFar",
        property: "text",
        after: "rounds",
        description: "Statement about the rounds made so far, as an English sentence in the past tense.",
    },
    Sentence {
        schema: "PairSummary",
        property: "reliability_text",
        after: "reliability",
        description: "Reliability and time waited, as an English sentence.",
    },
    Sentence {
        schema: "ClientCaching",
        property: "text",
        after: "rereads",
        description: "Verdict as an English sentence.",
    },
];

#[derive(Serialize)]
#[serde(remote = "WeeklySummary")]
struct WeeklyForm {
    schema: u32,
    week: Week,
    first_day: String,
    last_day: String,
    hours: f64,
    scale: Option<Scale>,
    settings: AnalysisSettings,
    targets: Vec<TargetLine>,
    #[serde(getter = "RecommendationJson::new")]
    recommendation: RecommendationJson,
    #[serde(serialize_with = "pairs")]
    pairs: Vec<PairSummary>,
    scores: Vec<Scores>,
    table: Vec<MetricRow>,
    failures: Vec<Failures>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    freshness: Vec<Freshness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayFidelity>,
    rounds: RoundsOfWeek,
    events: Vec<EventLine>,
    excluded: Vec<Excluded>,
}

/// A pair of shares with its sentences, as `report --pair A,B --json` prints it.
#[derive(Debug, Serialize)]
pub struct PairJson<'a> {
    a: &'a TargetName,
    b: &'a TargetName,
    headline: Option<ComparisonJson<'a>>,
    by_wait_kind: Vec<ComparisonJson<'a>>,
    tasks: Vec<ComparisonJson<'a>>,
    sequential_weeks: &'a [SequentialWeeks],
    reliability: &'a Reliability,
    reliability_text: String,
    weekly_minutes: Option<WeeklyMinutes>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    damaged: &'a [TargetName],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    failing: &'a [TargetName],
}

impl<'a> From<&'a PairSummary> for PairJson<'a> {
    fn from(pair: &'a PairSummary) -> Self {
        let judged = |comparison| ComparisonJson::new(comparison, sentences::comparison(comparison));
        Self {
            a: &pair.a,
            b: &pair.b,
            headline: pair.headline.as_ref().map(|one| ComparisonJson::new(one, sentences::headline(pair))),
            by_wait_kind: pair.by_wait_kind.iter().map(judged).collect(),
            tasks: pair.tasks.iter().map(judged).collect(),
            sequential_weeks: &pair.sequential_weeks,
            reliability: &pair.reliability,
            reliability_text: sentences::reliability(pair),
            weekly_minutes: pair.weekly_minutes,
            damaged: &pair.damaged,
            failing: &pair.failing,
        }
    }
}

/// The recommendation with its sentence, which depends on more of the week.
#[derive(Debug, Serialize)]
struct RecommendationJson {
    target: Option<TargetName>,
    text: String,
    confidence: Option<Confidence>,
    minutes_a_week: Option<MinutesSaved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<Withheld>,
}

impl RecommendationJson {
    fn new(weekly: &WeeklySummary) -> Self {
        let Recommendation { target, confidence, minutes_a_week, withheld } = weekly.recommendation.clone();
        Self { target, text: recommendation::heading(weekly), confidence, minutes_a_week, withheld }
    }
}

#[derive(Serialize)]
#[serde(remote = "ClientCaching")]
struct CachingForm {
    target: TargetName,
    protocol: Option<String>,
    cached: Option<bool>,
    rereads: usize,
    median_share: Option<f64>,
    #[serde(getter = "sentences::caching")]
    text: String,
}

/// Ratio over the rounds made so far, with its sentence.
#[derive(Debug, Serialize)]
struct SoFarJson {
    #[serde(flatten)]
    data: SoFar,
    text: String,
}

/// A comparison with its sentence.
#[derive(Debug, Serialize)]
struct ComparisonJson<'a> {
    subject: &'a Subject,
    a: &'a TargetName,
    b: &'a TargetName,
    so_far: SoFarJson,
    verdict: Verdict,
    text: String,
    ratio: Option<RatioEstimate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_with_outliers: Option<f64>,
    alpha: f64,
    incomplete_days: usize,
    rounds: ComparedRounds,
    median_seconds: Option<(f64, f64)>,
    wait_ratio: Option<RatioEstimate>,
    days_needed: Option<usize>,
    detectable_ratio: Option<f64>,
    autocorrelation: Option<f64>,
    is_steady: Option<bool>,
    change: Option<&'a LastingChange>,
    #[serde(flatten)]
    at_round_trip: Option<&'a AtRoundTrip>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_unused: Option<RoundTripUnused>,
    days: &'a [DayRatio],
}

impl<'a> ComparisonJson<'a> {
    fn new(comparison: &'a Comparison, text: String) -> Self {
        Self {
            subject: &comparison.subject,
            a: &comparison.a,
            b: &comparison.b,
            so_far: SoFarJson { data: comparison.so_far, text: so_far::sentence(comparison) },
            verdict: comparison.verdict,
            text,
            ratio: comparison.ratio,
            ratio_with_outliers: comparison.ratio_with_outliers,
            alpha: comparison.alpha,
            incomplete_days: comparison.incomplete_days,
            rounds: comparison.rounds,
            median_seconds: comparison.median_seconds,
            wait_ratio: comparison.wait_ratio,
            days_needed: comparison.days_needed,
            detectable_ratio: comparison.detectable_ratio,
            autocorrelation: comparison.autocorrelation,
            is_steady: comparison.is_steady,
            change: comparison.change.as_ref(),
            at_round_trip: comparison.at_round_trip.as_ref(),
            rtt_unused: comparison.rtt_unused,
            days: &comparison.days,
        }
    }
}

fn pairs<S: Serializer>(all: &[PairSummary], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(PairJson::from))
}

pub(super) fn caching<S: Serializer>(all: &[ClientCaching], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct CachingJson<'a>(#[serde(with = "CachingForm")] &'a ClientCaching);
    to.collect_seq(all.iter().map(CachingJson))
}

#[cfg(test)]
mod tests {
    use longhaul_analysis::summary::{Objection, WeeklyQuery, summarize_week};
    use longhaul_model::History;
    use serde_json::{Value, json};

    use super::*;

    /// Returns the keys of an object, without the sentences.
    fn keys(object: &Value) -> Vec<&String> {
        let is_sentence = |key: &str| SENTENCES.iter().any(|sentence| sentence.property == key);
        object.as_object().unwrap().keys().filter(|key| !is_sentence(key)).collect()
    }

    #[test]
    fn forms_have_every_field_of_the_data() {
        let name = |name: &str| name.parse::<TargetName>().unwrap();
        let caching = ClientCaching {
            target: name("smb"),
            protocol: None,
            cached: Some(true),
            rereads: 3,
            median_share: Some(0.99),
        };
        let query =
            WeeklyQuery { week: Week::of_day(0), scale: None, since: None, zone: jiff::tz::TimeZone::UTC };
        let mut weekly = summarize_week(&History::default(), &query);
        // What is left out while it is empty is a field, too.
        weekly.freshness = vec![Freshness { target: name("smb"), kinds: vec![] }];
        weekly.replay = Some(ReplayFidelity {
            recorded_on: None,
            recorded_seconds: None,
            replayed_seconds: None,
            replays: 0,
        });
        let objection = Objection::Damaged;
        weekly.recommendation.withheld =
            Some(Withheld { target: name("smb"), instead_of: name("nfs"), objection });
        let form = json!(WeekJson { weekly: &weekly, caching: std::slice::from_ref(&caching) });
        assert_eq!(keys(&form["caching"][0]), keys(&json!(caching)));
        let own: Vec<&String> = keys(&form).into_iter().filter(|key| *key != "caching").collect();
        assert_eq!(own, keys(&json!(weekly)));
        assert_eq!(keys(&form["recommendation"]), keys(&json!(weekly.recommendation)));
    }
}
