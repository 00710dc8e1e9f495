//! The HTTP API as one table of endpoints, and the OpenAPI document generated from it.

use axum::Json;
use longhaul_analysis::summary::WindowSummary;
use longhaul_model::{LoadContext, ProbeKind, Stall};
use longhaul_service::config::LOG_LEVELS;
use longhaul_service::status::{Check, LiveStatus, Status};
use longhaul_view::json::{EventJson, LatencySeries, RunJson, SENTENCES, Sentence, WeekJson};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// One endpoint of the API. A test requests every one of them.
struct Endpoint {
    path: &'static str,
    summary: &'static str,
    kind: Method,
    answer: ResponseSchema,
}

/// Component schemas by the names under which `$ref` finds them.
type Schemas = Vec<(String, RefOr<Schema>)>;

/// Returns the schema of a response and adds the component schemas that it refers to.
type ResponseSchema = fn(&mut Schemas) -> Value;

/// The method of a request.
enum Method {
    /// GET, with these query or path parameters.
    Get(&'static [Parameter]),
    /// POST, with a body of this schema.
    Post(Option<fn() -> Value>),
}

/// A parameter of an endpoint: name, description, schema.
struct Parameter(&'static str, &'static str, fn() -> Value);

const TARGET: Parameter = Parameter("target", "Only this target.", target);
const DAYS: Parameter =
    Parameter("days", "The length of the window in days, counted back from now; 1 by default.", days);

const ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/v1/status",
        "The status of the service, as `status --json` prints it.",
        &[],
        schema_ref::<Status>,
    ),
    get("/api/v1/live", "The round in progress, or null.", &[], nullable::<LiveStatus>),
    get(
        "/api/v1/week",
        "The report of a week, as `report --json` prints it.",
        &[Parameter("week", "An ISO week, as 2026-W46; the newest by default.", week)],
        schema_ref::<WeekJson>,
    ),
    get(
        "/api/v1/runs",
        "Runs, oldest first, in the format of `runs --json`.",
        &[
            TARGET,
            Parameter("workload", "Only this task.", text),
            Parameter(
                "last",
                "The number of runs, counted from the latest; 100 by default, at most 1000.",
                count,
            ),
        ],
        list_of::<RunJson>,
    ),
    get(
        "/api/v1/runs/{number}",
        "One run in full, as `runs NUMBER --json` prints it.",
        &[Parameter("number", "The run's number.", count)],
        schema_ref::<RunJson>,
    ),
    get(
        "/api/v1/latency",
        "Latency and traffic of the shares, as `latency --json` prints them.",
        &[TARGET, DAYS],
        schema_ref::<WindowSummary>,
    ),
    get(
        "/api/v1/latency/series",
        "Quantiles of the probe's latency in seconds, in steps that suit the length of the window.",
        &[
            Parameter(
                "days",
                "The length of the window in days, from one hour to 1200 days; 7 by default.",
                number,
            ),
            Parameter(
                "until",
                "The end of the window, in microseconds since 1970-01-01 UTC; now by default.",
                number,
            ),
            Parameter("kind", "The operation of the probe; read by default.", kind),
            Parameter("during", "Only samples taken during rounds, or outside them.", during),
        ],
        schema_ref::<LatencySeries>,
    ),
    get("/api/v1/stalls", "Stalls, in the format of `stalls --json`.", &[DAYS], list_of::<Stall>),
    get("/api/v1/events", "Events, in the format of `events --json`.", &[DAYS], list_of::<EventJson>),
    post(
        "/api/v1/pause",
        "Pauses rounds until they are resumed, or for a number of seconds.",
        Some(pause_body),
        ok_schema,
    ),
    post("/api/v1/resume", "Resumes rounds.", None, ok_schema),
    post("/api/v1/round", "Starts a round as soon as none is in progress.", None, ok_schema),
    post("/api/v1/log-level", "Sets the log level until the service restarts.", Some(level_body), ok_schema),
    post(
        "/api/v1/doctor",
        "Checks everything that measuring needs, as `doctor` does.",
        None,
        list_of::<Check>,
    ),
    post(
        "/api/v1/key",
        "Creates a key with which one browser can log in once, within a minute.",
        None,
        key_schema,
    ),
];

const fn get(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    answer: ResponseSchema,
) -> Endpoint {
    Endpoint { path, summary, kind: Method::Get(parameters), answer }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    body: Option<fn() -> Value>,
    answer: ResponseSchema,
) -> Endpoint {
    Endpoint { path, summary, kind: Method::Post(body), answer }
}

/// Returns a reference to the schema of a type, and adds that schema to the components.
fn schema_ref<T: ToSchema>(forms: &mut Schemas) -> Value {
    let name = T::name().into_owned();
    let form = json!({ "$ref": format!("#/components/schemas/{name}") });
    forms.push((name, T::schema()));
    T::schemas(forms);
    form
}

