//! The HTTP API: its routes, and the OpenAPI document generated from the descriptions next to their handlers.

use axum::{Json, Router};
use longhaul_view::json::{SENTENCES, Sentence};
use serde_json::{Map, Value, json};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::app_state::AppState;
use crate::{api, commands};

/// Returns the routes of the API.
pub fn routes() -> Router<AppState> {
    collect().0
}

/// Serves the OpenAPI 3.1 document. It is built for each request, because hardly any are made.
pub async fn document() -> Json<Value> {
    let mut document = json!(collect().1);
    complete(&mut document);
    Json(document)
}

fn collect() -> (Router<AppState>, OpenApi) {
    let info = InfoBuilder::new()
        .title("longhaul")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "The API of the longhaul service on this machine. Its schemas are those of --json: keys may be added and are never removed.",
        ));
    let api = OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info.build()).build());
    endpoints().into_iter().fold(api, OpenApiRouter::routes).split_for_parts()
}

/// Returns the endpoints of the API. A test requests every one of them.
fn endpoints() -> [UtoipaMethodRouter<AppState>; 22] {
    [
        routes!(commands::status),
        routes!(commands::live),
        routes!(api::week),
        routes!(api::glance),
        routes!(api::runs),
        routes!(api::run),
        routes!(api::samples),
        routes!(api::latency_series),
        routes!(api::stalls),
        routes!(api::stalls_by_cause),
        routes!(api::events),
        routes!(api::freshness),
        routes!(api::integrity),
        routes!(api::fidelity),
        routes!(api::why),
        routes!(api::predictions),
        routes!(commands::pause),
        routes!(commands::resume),
        routes!(commands::start_round),
        routes!(commands::log_level),
        routes!(commands::doctor),
        routes!(commands::issue_key),
    ]
}

/// Adds what all endpoints have in common: errors, the token of commands, and sentences of the data.
fn complete(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for (method, operation) in paths.filter_map(Value::as_object_mut).flatten() {
        complete_operation(method, operation);
    }
    document["components"]["securitySchemes"] = json!({ "token": { "type": "http", "scheme": "bearer" } });
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    SENTENCES.iter().for_each(|sentence| add_sentence(schemas, sentence));
    let error = json!({ "type": "object", "required": ["error"], "properties": { "error": text() } });
    schemas.insert("Error".to_owned(), error);
}

fn complete_operation(method: &str, operation: &mut Value) {
    operation["responses"]["200"]["description"] = "The current value.".into();
    for (status, error) in errors() {
        operation["responses"][status] = error;
    }
    if method == "get" {
        return;
    }
    operation["security"] = json!([{ "token": [] }]);
    operation["responses"]["401"] = error("The token is missing or wrong.");
    operation["responses"]["408"] = error("The body did not arrive in time.");
    operation["responses"]["413"] = error("The body is too large.");
    operation["responses"]["415"] = text_error("The body is not declared as JSON.");
    operation["responses"]["422"] = text_error("The body does not match the schema.");
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// Adds a sentence that JSON has and the data has not to its schema.
fn add_sentence(schemas: &mut Map<String, Value>, sentence: &Sentence) {
    let Some(schema) = schemas.get_mut(sentence.schema) else { return };
    schema["properties"][sentence.property] =
        json!({ "type": "string", "description": sentence.description });
    if let Value::Array(required) = &mut schema["required"] {
        required.push(sentence.property.into());
    }
}

fn errors() -> [(&'static str, Value); 5] {
    let mut wrong = error("A parameter or the body is invalid.");
    wrong["content"]["text/plain"] = json!({ "schema": text() });
    [
        ("400", wrong),
        ("403", error("Requests from pages of other sites are not allowed.")),
        ("404", error("Not found.")),
        ("421", error("The host name is not one of longhaul's.")),
        (
            "503",
            error("The database cannot be read, the service is starting, or there are too many requests."),
        ),
    ]
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
        let mut known = Map::new();
        for (name, form) in endpoints().into_iter().flat_map(|(schemas, _, _)| schemas) {
            let form = json!(form);
            let before = known.insert(name.clone(), form.clone());
            assert!(before.is_none_or(|before| before == form), "{name}");
        }
        assert!(known.len() > 50, "{}", known.len());
    }
}
