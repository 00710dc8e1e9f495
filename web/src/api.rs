//! `/api/v1` for reading: the same forms as `--json`, and a description of all of it.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use longhaul_measure::model::{Step, TargetName};
use longhaul_measure::summary::{Window, caching, sampled};
use longhaul_store::{RunFilter, SampleFilter};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::face::Face;
use crate::json::{self as forms, WeekShown};
use crate::pages::{Trouble, read};

use crate::shelf::Book;

const DAY_US: i64 = 86_400_000_000;
/// So many runs are given at once.
const MOST_RUNS: u32 = 1_000;

/// One thing that can be asked or ordered: the table that the description is made of, and that tests walk.
pub struct Endpoint {
    /// `get` or `post`.
    pub method: &'static str,
    /// Its address.
    pub path: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// What may be given: name and meaning.
    pub parameters: &'static [(&'static str, &'static str)],
}

const fn get(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [(&'static str, &'static str)],
) -> Endpoint {
    Endpoint { method: "get", path, summary, parameters }
}

const fn post(path: &'static str, summary: &'static str) -> Endpoint {
    Endpoint { method: "post", path, summary, parameters: &[] }
}

/// Everything that can be asked and ordered.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/api/v1/status", "What the service says of itself: `status --json`.", &[]),
    get("/api/v1/live", "The round in progress, or null.", &[]),
    get(
        "/api/v1/week",
        "The summary of a week: `week --json`.",
        &[("week", "As in 2026-W46; the newest one without it.")],
    ),
    get(
        "/api/v1/runs",
        "Runs, oldest first: `runs --json` as a list.",
        &[
            ("target", "Only of this target."),
            ("workload", "Only of this task."),
            ("last", "At most so many, the newest; 100 without it, 1000 at most."),
        ],
    ),
    get("/api/v1/runs/{number}", "One run in full: `show --json`.", &[("number", "The run's number.")]),
    get(
        "/api/v1/samples",
        "What was sampled: `samples --json`.",
        &[("target", "Only of this target."), ("days", "How many days back; 1 without it.")],
    ),
    get(
        "/api/v1/stalls",
        "The ledger of waits: `stalls --json` as a list.",
        &[("days", "How many days back; 1 without it.")],
    ),
    get(
        "/api/v1/events",
        "The journal: `events --json` as a list.",
        &[("days", "How many days back; 1 without it.")],
    ),
    post("/api/v1/pause", "No rounds until resume, or for so many `seconds`."),
    post("/api/v1/resume", "Rounds again."),
    post("/api/v1/round", "A round now."),
    post("/api/v1/log-level", "What the log says from now on: a `level`."),
    post("/api/v1/doctor", "Looks at everything that could keep longhaul from measuring."),
    post("/api/v1/key", "A key that lets one browser give orders, once, within a minute."),
];

/// The description of all of it, OpenAPI 3.1.
pub async fn openapi() -> Json<Value> {
    let mut paths = serde_json::Map::new();
    for endpoint in ENDPOINTS {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = described(endpoint);
    }
    Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "longhaul",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "On this machine only. Forms are those of --json: keys are added freely and never taken away.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Error": {
                "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } },
            } },
        },
    }))
}

fn described(endpoint: &Endpoint) -> Value {
    let parameter = |(name, meaning): &(&str, &str)| {
        let is_in_path = endpoint.path.contains(&format!("{{{name}}}"));
        json!({
            "name": name, "description": meaning, "required": is_in_path, "schema": { "type": "string" },
            "in": if is_in_path { "path" } else { "query" },
        })
    };
    let answer = |description: &str, schema: Value| json!({ "description": description, "content": { "application/json": { "schema": schema } } });
    let error = |description: &str| answer(description, json!({ "$ref": "#/components/schemas/Error" }));
    let mut operation = json!({
        "summary": endpoint.summary,
        "parameters": endpoint.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "responses": {
            "200": answer("As it is just now.", json!({})),
            "400": error("The question has no meaning."),
            "404": error("There is no such thing."),
            "421": error("The host name is not longhaul's."),
            "403": error("A page of another site may not ask this."),
            "503": error("The database cannot be read, or the service is starting."),
        },
    });
    if endpoint.method == "post" {
        operation["security"] = json!([{ "token": [] }]);
        operation["responses"]["401"] = error("An order needs the token.");
        operation["responses"]["415"] = json!({ "description": "An order is JSON." });
        operation["responses"]["422"] = json!({ "description": "The order has another form." });
        operation["requestBody"] =
            json!({ "content": { "application/json": { "schema": { "type": "object" } } } });
    }
    operation
}

/// What is asked of the past.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    week: Option<String>,
    target: Option<TargetName>,
    workload: Option<String>,
    last: Option<u32>,
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
            Some(text) => text.parse().map_err(|error| Trouble::Question(format!("{error}")))?,
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
        let filter = SampleFilter { target: asked.target, step, since_us, until_us };
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
        Ok(events.iter().map(|stored| json!({ "number": stored.number, "event": stored.event })).collect())
    })
    .await
}

fn span(face: &Face, asked: &Asked) -> (i64, i64) {
    let now_us = face.now_us();
    (now_us - i64::from(asked.days.unwrap_or(1)) * DAY_US, now_us)
}
