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
            Err(refused) => refused.body_text(),
        };
        if parts.uri.path().starts_with("/api/") {
            return Err(error_response(StatusCode::BAD_REQUEST, &refused));
        }
        let Ok(app) = AppState::from_request_parts(parts, app).await;
        let text = format!("The address has parameters that cannot be read. {refused}.");
        Err(error_page(&app, &PageError::BadRequest(text)))
    }
}
