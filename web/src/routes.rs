//! Routes of the HTTP server, and the handlers of login and metrics.

use std::time::Instant;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use longhaul_telemetry::openmetrics::MEDIA_TYPE;
use serde::Deserialize;

use crate::app_state::AppState;
use crate::commands::error_response;
use crate::{assets, body, compression, guard, headers, openapi, pages, theme};

/// Returns the router with all pages, API endpoints and middleware.
pub fn routes(app: AppState) -> Router {
    let router = Router::new()
        .merge(page_routes())
        .merge(api_routes())
        .fallback(pages::not_found)
        .layer(compression::layer())
        .layer(middleware::map_response(compression::collect_body))
        .layer(middleware::from_fn_with_state(app.deps.body_timeout, body::read_body))
        .layer(middleware::from_fn_with_state(app.guard.clone(), guard::check))
        .with_state(app);
    headers::add_security_headers(router)
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
        .route("/why", get(pages::why))
        .route("/checks", get(pages::checks))
        .route("/events", get(pages::events_page))
        .route("/runs", get(pages::runs))
        .route("/runs/{number}", get(pages::run))
        .route("/targets", get(pages::targets))
        .route("/commands/{order}", post(pages::run_command))
        .route("/method", get(pages::method))
        .route("/badges/{a}/{b}", get(pages::badge))
        .route("/theme", get(theme::choose))
        .route("/login", get(login))
        .route(guard::STREAM_PATH, get(pages::stream))
        .route("/assets/{hash}/{name}", get(assets::serve))
}

/// Routes that serve JSON and metrics to programs.
fn api_routes() -> Router<AppState> {
    openapi::routes().route("/metrics", get(metrics)).route("/openapi.json", get(openapi::document))
}

/// Answer to a key that is missing, was used, or is too old. It is open to other machines, so it shows nothing of the service.
const REFUSED_KEY: &str = "This key is incomplete, was used before, or is older than a minute: run `longhaul dashboard` again for a new \
    address. A browser on the machine with the service can read the pages without a key.";

/// Query parameters of the login.
#[derive(Deserialize)]
struct LoginParams {
    key: String,
}

/// Logs in a browser that presents a key. One whose key does not work is told so, unless it is logged in already: without a word it
/// would miss the buttons.
async fn login(
    State(app): State<AppState>,
    headers: HeaderMap,
    params: Result<Query<LoginParams>, QueryRejection>,
) -> Response {
    let key = params.map(|Query(params)| params.key).unwrap_or_default();
    match app.guard.keys.redeem(&key, Instant::now()) {
        Some(cookie) => ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        None if app.guard.keys.has_session(&headers) => Redirect::to("/").into_response(),
        None => (StatusCode::UNAUTHORIZED, REFUSED_KEY).into_response(),
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
