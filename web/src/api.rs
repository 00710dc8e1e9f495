//! Read-only endpoints under `/api/v1`, with the same schemas as `--json` on the command line.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use longhaul_analysis::attribution::Attribution;
use longhaul_analysis::checks::{self, FreshnessCell, IntegrityLine, integrity_lines};
use longhaul_analysis::prediction::what_if;
use longhaul_analysis::stalls::{ExplainedStall, NamedStall, StallCauses, explain_stalls};
use longhaul_analysis::summary::{SampledWindow, WindowSummary, client_caching, summarize_window};
use longhaul_model::time::DAY;
use longhaul_model::{LoadContext, ProbeKind, Resolution, TargetName, Timestamp};
use longhaul_store::{RunFilter, SampleFilter, StoredEvent};
use longhaul_view::json::{
    self as forms, FidelityJson, Glance, LatencySeries, RunJson, WeekJson, WhatIfJson,
};
use longhaul_view::time::utc_offset_at;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::app_state::AppState;
use crate::json::optional_integer;
use crate::pages::{
    LatencyQuery, PageError, SeriesParams, WhatIfParams, read_cache, read_latency_series, requested_week,
};
use crate::params::Params;

use crate::cache::{CacheEntry, local_zone};

/// Maximum number of runs in one response.
const MAX_RUNS: u32 = 1_000;

/// The week to report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WeekParams {
    /// An ISO week, as 2026-W46; the newest by default.
    #[param(pattern = "^[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])$", example = "2026-W46")]
    week: Option<String>,
}

/// The runs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsParams {
    /// Only this target.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
    target: Option<TargetName>,
    /// Only this task.
    workload: Option<String>,
    /// The number of runs, counted from the latest; 100 by default, at most 1000.
    #[serde(default, deserialize_with = "optional_integer")]
    #[param(maximum = 4294967295_u32, format = "uint32")]
    last: Option<u32>,
}

/// The latencies to summarize.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LatencyParams {
    /// Only this target.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
    target: Option<TargetName>,
    /// The length of the window in days, counted back from now; 7 by default, as the commands do.
    #[serde(default, deserialize_with = "optional_integer")]
    #[param(maximum = 65535)]
    days: Option<u16>,
}

/// The days to look back.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DaysParams {
    /// The length of the window in days, counted back from now; 7 by default, as the commands do.
    #[serde(default, deserialize_with = "optional_integer")]
    #[param(maximum = 65535)]
    days: Option<u16>,
}

/// Runs a query on the cached database and returns its result as JSON, or its error.
async fn json_response(
    app: AppState,
    ask: impl FnOnce(&mut CacheEntry) -> Result<Value, PageError> + Send + 'static,
) -> Response {
    match read_cache(app, ask).await {
        Ok(value) => Json(value).into_response(),
        Err(error) => (error.status(), Json(json!({ "error": error.to_string() }))).into_response(),
    }
}

fn to_json(value: impl serde::Serialize) -> Result<Value, PageError> {
    serde_json::to_value(value).map_err(|error| PageError::Internal(error.to_string()))
}

/// The report of a week, as `report --json` prints it.
#[utoipa::path(
    get,
    path = "/api/v1/week",
    params(WeekParams),
    responses((status = 200, body = WeekJson<'static>))
)]
pub async fn week(State(app): State<AppState>, Params(params): Params<WeekParams>) -> Response {
    json_response(app, move |cache| {
        let week = match params.week {
            Some(text) => requested_week(cache, &text)?,
            None => cache.newest_week()?,
        };
        let (weekly, rereads) = (cache.weekly(week)?, cache.reader.rereads()?);
        Ok(forms::week(&weekly, &client_caching(&rereads)))
    })
    .await
}

/// The answer at a glance: one flat object, for widgets of other dashboards.
#[utoipa::path(get, path = "/api/v1/glance", responses((status = 200, body = Glance)))]
pub async fn glance(State(app): State<AppState>) -> Response {
    let status = app.deps.service.status();
    json_response(app, move |cache| {
        let newest = cache.newest_week()?;
        to_json(Glance::new(&*cache.weekly(newest)?, status.as_ref()))
    })
    .await
}

