//! The parameters of a request.

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;

use crate::app_state::AppState;
use crate::commands::error_response;
use crate::pages::{PageError, error_page};

/// Parameters of a request, from its query. A query that cannot be read is answered like other errors: with JSON to programs,
/// with a page to browsers.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<AppState> for Params<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Response> {
        let refused = match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(params)) => return Ok(Self(params)),
            Err(refused) => query_error_text(&refused.body_text()),
        };
        if parts.uri.path().starts_with("/api/") {
            return Err(error_response(StatusCode::BAD_REQUEST, &refused));
        }
        let Ok(app) = AppState::from_request_parts(parts, app).await;
        Err(error_page(&app, &PageError::BadRequest(refused)))
    }
}

/// Returns the error text for a query, from the message of the library that read it.
fn query_error_text(refused: &str) -> String {
    let message = refused.strip_prefix("Failed to deserialize query string: ").unwrap_or(refused);
    let field = |kind: &str| message.split_once(kind).and_then(|(_, rest)| rest.strip_suffix('`'));
    let unknown =
        message.split_once("unknown field `").and_then(|(_, rest)| rest.rsplit_once("`, expected "));
    if let Some((name, known)) = unknown {
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        return format!("Unknown parameter `{name}`; known: {}.", known.join(", "));
    }
    if let Some(name) = field("missing field `") {
        return format!("The parameter `{name}` is missing.");
    }
    if let Some(name) = field("duplicate field `") {
        return format!("The parameter `{name}` is given twice.");
    }
    match message.split_once(": ") {
        Some((name, reason)) if is_about_a_number(reason) => {
            format!("The parameter `{name}` is not a number that is allowed.")
        }
        Some((name, reason)) => format!("The parameter `{name}` is not valid: {reason}."),
        None => format!("The address has parameters that cannot be read: {message}."),
    }
}

/// Returns true if the standard library could not read a number.
fn is_about_a_number(reason: &str) -> bool {
    ["invalid digit", "invalid float", "number too", "cannot parse"]
        .iter()
        .any(|start| reason.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_parameters_are_named_in_plain_words() {
        let messages = [
            (
                "target: unknown field `target`, expected one of `days`, `kind`, `during`, `until`",
                "Unknown parameter `target`; known: days, kind, during, until.",
            ),
            ("a`b: unknown field `a`b`, expected `days`", "Unknown parameter `a`b`; known: days."),
            ("missing field `to`", "The parameter `to` is missing."),
            ("duplicate field `days`", "The parameter `days` is given twice."),
            ("skip: invalid digit found in string", "The parameter `skip` is not a number that is allowed."),
            (
                "target: `a b` is not a target name",
                "The parameter `target` is not valid: `a b` is not a target name.",
            ),
            ("something else", "The address has parameters that cannot be read: something else."),
        ];
        for (message, expected) in messages {
            assert_eq!(query_error_text(&format!("Failed to deserialize query string: {message}")), expected);
        }
    }
}
