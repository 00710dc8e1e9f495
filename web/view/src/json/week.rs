//! JSON forms of a week, of a pair and of the summary of runs: the data with its sentences.

use longhaul_analysis::summary::{ClientCaching, Comparison, PairSummary, Summary, WeeklySummary};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::screens::{recommendation, sentences, so_far};

/// A week: `report --json` and `/api/v1/week`. The weekly summary, plus the client caching verdicts that the
/// export does not contain.
#[derive(Debug, Serialize, ToSchema)]
pub struct WeekJson<'a> {
    /// The weekly summary.
    #[serde(flatten)]
    pub weekly: &'a WeeklySummary,
    /// The verdict on client caching, for each protocol.
    pub caching: &'a [ClientCaching],
}

/// A property that JSON has and the data has not: a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Sentence {
    /// Name of the schema with the property.
    pub schema: &'static str,
    /// Name of the property.
    pub property: &'static str,
    /// Description of the property.
    pub description: &'static str,
}

/// The sentences of the forms, for the OpenAPI document.
pub const SENTENCES: [Sentence; 5] = [
    Sentence {
        schema: "Comparison",
        property: "text",
        description: "Verdict as an English sentence, with its numbers.",
    },
    Sentence {
        schema: "Recommendation",
        property: "text",
        description: "Recommendation as an English sentence.",
    },
    Sentence {
        schema: "SoFar",
        property: "text",
        description: "Statement about the rounds made so far, as an English sentence in the past tense.",
    },
    Sentence {
        schema: "PairSummary",
        property: "reliability_text",
        description: "Reliability and time waited, as an English sentence.",
    },
    Sentence { schema: "ClientCaching", property: "text", description: "Verdict as an English sentence." },
];

/// Returns a week with its sentences, as `report --json` prints it and `/api/v1/week` serves it.
pub fn week(weekly: &WeeklySummary, caching: &[ClientCaching]) -> Value {
    let mut form = json!(WeekJson { weekly, caching });
    form["recommendation"] = with_text(&weekly.recommendation, recommendation::heading(weekly));
    form["pairs"] = weekly.pairs.iter().map(pair).collect();
    form["caching"] = caching_verdicts(caching);
    form
}

/// Returns a pair of shares with its sentences, as `report --pair A,B --json` prints it.
pub fn pair(pair: &PairSummary) -> Value {
    let comparisons = |all: &[Comparison]| -> Value {
        all.iter().map(|one| comparison(one, sentences::comparison(one))).collect()
    };
    let mut form = json!(pair);
    if let Some(headline) = &pair.headline {
        form["headline"] = comparison(headline, sentences::headline(pair));
    }
    form["by_wait_kind"] = comparisons(&pair.by_wait_kind);
    form["tasks"] = comparisons(&pair.tasks);
    form["reliability_text"] = sentences::reliability(pair).into();
    form
}

/// Returns a summary of runs with its sentences, as `runs --summary --json` prints it.
pub fn summary(summary: &Summary) -> Value {
    let mut form = json!(summary);
    form["caching"] = caching_verdicts(&summary.caching);
    form
}

fn comparison(comparison: &Comparison, text: String) -> Value {
    let mut form = with_text(comparison, text);
    form["so_far"] = with_text(&comparison.so_far, so_far::sentence(comparison));
    form
}

fn caching_verdicts(all: &[ClientCaching]) -> Value {
    all.iter().map(|one| with_text(one, sentences::caching(one))).collect()
}

fn with_text(data: &impl Serialize, text: String) -> Value {
    let mut form = json!(data);
    form["text"] = text.into();
    form
}
