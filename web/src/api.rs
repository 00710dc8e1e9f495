//! `/api/v1` for reading: the same forms as `--json`.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use longhaul_measure::model::{Step, TargetName};
use longhaul_measure::summary::{Window, caching, sampled};
use longhaul_store::{RunFilter, SampleFilter};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::face::Face;
use crate::json::{self as forms, EventShown, WeekShown, whole};
use crate::pages::{Meant, SmokeAsked, Trouble, numbers, read, week_of};

use crate::shelf::Book;

const DAY_US: i64 = 86_400_000_000;
/// So many runs are given at once.
const MOST_RUNS: u32 = 1_000;

/// What is asked of the past.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    week: Option<String>,
    target: Option<TargetName>,
    workload: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    last: Option<u32>,
    #[serde(default, deserialize_with = "whole")]
    days: Option<u16>,
}

/// Answers as JSON what a reader finds.
async fn answer(
    face: Face,
    ask: impl FnOnce(&mut Book) -> Result<Value, Trouble> + Send + 'static,
) -> Response {
    match read(face, ask).await {
        Ok(value) => Json(value).into_response(),
        Err(trouble) => (trouble.status(), Json(json!({ "error": trouble.to_string() }))).into_response(),
    }
}

fn value(value: impl serde::Serialize) -> Result<Value, Trouble> {
    serde_json::to_value(value).map_err(|error| Trouble::Unfinished(error.to_string()))
}

/// The summary of a week.
pub async fn week(State(face): State<Face>, Query(asked): Query<Asked>) -> Response {
    answer(face, move |book| {
        let week = match asked.week {
            Some(text) => week_of(&text)?,
            None => book.newest()?,
        };
        let (weekly, rereads) = (book.weekly(week)?, book.reader.rereads()?);
        value(WeekShown { weekly: &weekly, caching: &caching(&rereads) })
    })
    .await
}

/// Runs, oldest first.
pub async fn runs(State(face): State<Face>, Query(asked): Query<Asked>) -> Response {
    answer(face, move |book| {
        let limit = Some(asked.last.unwrap_or(100).min(MOST_RUNS));
        let filter =
            RunFilter { target: asked.target, workload: asked.workload, limit, ..RunFilter::default() };
        Ok(book.reader.runs(&filter)?.iter().map(forms::run).collect())
    })
    .await
}

/// One run in full.
pub async fn run(State(face): State<Face>, Path(number): Path<String>) -> Response {
    answer(face, move |book| {
        let unknown = || Trouble::Unknown(format!("run `{number}`"));
        let stored = book.reader.run(number.parse().map_err(|_| unknown())?)?;
        Ok(forms::run(&stored.ok_or_else(unknown)?))
    })
    .await
}

/// What was sampled.
pub async fn samples(State(face): State<Face>, Query(asked): Query<Asked>) -> Response {
    let (since_us, until_us) = span(&face, &asked);
    answer(face, move |book| {
        let step = Step::for_window((until_us - since_us) / 1_000_000);
        let filter = SampleFilter { target: asked.target, kind: None, step, since_us, until_us };
        let reader = &book.reader;
        let is_meant = |target: &TargetName| filter.target.as_ref().is_none_or(|wanted| wanted == target);
        value(sampled(&Window {
            span_us: (since_us, until_us),
            probes: reader.probes(&filter)?,
            traffic: reader.traffic(&filter)?,
            machine: reader.machine(&filter)?,
            stalls: reader.stalls(since_us)?.into_iter().filter(|stall| is_meant(&stall.target)).collect(),
        }))
    })
    .await
}

/// How the light probe's answers spread, step by step: the figures behind the smoke of the latency page.
pub async fn smoke(State(face): State<Face>, Query(asked): Query<SmokeAsked>) -> Response {
    let now_us = face.now_us();
    answer(face, move |book| value(numbers(book, &Meant::of(&asked, now_us)?)?)).await
}

/// The ledger of waits.
pub async fn stalls(State(face): State<Face>, Query(asked): Query<Asked>) -> Response {
    let (since_us, _) = span(&face, &asked);
    answer(face, move |book| value(book.reader.stalls(since_us)?)).await
}

/// The journal.
pub async fn events(State(face): State<Face>, Query(asked): Query<Asked>) -> Response {
    let (since_us, _) = span(&face, &asked);
    answer(face, move |book| {
        let events = book.reader.events(Some(since_us))?;
        value(events.into_iter().map(EventShown::from).collect::<Vec<_>>())
    })
    .await
}

fn span(face: &Face, asked: &Asked) -> (i64, i64) {
    let now_us = face.now_us();
    (now_us - i64::from(asked.days.unwrap_or(1)) * DAY_US, now_us)
}