/// Returns the schema of a list of `T`.
fn list_of<T: ToSchema>(forms: &mut Schemas) -> Value {
    json!({ "type": "array", "items": schema_ref::<T>(forms) })
}

/// Returns the schema of a value that is `T` or null.
fn nullable<T: ToSchema>(forms: &mut Schemas) -> Value {
    json!({ "oneOf": [{ "type": "null" }, schema_ref::<T>(forms)] })
}

fn ok_schema(_: &mut Schemas) -> Value {
    json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "const": true } } })
}

fn key_schema(_: &mut Schemas) -> Value {
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

fn number() -> Value {
    json!({ "type": "number" })
}

/// Returns the schema of a string that is one of these names.
fn enum_schema(names: &[&str]) -> Value {
    json!({ "enum": names })
}

fn kind() -> Value {
    enum_schema(&ProbeKind::ALL.map(ProbeKind::name))
}

fn during() -> Value {
    enum_schema(&LoadContext::ALL.map(LoadContext::name))
}

fn target() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$" })
}

fn week() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])$", "example": "2026-W46" })
}

fn pause_body() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": { "seconds": { "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX } },
    })
}

fn level_body() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["level"],
        "properties": { "level": { "enum": LOG_LEVELS } },
    })
}

/// Returns the OpenAPI 3.1 document.
pub async fn openapi() -> Json<Value> {
    let mut forms = Schemas::new();
    let paths: Map<_, _> = ENDPOINTS.iter().map(|endpoint| path_item(endpoint, &mut forms)).collect();
    let mut schemas: Map<_, _> = forms.into_iter().map(|(name, form)| (name, json!(form))).collect();
    SENTENCES.iter().for_each(|sentence| add_sentence(&mut schemas, sentence));
    schemas.insert(
        "Error".to_owned(),
        json!({ "type": "object", "required": ["error"], "properties": { "error": text() } }),
    );
    Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "longhaul",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API of the longhaul service on this machine. Its schemas are those of --json: keys may be added and are never removed.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    }))
}

/// Adds a sentence that JSON has and the data has not to its schema.
fn add_sentence(schemas: &mut Map<String, Value>, sentence: &Sentence) {
    let Some(schema) = schemas.get_mut(sentence.schema) else { return };
    schema["properties"][sentence.property] =
        json!({ "type": "string", "description": sentence.description });
    if let Value::Array(required) = &mut schema["required"] {
        let place =
            required.iter().position(|name| name == sentence.after).map_or(required.len(), |place| place + 1);
        required.insert(place, sentence.property.into());
    }
}

fn path_item(endpoint: &Endpoint, forms: &mut Schemas) -> (String, Value) {
    let method = if matches!(endpoint.kind, Method::Get(_)) { "get" } else { "post" };
    let mut operation = operation_object(endpoint);
    operation["responses"]["200"]["content"]["application/json"]["schema"] = (endpoint.answer)(forms);
    (endpoint.path.to_owned(), json!({ method: operation }))
}

fn operation_object(endpoint: &Endpoint) -> Value {
    let mut operation = json!({ "summary": endpoint.summary, "responses": responses() });
    match endpoint.kind {
        Method::Get(parameters) => {
            let of = |one: &Parameter| parameter_object(one, endpoint.path);
            operation["parameters"] = parameters.iter().map(of).collect();
            return operation;
        }
        Method::Post(None) => {}
        Method::Post(Some(form)) => {
            let content = json!({ "application/json": { "schema": form() } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
    }
    operation["security"] = json!([{ "token": [] }]);
    operation["responses"]["401"] = error("The token is missing or wrong.");
    operation["responses"]["408"] = error("The body did not arrive in time.");
    operation["responses"]["413"] = error("The body is too large.");
    operation["responses"]["415"] = text_error("The body is not declared as JSON.");
    operation["responses"]["422"] = text_error("The body does not match the schema.");
    operation
}

fn parameter_object(Parameter(name, meaning, form): &Parameter, path: &str) -> Value {
    let is_in_path = path.contains(&format!("{{{name}}}"));
    let location = if is_in_path { "path" } else { "query" };
    json!({ "name": name, "description": meaning, "in": location, "required": is_in_path, "schema": form() })
}

fn responses() -> Value {
    let mut wrong = error("A parameter or the body is invalid.");
    wrong["content"]["text/plain"] = json!({ "schema": text() });
    json!({
        "200": { "description": "The current value.", "content": { "application/json": {} } },
        "400": wrong,
        "403": error("Requests from pages of other sites are not allowed."),
        "404": error("Not found."),
        "421": error("The host name is not one of longhaul's."),
        "503": error("The database cannot be read, the service is starting, or there are too many requests."),
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
    fn component_schema_names_are_unique() {
        let mut forms = Schemas::new();
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
