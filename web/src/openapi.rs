//! What programs can ask and order, as one table, and the description that is made of it.

use axum::Json;
use longhaul_measure::model::{Beside, ProbeKind};
use longhaul_service::config::LEVELS;
use serde_json::{Value, json};

/// One thing that can be asked or ordered: tests walk the table.
struct Endpoint {
    path: &'static str,
    summary: &'static str,
    kind: Kind,
}

/// What is given with it.
enum Kind {
    /// Asked, with these parameters.
    Get(&'static [Parameter]),
    /// Ordered, with nothing.
    Post,
    /// Ordered, with a body of this form.
    PostWith(fn() -> Value),
}

/// A parameter: its name, what it means, its form.
struct Parameter(&'static str, &'static str, fn() -> Value);

const TARGET: Parameter = Parameter("target", "Only of this target.", target);
const DAYS: Parameter = Parameter("days", "How many days back; 1 without it.", days);

const ENDPOINTS: &[Endpoint] = &[
    get("/api/v1/status", "What the service says of itself: `status --json`.", &[]),
    get("/api/v1/live", "The round in progress, or null.", &[]),
    get(
        "/api/v1/week",
        "The summary of a week: `week --json`.",
        &[Parameter("week", "As in 2026-W46; the newest one without it.", week)],
    ),
    get(
        "/api/v1/runs",
        "Runs, oldest first: `runs --json` as a list.",
        &[
            TARGET,
            Parameter("workload", "Only of this task.", text),
            Parameter("last", "At most so many, the newest; 100 without it, 1000 at most.", count),
        ],
    ),
    get(
        "/api/v1/runs/{number}",
        "One run in full: `show --json`.",
        &[Parameter("number", "The run's number.", count)],
    ),
    get("/api/v1/samples", "What was sampled: `samples --json`.", &[TARGET, DAYS]),
    get(
        "/api/v1/smoke",
        "How the light probe's answers spread, step by step, in steps that fit the window; times in seconds.",
        &[
            Parameter("days", "How long the window is: an hour to 1200 days; 7 without it.", amount),
            Parameter("until", "Its end, in microseconds since 1970 UTC; now without it.", amount),
            Parameter("kind", "Of this question; read without it.", kind),
            Parameter("beside", "Only while rounds went on, or did not.", beside),
        ],
    ),
    get("/api/v1/stalls", "The ledger of waits: `stalls --json` as a list.", &[DAYS]),
    get("/api/v1/events", "The journal: `events --json` as a list.", &[DAYS]),
    post("/api/v1/pause", "No rounds until resume, or for so many seconds.", Kind::PostWith(pause)),
    post("/api/v1/resume", "Rounds again.", Kind::Post),
    post("/api/v1/round", "A round now.", Kind::Post),
    post("/api/v1/log-level", "What the log says from now on.", Kind::PostWith(level)),
    post("/api/v1/doctor", "Looks at everything that could keep longhaul from measuring.", Kind::Post),
    post("/api/v1/key", "A key that lets one browser in, once, within a minute.", Kind::Post),
];

const fn get(path: &'static str, summary: &'static str, parameters: &'static [Parameter]) -> Endpoint {
    Endpoint { path, summary, kind: Kind::Get(parameters) }
}

const fn post(path: &'static str, summary: &'static str, kind: Kind) -> Endpoint {
    Endpoint { path, summary, kind }
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
}

fn days() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX })
}

fn amount() -> Value {
    json!({ "type": "number" })
}

/// An empty text is the default, as a form sends it.
fn choice(names: &[&str]) -> Value {
    let all: Vec<&str> = std::iter::once("").chain(names.iter().copied()).collect();
    json!({ "enum": all })
}

fn kind() -> Value {
    choice(&ProbeKind::ALL.map(ProbeKind::name))
}

fn beside() -> Value {
    choice(&Beside::ALL.map(Beside::name))
}

fn target() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$" })
}

fn week() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])$", "example": "2026-W46" })
}

fn pause() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": { "seconds": { "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX } },
    })
}

fn level() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["level"],
        "properties": { "level": { "enum": LEVELS } },
    })
}

/// The description of all of it, OpenAPI 3.1.
pub async fn openapi() -> Json<Value> {
    let described = |endpoint: &Endpoint| {
        let method = if matches!(endpoint.kind, Kind::Get(_)) { "get" } else { "post" };
        (endpoint.path.to_owned(), json!({ method: operation(endpoint) }))
    };
    Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "longhaul",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "On this machine. Forms are those of --json: keys are added freely and never taken away.",
        },
        "paths": ENDPOINTS.iter().map(described).collect::<serde_json::Map<_, _>>(),
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Error": {
                "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } },
            } },
        },
    }))
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut operation = json!({ "summary": endpoint.summary, "responses": responses() });
    match endpoint.kind {
        Kind::Get(parameters) => {
            let of = |one: &Parameter| parameter(one, endpoint.path);
            operation["parameters"] = parameters.iter().map(of).collect();
            return operation;
        }
        Kind::Post => {}
        Kind::PostWith(form) => {
            let content = json!({ "application/json": { "schema": form() } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
    }
    operation["security"] = json!([{ "token": [] }]);
    operation["responses"]["401"] = error("An order needs the token.");
    operation["responses"]["413"] = text_error("The body is too large.");
    operation["responses"]["415"] = text_error("An order is JSON.");
    operation["responses"]["422"] = text_error("The order has another form.");
    operation
}

fn parameter(Parameter(name, meaning, form): &Parameter, path: &str) -> Value {
    let is_in_path = path.contains(&format!("{{{name}}}"));
    let place = if is_in_path { "path" } else { "query" };
    json!({ "name": name, "description": meaning, "in": place, "required": is_in_path, "schema": form() })
}

fn responses() -> Value {
    let mut wrong = error("The question has no meaning.");
    wrong["content"]["text/plain"] = json!({ "schema": text() });
    json!({
        "200": { "description": "As it is just now.", "content": { "application/json": { "schema": {} } } },
        "400": wrong,
        "403": error("A page of another site may not ask this."),
        "404": error("There is no such thing."),
        "421": error("The host name is not longhaul's."),
        "503": error("The database cannot be read, or the service is starting."),
    })
}

fn error(description: &str) -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Error" });
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn text_error(description: &str) -> Value {
    json!({ "description": description, "content": { "text/plain": { "schema": text() } } })
}
