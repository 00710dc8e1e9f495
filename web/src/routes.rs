//! Routes of the HTTP server, and the handlers for commands.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use longhaul_measure::platform;
use longhaul_service::command::{Command, Pause};
use longhaul_service::config::LOG_LEVELS;
use longhaul_telemetry::openmetrics::MEDIA_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app_state::AppState;
use crate::json::{JsonObject, optional_integer};
use crate::{api, assets, body, guard, gzip, headers, new_token, openapi, pages};

/// Timeout of the doctor, in total: the check of a hanging target may take ten seconds, and a round in progress
/// has to end first.
const DOCTOR_TIMEOUT: Duration = Duration::from_secs(100);

/// Returns the router with all pages, API endpoints and middleware.
pub fn routes(app: AppState) -> Router {
    Router::new()
        .merge(page_routes())
        .merge(api_routes())
        .fallback(pages::not_found)
        .layer(middleware::from_fn(gzip::compress))
        .layer(middleware::from_fn_with_state(app.deps.limits.body_timeout, body::read_body))
        .layer(middleware::from_fn_with_state(app.guard.clone(), guard::check))
        .layer(middleware::from_fn(headers::add_security_headers))
        .with_state(app)
}

/// Routes that serve HTML pages, charts and assets to a browser.
fn page_routes() -> Router<AppState> {
    Router::new()
        .route("/", get(pages::overview))
        .route("/weeks", get(pages::newest_week))
        .route("/weeks/{week}", get(pages::week))
        .route("/weeks/{week}/{file}", get(pages::download))
        .route("/weeks/{week}/charts/{file}", get(pages::week_chart))
        .route("/tasks", get(pages::first_task))
        .route("/tasks/{task}", get(pages::task))
        .route("/tasks/{task}/charts/{file}", get(pages::task_chart))
        .route("/latency", get(pages::latency))
        .route("/latency/charts/{file}", get(pages::latency_chart))
        .route("/events", get(pages::events_page))
        .route("/runs", get(pages::runs))
        .route("/runs/{number}", get(pages::run))
        .route("/targets", get(pages::targets))
        .route("/commands/{order}", post(pages::run_command))
        .route("/method", get(pages::method))
        .route("/badges/{a}/{b}", get(pages::badge))
        .route("/login", get(login))
        .route(guard::STREAM_PATH, get(pages::stream))
        .route("/assets/{hash}/{name}", get(assets::serve))
}

/// Routes that serve JSON and metrics to programs.
fn api_routes() -> Router<AppState> {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(openapi::openapi))
        .route("/api/v1/status", get(status))
        .route("/api/v1/live", get(live))
        .route("/api/v1/week", get(api::week))
        .route("/api/v1/runs", get(api::runs))
        .route("/api/v1/runs/{number}", get(api::run))
        .route("/api/v1/latency", get(api::samples))
        .route("/api/v1/latency/series", get(api::latency_series))
        .route("/api/v1/stalls", get(api::stalls))
        .route("/api/v1/events", get(api::events))
        .route("/api/v1/pause", post(pause))
        .route("/api/v1/resume", post(resume))
        .route("/api/v1/round", post(start_round))
        .route("/api/v1/log-level", post(log_level))
        .route("/api/v1/doctor", post(doctor))
        .route("/api/v1/key", post(issue_key))
}

/// Creates a one-time key with which a browser can log in.
async fn issue_key(State(app): State<AppState>) -> Response {
    match new_token() {
        Ok(key) => {
            app.guard.keys.issue(&key, Instant::now());
            // A page is likely to be opened next, so fill its cache in the background.
            drop(tokio::task::spawn_blocking(move || app.cache.prewarm()));
            Json(json!({ "key": key })).into_response()
        }
        Err(error) => error_response(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("the system has no random numbers: {error}"),
        ),
    }
}

/// Query parameters of the login.
#[derive(Deserialize)]
struct LoginParams {
    key: String,
}

/// Logs in a browser that presents a key. A browser with an expired key is redirected as well: it can read the
/// pages, but not give commands.
async fn login(State(app): State<AppState>, Query(params): Query<LoginParams>) -> Response {
    let cookie = app.guard.keys.redeem(&params.key, Instant::now());
    match cookie {
        Some(cookie) => ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        None => Redirect::to("/").into_response(),
    }
}

fn json_or_null(value: Option<impl Serialize>) -> Response {
    match value {
        Some(value) => Json(value).into_response(),
        None => Json(Value::Null).into_response(),
    }
}

async fn status(State(app): State<AppState>) -> Response {
    match app.deps.service.status() {
        Some(status) => Json(status).into_response(),
        None => error_response(StatusCode::SERVICE_UNAVAILABLE, "the service is starting"),
    }
}

/// Serves the metrics for Prometheus. Each request reads the rounds that ended since the previous request.
async fn metrics(State(app): State<AppState>) -> Response {
    let read = tokio::task::spawn_blocking(move || (app.deps.metrics)()).await;
    match read.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(text) => ([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(error) => error_response(StatusCode::SERVICE_UNAVAILABLE, &error),
    }
}

async fn live(State(app): State<AppState>) -> Response {
    json_or_null(app.deps.service.live_status())
}

/// Body of a pause command: the number of seconds to pause, or until resumed if absent.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PauseBody {
    #[serde(default, deserialize_with = "optional_integer")]
    seconds: Option<u32>,
}

async fn pause(
    State(app): State<AppState>,
    Json(JsonObject(order)): Json<JsonObject<PauseBody>>,
) -> Response {
    let until = order.seconds.map(|seconds| platform::wall_clock() + Duration::from_secs(seconds.into()));
    app.deps.service.send(Command::SetPause(until.map_or(Pause::On, Pause::Until)));
    ok_response()
}

async fn resume(State(app): State<AppState>) -> Response {
    app.deps.service.send(Command::SetPause(Pause::Off));
    ok_response()
}

async fn start_round(State(app): State<AppState>) -> Response {
    app.deps.service.send(Command::RunRound);
    ok_response()
}

/// Body of a log level command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogLevelBody {
    level: String,
}

async fn log_level(
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

async fn doctor(State(app): State<AppState>) -> Response {
    let (reply, answer) = sync_channel(1);
    app.deps.service.send(Command::Examine(reply));
    let waited = tokio::task::spawn_blocking(move || answer.recv_timeout(DOCTOR_TIMEOUT)).await;
    match waited {
        Ok(Ok(checks)) => Json(checks).into_response(),
        _ => error_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "the service could not run the checks yet: a round is in progress; try again when it has ended",
        ),
    }
}

fn ok_response() -> Response {
    Json(json!({ "ok": true })).into_response()
}

fn error_response(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}
