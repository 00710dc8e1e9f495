//! Reads request bodies, with a limit on their size and on the time that a client may take to send one.
//!
//! The layers of tower-http for this do not fit: they answer in plain text instead of JSON, and only where a handler
//! reads the body.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;

use crate::limits::MAX_BODY_BYTES;

/// The reason why a request body is rejected.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the body is larger than {MAX_BODY_BYTES} bytes")]
    TooLarge,
    #[error("the body did not arrive within {0:?}: send it at once")]
    TooSlow(Duration),
    #[error("the body cannot be read: {0}")]
    Unreadable(Box<dyn std::error::Error + Send + Sync>),
}

/// Reads the whole body of a request before the handler runs. If the body is rejected, the connection is closed.
pub async fn read_body(State(within): State<Duration>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let collected = tokio::time::timeout(within, collect(body)).await;
    match collected.unwrap_or(Err(BodyError::TooSlow(within))) {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(error) => error.into_response(),
    }
}

async fn collect(body: Body) -> Result<Bytes, BodyError> {
    // Reject by the announced length (Content-Length), before any of the body is read.
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(BodyError::TooLarge);
    }
    match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Err(error) => Err(BodyError::Unreadable(error)),
    }
}

impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Unreadable(_) => StatusCode::BAD_REQUEST,
        };
        let close = [(header::CONNECTION, HeaderValue::from_static("close"))];
        (status, close, axum::Json(json!({ "error": self.to_string() }))).into_response()
    }
}