/// Runs, oldest first, in the format of `runs --json`.
#[utoipa::path(
    get,
    path = "/api/v1/runs",
    params(RunsParams),
    responses((status = 200, body = Vec<RunJson<'static>>))
)]
pub async fn runs(State(app): State<AppState>, Params(params): Params<RunsParams>) -> Response {
    json_response(app, move |cache| {
        let limit = Some(params.last.unwrap_or(100).min(MAX_RUNS));
        let filter =
            RunFilter { target: params.target, workload: params.workload, limit, ..RunFilter::default() };
        Ok(cache.reader.runs(&filter)?.iter().map(forms::run).collect())
    })
    .await
}

/// One run in full, as `runs NUMBER --json` prints it.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{number}",
    params((
        "number" = u32,
        Path,
        description = "The run's number.",
        maximum = 4294967295_u32,
        format = "uint32"
    )),
    responses((status = 200, body = RunJson<'static>))
)]
pub async fn run(State(app): State<AppState>, Path(number): Path<String>) -> Response {
    json_response(app, move |cache| {
        let unknown = || PageError::NotFound(format!("run `{number}`"));
        let stored = cache.reader.run(number.parse().map_err(|_| unknown())?)?;
        Ok(forms::run(&stored.ok_or_else(unknown)?))
    })
    .await
}

/// Latency and traffic of the shares, as `latency --json` prints them.
#[utoipa::path(
    get,
    path = "/api/v1/latency",
    params(LatencyParams),
    responses((status = 200, body = WindowSummary))
)]
pub async fn samples(State(app): State<AppState>, Params(params): Params<LatencyParams>) -> Response {
    let (since, until) = window(&app, params.days);
    json_response(app, move |cache| {
        let step = Resolution::for_window(until.since(since));
        let filter = SampleFilter { target: params.target, kind: None, step, since, until };
        let reader = &cache.reader;
        let is_meant = |target: &TargetName| filter.target.as_ref().is_none_or(|wanted| wanted == target);
        to_json(summarize_window(&SampledWindow {
            span: (since, until),
            probes: reader.probe_steps(&filter)?,
            traffic: reader.traffic_steps(&filter)?,
            machine: reader.machine_steps(&filter)?,
            stalls: reader.stalls(since)?.into_iter().filter(|stall| is_meant(&stall.target)).collect(),
        }))
    })
    .await
}

/// Quantiles of the probe's latency in seconds, in steps that suit the length of the window.
#[utoipa::path(
    get,
    path = "/api/v1/latency/series",
    params(
        (
            "days" = Option<f64>,
            Query,
            description = "The length of the window in days, from one hour to 1200 days; 7 by default."
        ),
        (
            "until" = Option<f64>,
            Query,
            description = "The end of the window, in microseconds since 1970-01-01 UTC; now by default."
        ),
        (
            "kind" = inline(Option<ProbeKind>),
            Query,
            description = "The operation of the probe; read by default."
        ),
        (
            "during" = inline(Option<LoadContext>),
            Query,
            description = "Only samples taken during rounds, or outside them."
        )
    ),
    responses((status = 200, body = LatencySeries))
)]
pub async fn latency_series(
    State(app): State<AppState>,
    RawQuery(query): RawQuery,
    Params(params): Params<SeriesParams>,
) -> Response {
    let now = app.now();
    json_response(app, move |cache| {
        if let Some(name) = empty_parameter(query.as_deref()) {
            return Err(PageError::BadRequest(format!(
                "`{name}` is empty: leave it out or give it a value."
            )));
        }
        to_json(read_latency_series(cache, &LatencyQuery::parse(&params, now)?)?)
    })
    .await
}

/// Returns the name of the first query parameter that has no value. The form of the page sends empty parameters
/// for its defaults; in the API they are more likely a mistake.
fn empty_parameter(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_suffix('='))
}

/// Stalls, in the format of `stalls --json`.
#[utoipa::path(
    get,
    path = "/api/v1/stalls",
    params(DaysParams),
    responses((status = 200, body = Vec<ExplainedStall>))
)]
pub async fn stalls(State(app): State<AppState>, Params(params): Params<DaysParams>) -> Response {
    let (since, until) = window(&app, params.days);
    json_response(app, move |cache| to_json(stall_causes(cache, since, until)?.stalls)).await
}

