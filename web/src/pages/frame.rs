//! What all pages have around them, and how one is answered.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use longhaul_measure::summary::Week;
use longhaul_report::charts::Chart;
use longhaul_report::charts::svg::readable;
use maud::{DOCTYPE, Markup, html};
use serde_json::json;

use crate::assets;
use crate::face::Face;
use crate::shelf::Book;

/// Where a page is in the contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The answer.
    Overview,
    /// One week.
    Week,
    /// One task.
    Tasks,
    /// The light probe.
    Latency,
    /// Events.
    Journal,
    /// Runs.
    Runs,
    /// Targets and orders.
    Targets,
    /// How it is done.
    Method,
}

impl Place {
    /// Every place, in the order of the contents.
    pub const ALL: [Place; 8] = [
        Self::Overview,
        Self::Week,
        Self::Tasks,
        Self::Latency,
        Self::Journal,
        Self::Runs,
        Self::Targets,
        Self::Method,
    ];

    /// Its name and its address.
    pub const fn link(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("Overview", "/"),
            Self::Week => ("Week", "/weeks"),
            Self::Tasks => ("Tasks", "/tasks"),
            Self::Latency => ("Latency", "/latency"),
            Self::Journal => ("Journal", "/journal"),
            Self::Runs => ("Runs", "/runs"),
            Self::Targets => ("Targets", "/targets"),
            Self::Method => ("Method", "/method"),
        }
    }
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The database cannot be read.
    #[error("{0}")]
    Store(#[from] longhaul_store::Error),
    /// Nothing has this address.
    #[error("There is no {0}.")]
    Unknown(String),
    /// The question has no meaning.
    #[error("{0}")]
    Question(String),
    /// The page could not be made to its end.
    #[error("The page was not finished: {0}. The log of the service says more.")]
    Unfinished(String),
}

impl Trouble {
    /// The status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unknown(_) => StatusCode::NOT_FOUND,
            Self::Question(_) => StatusCode::BAD_REQUEST,
            Self::Unfinished(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Makes a page of what is on the shelf, and answers with it.
pub async fn framed(
    face: Face,
    place: Place,
    make: impl FnOnce(&mut Book) -> Result<Markup, Trouble> + Send + 'static,
) -> Response {
    let made = read(face.clone(), make).await;
    let (status, body) = match made {
        Ok(body) => (StatusCode::OK, body),
        Err(trouble) => (trouble.status(), sorry(&trouble)),
    };
    (status, whole(&face, Some(place), &body)).into_response()
}

/// Reads what is on the shelf, on a thread that may wait for the disk.
pub async fn read<T: Send + 'static>(
    face: Face,
    ask: impl FnOnce(&mut Book) -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let asked = tokio::task::spawn_blocking(move || {
        let _span = tracing::debug_span!("read for a page").entered();
        let mut found = None;
        face.shelf.read(|book| {
            found = Some(ask(book));
            Ok(())
        })?;
        found.unwrap_or_else(|| Err(Trouble::Unfinished("nothing was read".to_owned())))
    });
    asked.await.unwrap_or_else(|error| Err(Trouble::Unfinished(error.to_string())))
}

/// A picture as a file.
pub fn picture(chart: Option<Chart>) -> Response {
    match chart {
        Some(chart) => ([(CONTENT_TYPE, "image/svg+xml")], chart.standalone(PICTURE_WIDTH)).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// How wide a picture is that is taken away, in pixels.
const PICTURE_WIDTH: u32 = 880;

/// For every address that nothing has.
pub async fn nowhere(State(face): State<Face>, uri: Uri) -> Response {
    let trouble = Trouble::Unknown("page with this address".to_owned());
    if uri.path().starts_with("/api/") {
        return (trouble.status(), Json(json!({ "error": "there is nothing at this address" })))
            .into_response();
    }
    (trouble.status(), whole(&face, None, &sorry(&trouble))).into_response()
}

/// Links to the picture of each chart, as the same question gives it.
pub fn pictures((folder, query): (&str, &str), charts: &[Chart]) -> Markup {
    html! {
        @if !charts.is_empty() {
            details class="pictures" {
                summary { "Pictures to take along" }
                ul { @for chart in charts { li { a href={ (folder) "/" (chart.id) ".svg" (query) } { (chart.title) } } } }
            }
        }
    }
}

fn sorry(trouble: &Trouble) -> Markup {
    html! {
        section aria-labelledby="sorry" {
            h1 id="sorry" { "There is nothing to show here" }
            p { (trouble) }
            p { a href="/" { "To the overview" } }
        }
    }
}

/// A page with its head, its contents and its foot.
fn whole(face: &Face, place: Option<Place>, body: &Markup) -> Response {
    let name = place.map_or("Nothing here", |place| place.link().0);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href=(assets::icon()) type="image/svg+xml";
                link rel="stylesheet" href=(assets::style());
                script src=(assets::script()) defer {}
                @if place == Some(Place::Latency) {
                    @let (style, scripts) = assets::pulling();
                    link rel="stylesheet" href=(style);
                    @for script in scripts { script src=(script) defer {} }
                }
                title { (name) " · longhaul" }
            }
            body class="local" {
                a class="skip" href="#content" { "To the content" }
                header class="top" {
                    a class="product" href="/" { "longhaul" }
                    (contents(place))
                    p class="state-now" data-live="state" { (face.now().state()) }
                }
                p id="lost" class="lost" role="status" hidden { "The service does not answer: what is shown is as old as this page." }
                main id="content" tabindex="-1" { (body) }
                footer {
                    p {
                        "longhaul " (env!("CARGO_PKG_VERSION")) ", on this machine alone: this page loads nothing from elsewhere. "
                        "Every number here is the terminal's: " code { "longhaul week" } ", " code { "status" } ", "
                        code { "samples" } ". Programs read " a href="/openapi.json" { "/api/v1" } "."
                    }
                }
            }
        }
    };
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], readable(&page.into_string())).into_response()
}

fn contents(here: Option<Place>) -> Markup {
    html! {
        nav aria-label="Pages" {
            ul {
                @for place in Place::ALL {
                    @let (name, address) = place.link();
                    li { a href=(address) aria-current=[(Some(place) == here).then_some("page")] { (name) } }
                }
            }
        }
    }
}

/// A week of an address.
///
/// # Errors
///
/// If it is none. That a year has no 53rd week is no fault of the form.
pub fn week_of(text: &str) -> Result<Week, Trouble> {
    text.parse().map_err(|error: longhaul_measure::summary::WeekError| {
        let is_missing = text.ends_with("-W53");
        if is_missing {
            Trouble::Unknown(format!("week {text}"))
        } else {
            Trouble::Question(format!("{error}."))
        }
    })
}
