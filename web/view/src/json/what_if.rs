//! JSON form of `longhaul what-if`.

use longhaul_analysis::prediction::{Answer, NoPrediction};
use serde::Serialize;
use utoipa::ToSchema;

/// Predicted time of a metric on a target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WhatIfJson {
    /// Target that was measured.
    pub target: String,
    /// Name of the task.
    pub task: String,
    /// Name of the metric in its task.
    pub metric: String,
    /// Time as it usually is, in seconds; null if it is not known.
    pub usual_seconds: Option<f64>,
    /// Predicted time, in seconds; null if it cannot be predicted.
    pub seconds: Option<f64>,
    /// Lower end of the 95 % interval, in seconds.
    pub low: Option<f64>,
    /// Upper end of the interval, in seconds.
    pub high: Option<f64>,
    /// True if the question lies far outside the measured range; null without a prediction.
    pub extrapolated: Option<bool>,
    /// Reason why nothing can be predicted: `too-few-runs` or `never-varied`; null with a prediction.
    pub reason: Option<&'static str>,
}

impl From<&Answer> for WhatIfJson {
    fn from(answer: &Answer) -> Self {
        let changed = answer.changed.ok();
        Self {
            target: answer.key.target.to_string(),
            task: answer.key.workload.clone(),
            metric: answer.key.metric.clone(),
            usual_seconds: answer.usual.map(|usual| usual.seconds),
            seconds: changed.map(|changed| changed.seconds),
            low: changed.map(|changed| changed.low),
            high: changed.map(|changed| changed.high),
            extrapolated: changed.map(|changed| changed.is_extrapolated),
            reason: answer.changed.err().map(|reason| match reason {
                NoPrediction::TooFewRuns => "too-few-runs",
                NoPrediction::NeverVaried(_) => "never-varied",
            }),
        }
    }
}