/// Causes of stalls and slow calls, in the format of `stalls --causes --json`.
#[utoipa::path(
    get,
    path = "/api/v1/stalls/causes",
    params(DaysParams),
    responses((status = 200, body = Vec<NamedStall>))
)]
pub async fn stalls_by_cause(State(app): State<AppState>, Params(params): Params<DaysParams>) -> Response {
    let (since, until) = window(&app, params.days);
    json_response(app, move |cache| to_json(stall_causes(cache, since, until)?.named)).await
}

fn stall_causes(cache: &CacheEntry, since: Timestamp, until: Timestamp) -> Result<StallCauses, PageError> {
    let records = cache.reader.stall_records(since, until)?;
    Ok(explain_stalls(&records, utc_offset_at(until, &local_zone())))
}

/// Events, in the format of `events --json`.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    params(DaysParams),
    responses((status = 200, body = Vec<StoredEvent>))
)]
pub async fn events(State(app): State<AppState>, Params(params): Params<DaysParams>) -> Response {
    let (since, _) = window(&app, params.days);
    json_response(app, move |cache| to_json(cache.reader.events(Some(since))?)).await
}

/// Freshness of the targets, in the format of `freshness --json`.
#[utoipa::path(get, path = "/api/v1/freshness", responses((status = 200, body = Vec<FreshnessCell>)))]
pub async fn freshness(State(app): State<AppState>) -> Response {
    json_response(app, |cache| to_json(checks::freshness(&cache.reader.freshness(Timestamp::MIN)?))).await
}

/// Verified data and wrong ranges of the targets, in the format of `integrity --json`.
#[utoipa::path(get, path = "/api/v1/integrity", responses((status = 200, body = Vec<IntegrityLine>)))]
pub async fn integrity(State(app): State<AppState>) -> Response {
    json_response(app, |cache| {
        let reader = &cache.reader;
        to_json(integrity_lines(&reader.verified_totals()?, &reader.mismatches(None)?))
    })
    .await
}

/// Last check of what the targets keep, in the format of `fidelity --json`.
#[utoipa::path(get, path = "/api/v1/fidelity", responses((status = 200, body = Vec<FidelityJson>)))]
pub async fn fidelity(State(app): State<AppState>) -> Response {
    json_response(app, |cache| to_json(FidelityJson::new(&cache.reader.fidelity()?))).await
}

/// Time of each task by layer in the newest rounds, in the format of `why --json`.
#[utoipa::path(get, path = "/api/v1/why", responses((status = 200, body = Vec<Attribution>)))]
pub async fn why(State(app): State<AppState>) -> Response {
    json_response(app, |cache| to_json(cache.attributions()?.as_ref())).await
}

/// Predicted time of each task over another network or with another disk in the NAS, in the format of `what-if --json`.
///
/// What is left out stays as it usually is; without a parameter, nothing changes.
#[utoipa::path(
    get,
    path = "/api/v1/what-if",
    params(
        (
            "rtt" = Option<String>,
            Query,
            description = "Round-trip time to the NAS.",
            pattern = "^[1-9][0-9]{0,3}(us|ms)$",
            example = "20ms"
        ),
        (
            "bandwidth" = Option<String>,
            Query,
            description = "Bandwidth of the network, in bits per second.",
            pattern = "^[1-9][0-9]{0,2}(kbit|mbit|gbit)$",
            example = "100mbit"
        ),
        (
            "disk" = Option<String>,
            Query,
            description = "Disk of the NAS: a kind, or the time of one request.",
            pattern = "^(ssd|hdd|[1-9][0-9]{0,3}(us|ms))$",
            example = "ssd"
        )
    ),
    responses((status = 200, body = Vec<WhatIfJson>))
)]
pub async fn predictions(State(app): State<AppState>, Params(params): Params<WhatIfParams>) -> Response {
    json_response(app, move |cache| {
        let answers = what_if(cache.timed_runs()?.as_ref(), params.change()?);
        to_json(answers.iter().map(WhatIfJson::from).collect::<Vec<_>>())
    })
    .await
}

/// Returns the start and the end of a window of some days.
fn window(app: &AppState, days: Option<u16>) -> (Timestamp, Timestamp) {
    let now = app.now();
    (now - u32::from(days.unwrap_or(7)) * DAY, now)
}
