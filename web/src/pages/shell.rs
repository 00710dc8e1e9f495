//! The layout of all pages, and the rendering of responses.

use axum::Json;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use longhaul_analysis::summary::Week;
use longhaul_model::Hint;
use longhaul_view::charts::Chart;
use longhaul_view::charts::svg::strip_control_characters;
use maud::{DOCTYPE, Markup, html};
use serde_json::json;

use crate::app_state::AppState;
use crate::assets;
use crate::cache::{CacheEntry, current_week, local_zone};
use crate::headers::CHART_POLICY;
use crate::theme::Theme;

/// An entry of the navigation menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavItem {
    /// The current answer, and the state of the service.
    Overview,
    /// The report of one week.
    Week,
    /// The results of one task.
    Tasks,
    /// The latency of the shares.
    Latency,
    /// The layers in which time is spent, and predictions.
    Why,
    /// Freshness, integrity and fidelity of the targets.
    Checks,
    /// The event log.
    Events,
    /// The list of runs.
    Runs,
    /// The targets, and the commands for the service.
    Targets,
    /// The description of the method.
    Method,
}

impl NavItem {
    /// All entries, in the order of the menu.
    pub const ALL: [NavItem; 10] = [
        Self::Overview,
        Self::Week,
        Self::Tasks,
        Self::Latency,
        Self::Why,
        Self::Checks,
        Self::Events,
        Self::Runs,
        Self::Targets,
        Self::Method,
    ];

    /// Returns the label and the URL path of the entry.
    pub const fn link(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("Overview", "/"),
            Self::Week => ("Week", "/weeks"),
            Self::Tasks => ("Tasks", "/tasks"),
            Self::Latency => ("Latency", "/latency"),
            Self::Why => ("Why", "/why"),
            Self::Checks => ("Checks", "/checks"),
            Self::Events => ("Events", "/events"),
            Self::Runs => ("Runs", "/runs"),
            Self::Targets => ("Targets", "/targets"),
            Self::Method => ("Method", "/method"),
        }
    }
}

/// The reason why a page cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The database could not be read.
    #[error("{}", .0.one_line())]
    Store(#[from] longhaul_store::Error),
    /// The requested object does not exist.
    #[error("There is no {0}.")]
    NotFound(String),
    /// A parameter is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// An internal error; the page could not be rendered.
    #[error("The page could not be rendered: {0}. See the log of the service.")]
    Internal(String),
}

impl PageError {
    /// Returns the HTTP status of the error.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Renders a page from the cached database. On error, renders a page with the error.
pub async fn render_page(
    app: AppState,
    item: NavItem,
    make: impl FnOnce(&mut CacheEntry) -> Result<Markup, PageError> + Send + 'static,
) -> Response {
    let made = read_cache(app.clone(), make).await;
    let (status, body) = match made {
        Ok(body) => (StatusCode::OK, body),
        Err(error) => (error.status(), error_body(&error)),
    };
    (status, page_shell(&app, Some(item), &body)).into_response()
}

/// Renders a page with an error.
pub fn error_page(app: &AppState, error: &PageError) -> Response {
    (error.status(), page_shell(app, None, &error_body(error))).into_response()
}

/// Runs a query on the cached database, on a thread that may block on disk reads.
pub async fn read_cache<T: Send + 'static>(
    app: AppState,
    ask: impl FnOnce(&mut CacheEntry) -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    let task = tokio::task::spawn_blocking(move || {
        let _span = tracing::debug_span!("read for a page").entered();
        app.cache.read(|cache| Ok(ask(cache)))?
    });
    task.await.unwrap_or_else(|error| Err(PageError::Internal(error.to_string())))
}

/// Returns a chart as an SVG response, or 404 if there is none.
pub fn svg_response(chart: Option<Chart>) -> Response {
    let Some(chart) = chart else { return StatusCode::NOT_FOUND.into_response() };
    let headers = [(CONTENT_TYPE, "image/svg+xml"), (CONTENT_SECURITY_POLICY, CHART_POLICY)];
    (headers, chart.standalone(SVG_WIDTH)).into_response()
}

/// Width of a downloaded chart, in pixels.
const SVG_WIDTH: u32 = 880;

/// Serves the 404 response for unknown paths: JSON below `/api/`, otherwise a page.
pub async fn not_found(app: AppState, uri: Uri) -> Response {
    let error = PageError::NotFound("page with this address".to_owned());
    if uri.path().starts_with("/api/") {
        return (error.status(), Json(json!({ "error": "there is no endpoint at this path" })))
            .into_response();
    }
    error_page(&app, &error)
}

/// A window of time that a page offers.
pub struct RangeLink {
    /// Label of the link, for example `7 d`.
    pub label: &'static str,
    /// Address of the page with this window.
    pub address: String,
    /// True if the page shows this window.
    pub is_current: bool,
}

