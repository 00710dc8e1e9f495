//! What can be asked and ordered.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use longhaul_measure::platform;
use longhaul_service::desk::Pause;
use longhaul_telemetry::openmetrics::MEDIA_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::guard::{self, Guard};
use crate::{Control, MOST_BODY_BYTES};

/// How long the doctor may take: a target that hangs is given ten seconds, and a round in progress ends first.
const DOCTOR_WITHIN: Duration = Duration::from_secs(100);

pub fn routes(control: Control, port: u16) -> Router {
    let guard = Guard { port, token: control.token.clone() };
    Router::new()
        .route("/metrics", get(metrics))
        .route("/api/v1/status", get(status))
        .route("/api/v1/live", get(live))
        .route("/api/v1/pause", post(pause))
        .route("/api/v1/resume", post(resume))
        .route("/api/v1/round", post(round))
        .route("/api/v1/log-level", post(log_level))
        .route("/api/v1/doctor", post(doctor))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .with_state(control)
}

fn value(value: Option<impl Serialize>) -> Response {
    match value {
        Some(value) => Json(value).into_response(),
        None => Json(Value::Null).into_response(),
    }
}

async fn status(State(control): State<Control>) -> Response {
    match control.desk.status() {
        Some(status) => Json(status).into_response(),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, "the service is starting"),
    }
}

/// Totals and what is so just now, for Prometheus. It reads the rounds that have ended since it was last asked.
async fn metrics(State(control): State<Control>) -> Response {
    let read = tokio::task::spawn_blocking(move || (control.metrics)()).await;
    match read.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(text) => ([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(error) => refused(StatusCode::SERVICE_UNAVAILABLE, &error),
    }
}

async fn live(State(control): State<Control>) -> Response {
    value(control.desk.live())
}

/// For how long; for ever without it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PauseFor {
    seconds: Option<u32>,
}

async fn pause(State(control): State<Control>, Json(order): Json<PauseFor>) -> Response {
    let until = order.seconds.map(|seconds| platform::wall_clock_us() + i64::from(seconds) * 1_000_000);
    control.desk.order(|orders| orders.pause = Some(until.map_or(Pause::On, Pause::Until)));
    done()
}

async fn resume(State(control): State<Control>) -> Response {
    control.desk.order(|orders| orders.pause = Some(Pause::Off));
    done()
}

async fn round(State(control): State<Control>) -> Response {
    control.desk.order(|orders| orders.round = true);
    done()
}

/// Which level.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    level: String,
}

async fn log_level(State(control): State<Control>, Json(order): Json<Level>) -> Response {
    match (control.set_level)(&order.level) {
        Ok(()) => {
            control.desk.set_log_level(&order.level);
            done()
        }
        Err(error) => refused(StatusCode::BAD_REQUEST, &error),
    }
}

async fn doctor(State(control): State<Control>) -> Response {
    let (asker, answer) = sync_channel(1);
    control.desk.order(|orders| orders.doctor = Some(asker));
    let waited = tokio::task::spawn_blocking(move || answer.recv_timeout(DOCTOR_WITHIN)).await;
    match waited {
        Ok(Ok(checks)) => Json(checks).into_response(),
        _ => refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "the service did not get round to it: a round is in progress; ask again when it has ended",
        ),
    }
}

fn done() -> Response {
    Json(json!({ "ok": true })).into_response()
}

fn refused(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}
