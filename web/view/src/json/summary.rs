//! JSON form of the summary of runs: the data with its sentences.

use longhaul_analysis::summary::{ClientCaching, Excluded, Summary, TargetSummary, WorkloadSummary};
use longhaul_model::Scale;
use serde::Serialize;

use super::week::caching;

/// A summary of runs, as `runs --summary --json` prints it.
#[derive(Debug, Serialize)]
pub struct SummaryJson<'a>(#[serde(with = "SummaryForm")] pub &'a Summary);

#[derive(Serialize)]
#[serde(remote = "Summary")]
struct SummaryForm {
    schema: u32,
    scale: Option<Scale>,
    targets: Vec<TargetSummary>,
    workloads: Vec<WorkloadSummary>,
    #[serde(serialize_with = "caching")]
    caching: Vec<ClientCaching>,
    excluded: Vec<Excluded>,
}
