//! Endpoints under `/api/v1` that ask or command the service.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use longhaul_measure::platform;
use longhaul_service::command::{Command, Pause};
use longhaul_service::config::LOG_LEVELS;
use longhaul_service::handle::ServiceHandle;
use longhaul_service::status::{Check, LiveStatus, Status};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::app_state::AppState;
use crate::json::{JsonObject, optional_integer};
use crate::keys::new_token;

/// Timeout of the doctor, in total: the check of a hanging target may take ten seconds, and a round in progress
/// has to end first.
const DOCTOR_TIMEOUT: Duration = Duration::from_secs(100);

/// The status of the service, as `status --json` prints it.
#[utoipa::path(get, path = "/api/v1/status", responses((status = 200, body = Status)))]
pub async fn status(State(app): State<AppState>) -> Response {
    match app.deps.service.status() {
        Some(status) => Json(status).into_response(),
        None => error_response(StatusCode::SERVICE_UNAVAILABLE, "the service is starting"),
    }
}

/// The round in progress, or null.
#[utoipa::path(get, path = "/api/v1/live", responses((status = 200, body = Option<LiveStatus>)))]
pub async fn live(State(app): State<AppState>) -> Response {
    Json(app.deps.service.live_status()).into_response()
}

/// Body of a pause command: the number of seconds to pause, or until resumed if absent.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    #[schema(maximum = 4294967295_u32, format = "uint32")]
    #[serde(default, deserialize_with = "optional_integer")]
    seconds: Option<u32>,
}

/// Pauses rounds until they are resumed, or for a number of seconds.
#[utoipa::path(
    post,
    path = "/api/v1/pause",
    request_body = inline(PauseBody),
    responses((status = 200, body = inline(Done)))
)]
pub async fn pause(
    State(app): State<AppState>,
    Json(JsonObject(order)): Json<JsonObject<PauseBody>>,
) -> Response {
    let until = order.seconds.map(|seconds| platform::wall_clock() + Duration::from_secs(seconds.into()));
    app.deps.service.send(Command::SetPause(until.map_or(Pause::On, Pause::Until)));
    ok_response()
}

/// Resumes rounds.
#[utoipa::path(post, path = "/api/v1/resume", responses((status = 200, body = inline(Done))))]
pub async fn resume(State(app): State<AppState>) -> Response {
    app.deps.service.send(Command::SetPause(Pause::Off));
    ok_response()
}

/// Starts a round as soon as none is in progress.
#[utoipa::path(post, path = "/api/v1/round", responses((status = 200, body = inline(Done))))]
pub async fn start_round(State(app): State<AppState>) -> Response {
    app.deps.service.send(Command::RunRound);
    ok_response()
}

/// Body of a log level command.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogLevelBody {
    #[schema(schema_with = log_levels)]
    level: String,
}

/// Sets the log level until the service restarts.
#[utoipa::path(
    post,
    path = "/api/v1/log-level",
    request_body = inline(LogLevelBody),
    responses((status = 200, body = inline(Done)))
)]
pub async fn log_level(
    State(app): State<AppState>,
    Json(JsonObject(order)): Json<JsonObject<LogLevelBody>>,
) -> Response {
    if !LOG_LEVELS.contains(&order.level.as_str()) {
        let error = format!("`{}` is not one of {}", order.level, LOG_LEVELS.join(", "));
        return error_response(StatusCode::BAD_REQUEST, &error);
    }
    match (app.deps.set_log_level)(&order.level) {
        Ok(()) => {
            app.deps.service.set_log_level(&order.level);
            ok_response()
        }
        Err(error) => error_response(StatusCode::BAD_REQUEST, &error),
    }
}

/// Checks everything that measuring needs, as `doctor` does.
#[utoipa::path(post, path = "/api/v1/doctor", responses((status = 200, body = Vec<Check>)))]
pub async fn doctor(State(app): State<AppState>) -> Response {
    let (reply, answer) = sync_channel(1);
    app.deps.service.send(Command::Examine(reply));
    let waited = tokio::task::spawn_blocking(move || answer.recv_timeout(DOCTOR_TIMEOUT)).await;
    let error = match waited {
        Ok(Ok(checks)) => return Json(checks).into_response(),
        Ok(Err(RecvTimeoutError::Timeout)) => timeout_text(&app.deps.service),
        Ok(Err(RecvTimeoutError::Disconnected)) | Err(_) => {
            "the service did not run the checks: it is stopping, or too many callers wait for them; try again in a minute"
        }
    };
    error_response(StatusCode::SERVICE_UNAVAILABLE, error)
}

/// Returns what to do after the checks did not end in time, with the reason if it is known.
fn timeout_text(service: &ServiceHandle) -> &'static str {
    match service.live_status() {
        Some(_) => {
            "the service could not run the checks yet: a round is in progress; try again when it has ended"
        }
        None => {
            "the service did not complete the checks in time: `longhaul status` shows what it does; try again in a minute"
        }
    }
}

fn log_levels() -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(LOG_LEVELS)).build()
}

/// Answer to a command that was accepted.
#[derive(Serialize, ToSchema)]
struct Done {
    #[schema(schema_with = only_true)]
    ok: bool,
}

fn only_true() -> Object {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).build()
}

fn ok_response() -> Response {
    Json(Done { ok: true }).into_response()
}

/// Answer with a key.
#[derive(Serialize, ToSchema)]
struct Key {
    key: String,
}

pub fn error_response(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

/// Creates a key with which one browser can log in once, within a minute.
#[utoipa::path(post, path = "/api/v1/key", responses((status = 200, body = inline(Key))))]
pub async fn issue_key(State(app): State<AppState>) -> Response {
    match new_token() {
        Ok(key) => {
            app.guard.keys.issue(&key, Instant::now());
            // A page is likely to be opened next, so fill its cache in the background.
            drop(tokio::task::spawn_blocking(move || app.cache.prewarm()));
            Json(Key { key }).into_response()
        }
        Err(error) => error_response(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("the system has no random numbers: {error}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctor_blames_only_a_round_that_is_in_progress() {
        let service = ServiceHandle::default();
        assert!(!timeout_text(&service).contains("round"));
        service.begin_round(1, 12);
        assert!(timeout_text(&service).contains("a round is in progress"));
    }
}
