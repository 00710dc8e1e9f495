//! What can be asked and ordered.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use longhaul_measure::platform;
use longhaul_service::config::LEVELS;
use longhaul_service::desk::Pause;
use longhaul_telemetry::openmetrics::MEDIA_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::face::Face;
use crate::json::{Object, whole};
use crate::{api, assets, body, guard, gzip, headers, new_token, openapi, pages};

/// How long the doctor may take: a target that hangs is given ten seconds, and a round in progress ends first.
const DOCTOR_WITHIN: Duration = Duration::from_secs(100);

/// Everything that is answered, for one running service.
pub fn routes(face: Face) -> Router {
    Router::new()
        .merge(page())
        .merge(programs())
        .fallback(pages::nowhere)
        .layer(middleware::from_fn(gzip::compress))
        .layer(middleware::from_fn_with_state(face.control.limits.body, body::read))
        .layer(middleware::from_fn_with_state(face.guard.clone(), guard::check))
        .layer(middleware::from_fn(headers::add))
        .with_state(face)
}

/// For people.
fn page() -> Router<Face> {
    Router::new()
        .route("/", get(pages::overview))
        .route("/weeks", get(pages::newest_week))
        .route("/weeks/{week}", get(pages::week))
        .route("/weeks/{week}/{file}", get(pages::download))
        .route("/weeks/{week}/charts/{file}", get(pages::week_chart))
        .route("/tasks", get(pages::tasks))
        .route("/tasks/{task}", get(pages::task))
        .route("/tasks/{task}/charts/{file}", get(pages::task_chart))
        .route("/latency", get(pages::latency))
        .route("/latency/charts/{file}", get(pages::latency_chart))
        .route("/journal", get(pages::journal))
        .route("/runs", get(pages::runs))
        .route("/runs/{number}", get(pages::run))
        .route("/targets", get(pages::targets))
        .route("/orders/{order}", post(pages::order))
        .route("/method", get(pages::method))
        .route("/badges/{a}/{b}", get(pages::badge))
        .route("/enter", get(enter))
        .route(guard::STREAM, get(pages::stream))
        .route("/assets/{hash}/{name}", get(assets::serve))
}

/// For programs.
fn programs() -> Router<Face> {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(openapi::openapi))
        .route("/api/v1/status", get(status))
        .route("/api/v1/live", get(live))
        .route("/api/v1/week", get(api::week))
        .route("/api/v1/runs", get(api::runs))
        .route("/api/v1/runs/{number}", get(api::run))
        .route("/api/v1/samples", get(api::samples))
        .route("/api/v1/smoke", get(api::smoke))
        .route("/api/v1/stalls", get(api::stalls))
        .route("/api/v1/events", get(api::events))
        .route("/api/v1/pause", post(pause))
        .route("/api/v1/resume", post(resume))
        .route("/api/v1/round", post(round))
        .route("/api/v1/log-level", post(log_level))
        .route("/api/v1/doctor", post(doctor))
        .route("/api/v1/key", post(key))
}

/// A key for a browser.
async fn key(State(face): State<Face>) -> Response {
    match new_token() {
        Ok(key) => {
            face.guard.keys.hand_out(&key, Instant::now());
            // Somebody is about to open a page.
            drop(tokio::task::spawn_blocking(move || face.shelf.warm()));
            Json(json!({ "key": key })).into_response()
        }
        Err(error) => {
            refused(StatusCode::SERVICE_UNAVAILABLE, &format!("the system gives no randomness: {error}"))
        }
    }
}

/// What a browser brings.
#[derive(Deserialize)]
struct Brought {
    key: String,
}

/// Lets a browser in that brings a key. One with an old key sees the page all the same, without orders.
async fn enter(State(face): State<Face>, Query(brought): Query<Brought>) -> Response {
    let cookie = face.guard.keys.take_in(&brought.key, Instant::now());
    match cookie {
        Some(cookie) => ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        None => Redirect::to("/").into_response(),
    }
}

fn value(value: Option<impl Serialize>) -> Response {
    match value {
        Some(value) => Json(value).into_response(),
        None => Json(Value::Null).into_response(),
    }
}

async fn status(State(face): State<Face>) -> Response {
    match face.control.desk.status() {
        Some(status) => Json(status).into_response(),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, "the service is starting"),
    }
}

/// Totals and what is so just now, for Prometheus. It reads the rounds that have ended since it was last asked.
async fn metrics(State(face): State<Face>) -> Response {
    let read = tokio::task::spawn_blocking(move || (face.control.metrics)()).await;
    match read.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(text) => ([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(error) => refused(StatusCode::SERVICE_UNAVAILABLE, &error),
    }
}

async fn live(State(face): State<Face>) -> Response {
    value(face.control.desk.live())
}

/// For how long; for ever without it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PauseFor {
    #[serde(default, deserialize_with = "whole")]
    seconds: Option<u32>,
}

async fn pause(State(face): State<Face>, Json(Object(order)): Json<Object<PauseFor>>) -> Response {
    let until = order.seconds.map(|seconds| platform::wall_clock_us() + i64::from(seconds) * 1_000_000);
    face.control.desk.order(|orders| orders.pause = Some(until.map_or(Pause::On, Pause::Until)));
    done()
}

async fn resume(State(face): State<Face>) -> Response {
    face.control.desk.order(|orders| orders.pause = Some(Pause::Off));
    done()
}

async fn round(State(face): State<Face>) -> Response {
    face.control.desk.order(|orders| orders.round = true);
    done()
}

/// Which level.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    level: String,
}

async fn log_level(State(face): State<Face>, Json(Object(order)): Json<Object<Level>>) -> Response {
    if !LEVELS.contains(&order.level.as_str()) {
        let error = format!("`{}` is none of {}", order.level, LEVELS.join(", "));
        return refused(StatusCode::BAD_REQUEST, &error);
    }
    match (face.control.set_level)(&order.level) {
        Ok(()) => {
            face.control.desk.set_log_level(&order.level);
            done()
        }
        Err(error) => refused(StatusCode::BAD_REQUEST, &error),
    }
}

async fn doctor(State(face): State<Face>) -> Response {
    let (asker, answer) = sync_channel(1);
    face.control.desk.order(|orders| orders.doctor = Some(asker));
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