/// Renders the windows of time that a page offers.
pub fn range_picker(links: impl IntoIterator<Item = RangeLink>) -> Markup {
    html! {
        nav class="ranges" aria-label="Range" {
            ul { @for link in links {
                li { a href=(link.address) aria-current=[link.is_current.then_some("true")] { (link.label) } }
            } }
        }
    }
}

/// Returns download links for charts, with the query of the current page.
pub fn chart_links<'c>(folder: &str, query: &str, charts: impl IntoIterator<Item = &'c Chart>) -> Markup {
    let mut charts = charts.into_iter().peekable();
    html! {
        @if charts.peek().is_some() {
            details class="chart-links" {
                summary { "Download charts as SVG" }
                ul { @for chart in charts { li { a href={ (folder) "/" (chart.id) ".svg" (query) } download { (chart.title) } } } }
            }
        }
    }
}

fn error_body(error: &PageError) -> Markup {
    html! {
        section aria-labelledby="error-heading" {
            h1 id="error-heading" { "This page cannot be shown" }
            p { (error) }
            p { a href="/" { "Go to the overview" } }
        }
    }
}

/// Returns the name of the local time zone, or else its offset from UTC now.
fn zone_name() -> String {
    let zone = local_zone();
    zone.iana_name().map_or_else(|| zone.to_offset(jiff::Timestamp::now()).to_string(), str::to_owned)
}

/// Returns a complete HTML page: head, navigation, content and footer.
fn page_shell(app: &AppState, item: Option<NavItem>, body: &Markup) -> Response {
    let name = item.map_or("Error", |item| item.link().0);
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme=(app.theme.name()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href=(assets::icon_url()) type="image/svg+xml";
                link rel="stylesheet" href=(assets::style_url());
                @for script in assets::script_urls() { script src=(script) defer {} }
                @if item == Some(NavItem::Latency) { script src=(assets::zoom_url()) defer {} }
                title { (name) " · longhaul" }
            }
            body class="local" {
                a class="skip" href="#content" { "Skip to content" }
                header class="top" {
                    a class="product" href="/" { "longhaul" }
                    (navigation(item))
                    p class="state-now" data-live="state" { (app.live_state().state_html()) }
                    (theme_switch(app))
                }
                @if let Some(notice) = app.deps.notice { aside class="notice" aria-label="Notice" { (notice) } }
                p id="disconnected" class="disconnected" role="status" hidden data-closed="This page is no longer updated: reload it." {
                    "The service does not respond. The page shows the last known state."
                }
                main id="content" tabindex="-1" { (body) }
                footer {
                    p {
                        "longhaul " (env!("CARGO_PKG_VERSION")) ". Times are local times of this service: " (zone_name()) ". "
                        "This page loads nothing from other servers. "
                        "The same numbers in the terminal: " code { "longhaul report" } ", " code { "status" } ", "
                        code { "latency" } ". For programs: " a href="/openapi.json" { "/api/v1" } "."
                    }
                }
            }
        }
    };
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], strip_control_characters(&page.into_string()))
        .into_response()
}

/// Renders the buttons that choose the colours.
fn theme_switch(app: &AppState) -> Markup {
    html! {
        form class="theme" action="/theme" aria-label="Colours" {
            input type="hidden" name="back" value=(app.path);
            @for theme in Theme::ALL {
                button name="to" value=(theme.name()) aria-pressed=(if app.theme == theme { "true" } else { "false" }) { (theme.label()) }
            }
        }
    }
}

fn navigation(here: Option<NavItem>) -> Markup {
    html! {
        nav aria-label="Pages" {
            ul {
                @for item in NavItem::ALL {
                    @let (name, address) = item.link();
                    li { a href=(address) aria-current=[(Some(item) == here).then_some("page")] { (name) } }
                }
            }
        }
    }
}

/// Returns the week that a request names.
///
/// # Errors
///
/// If the text is no ISO week, or one that has not begun, for which nothing can be said.
pub fn requested_week(cache: &mut CacheEntry, text: &str) -> Result<Week, PageError> {
    let week = parse_week(text)?;
    if week > cache.newest_week()?.max(current_week()) {
        return Err(PageError::NotFound(format!("week {text} yet")));
    }
    Ok(week)
}

/// Parses the week in a URL.
///
/// # Errors
///
/// If the text is not an ISO week. Week 53 of a year that has only 52 is a `NotFound`, not a `BadRequest`.
fn parse_week(text: &str) -> Result<Week, PageError> {
    text.parse().map_err(|error: longhaul_analysis::summary::WeekError| {
        let is_missing = text.ends_with("-W53");
        if is_missing {
            PageError::NotFound(format!("week {text}"))
        } else {
            PageError::BadRequest(format!("{error}."))
        }
    })
}
