//! What programs can ask and order, as one table, and the description that is made of it.

use axum::Json;
use longhaul_measure::model::{Beside, ProbeKind, Stall};
use longhaul_measure::summary::Sampled;
use longhaul_service::config::LEVELS;
use longhaul_service::status::{Check, Live, Status};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::json::{EventShown, RunShown, WeekShown};
use crate::pages::SmokeShown;

/// One thing that can be asked or ordered: tests walk the table.
struct Endpoint {
    path: &'static str,
    summary: &'static str,
    kind: Kind,
    answer: Answer,
}

/// Forms of values by their names, as they are referred to.
type Forms = Vec<(String, RefOr<Schema>)>;

/// The form of an answer; what it refers to is added.
type Answer = fn(&mut Forms) -> Value;

/// What is given with it.
enum Kind {
    /// Asked, with these parameters.
    Get(&'static [Parameter]),
    /// Ordered, with a body of this form.
    Post(Option<fn() -> Value>),
}

/// A parameter: its name, what it means, its form.
struct Parameter(&'static str, &'static str, fn() -> Value);

const TARGET: Parameter = Parameter("target", "Only of this target.", target);
const DAYS: Parameter = Parameter("days", "How many days back; 1 without it.", days);

const ENDPOINTS: &[Endpoint] = &[
    get("/api/v1/status", "What the service says of itself: `status --json`.", &[], one::<Status>),
    get("/api/v1/live", "The round in progress, or null.", &[], maybe::<Live>),
    get(
        "/api/v1/week",
        "The summary of a week: `week --json`.",
        &[Parameter("week", "As in 2026-W46; the newest one without it.", week)],
        one::<WeekShown>,
    ),
    get(
        "/api/v1/runs",
        "Runs, oldest first: `runs --json` as a list.",
        &[
            TARGET,
            Parameter("workload", "Only of this task.", text),
            Parameter("last", "At most so many, the newest; 100 without it, 1000 at most.", count),
        ],
        list::<RunShown>,
    ),
    get(
        "/api/v1/runs/{number}",
        "One run in full: `show --json`.",
        &[Parameter("number", "The run's number.", count)],
        one::<RunShown>,
    ),
    get("/api/v1/samples", "What was sampled: `samples --json`.", &[TARGET, DAYS], one::<Sampled>),
    get(
        "/api/v1/smoke",
        "How the light probe's answers spread, step by step, in steps that fit the window; times in seconds.",
        &[
            Parameter("days", "How long the window is: an hour to 1200 days; 7 without it.", amount),
            Parameter("until", "Its end, in microseconds since 1970 UTC; now without it.", amount),
            Parameter("kind", "Of this question; read without it.", kind),
            Parameter("beside", "Only while rounds went on, or did not.", beside),
        ],
        one::<SmokeShown>,
    ),
    get("/api/v1/stalls", "The ledger of waits: `stalls --json` as a list.", &[DAYS], list::<Stall>),
    get("/api/v1/events", "The journal: `events --json` as a list.", &[DAYS], list::<EventShown>),
    post("/api/v1/pause", "No rounds until resume, or for so many seconds.", Some(pause), done),
    post("/api/v1/resume", "Rounds again.", None, done),
    post("/api/v1/round", "A round now.", None, done),
    post("/api/v1/log-level", "What the log says from now on.", Some(level), done),
    post(
        "/api/v1/doctor",
        "Looks at everything that could keep longhaul from measuring.",
        None,
        list::<Check>,
    ),
    post("/api/v1/key", "A key that lets one browser in, once, within a minute.", None, handed_out),
];

const fn get(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    answer: Answer,
) -> Endpoint {
    Endpoint { path, summary, kind: Kind::Get(parameters), answer }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    body: Option<fn() -> Value>,
    answer: Answer,
) -> Endpoint {
    Endpoint { path, summary, kind: Kind::Post(body), answer }
}

/// A value of this type.
fn one<T: ToSchema>(forms: &mut Forms) -> Value {
    let name = T::name().into_owned();
    let form = json!({ "$ref": format!("#/components/schemas/{name}") });
    forms.push((name, T::schema()));
    T::schemas(forms);
    form
}

/// A list of them.
fn list<T: ToSchema>(forms: &mut Forms) -> Value {
    json!({ "type": "array", "items": one::<T>(forms) })
}

/// One or none.
fn maybe<T: ToSchema>(forms: &mut Forms) -> Value {
    json!({ "oneOf": [{ "type": "null" }, one::<T>(forms)] })
}

fn done(_: &mut Forms) -> Value {
    json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "const": true } } })
}

fn handed_out(_: &mut Forms) -> Value {
    json!({ "type": "object", "required": ["key"], "properties": { "key": text() } })
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
    let mut forms = Forms::new();
    let paths: Map<_, _> = ENDPOINTS.iter().map(|endpoint| described(endpoint, &mut forms)).collect();
    let mut schemas: Map<_, _> = forms.into_iter().map(|(name, form)| (name, json!(form))).collect();
    schemas.insert(
        "Error".to_owned(),
        json!({ "type": "object", "required": ["error"], "properties": { "error": text() } }),
    );
    Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "longhaul",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "On this machine. Forms are those of --json: keys are added freely and never taken away.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    }))
}

fn described(endpoint: &Endpoint, forms: &mut Forms) -> (String, Value) {
    let method = if matches!(endpoint.kind, Kind::Get(_)) { "get" } else { "post" };
    let mut operation = operation(endpoint);
    operation["responses"]["200"]["content"]["application/json"]["schema"] = (endpoint.answer)(forms);
    (endpoint.path.to_owned(), json!({ method: operation }))
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut operation = json!({ "summary": endpoint.summary, "responses": responses() });
    match endpoint.kind {
        Kind::Get(parameters) => {
            let of = |one: &Parameter| parameter(one, endpoint.path);
            operation["parameters"] = parameters.iter().map(of).collect();
            return operation;
        }
        Kind::Post(None) => {}
        Kind::Post(Some(form)) => {
            let content = json!({ "application/json": { "schema": form() } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
    }
    operation["security"] = json!([{ "token": [] }]);
    operation["responses"]["401"] = error("An order needs the token.");
    operation["responses"]["408"] = error("The body takes too long.");
    operation["responses"]["413"] = error("The body is too large.");
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
        "200": { "description": "As it is just now.", "content": { "application/json": {} } },
        "400": wrong,
        "403": error("A page of another site may not ask this."),
        "404": error("There is no such thing."),
        "421": error("The host name is not longhaul's."),
        "503": error("The database cannot be read, the service is starting, or too many ask at a time."),
    })
}

fn error(description: &str) -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Error" });
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn text_error(description: &str) -> Value {
    json!({ "description": description, "content": { "text/plain": { "schema": text() } } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_forms_share_a_name() {
        let mut forms = Forms::new();
        ENDPOINTS.iter().for_each(|endpoint| drop((endpoint.answer)(&mut forms)));
        let mut known = Map::new();
        for (name, form) in forms {
            let form = json!(form);
            let before = known.insert(name.clone(), form.clone());
            assert!(before.is_none_or(|before| before == form), "{name}");
        }
        assert!(known.len() > 50, "{}", known.len());
    }
}
