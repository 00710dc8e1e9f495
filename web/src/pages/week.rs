//! One week: the summary as the terminal has it, to look at, to print and to take along.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Redirect, Response};
use longhaul_measure::summary::{Week, Weekly, caching};
use longhaul_report::charts::{Chart, Days, Forest, Looks};
use longhaul_report::page::{self, answer, details, pairs, parts::section};
use longhaul_report::{Environment, html as report, markdown};
use maud::{Markup, html};

use super::frame::{picture, pictures, read, week_of};
use super::{Place, Trouble, framed};
use crate::face::Face;
use crate::json::WeekShown;
use crate::shelf::{Book, this_week};
use crate::{badges, environment};

/// To the newest week with a round.
pub async fn newest_week(State(face): State<Face>) -> Response {
    match read(face.clone(), |book| Ok(book.newest()?)).await {
        Ok(week) => Redirect::to(&format!("/weeks/{week}")).into_response(),
        Err(trouble) => framed(face, Place::Week, |_| Err(trouble)).await,
    }
}

/// The page of a week.
pub async fn week(State(face): State<Face>, Path(week): Path<String>) -> Response {
    framed(face, Place::Week, move |book| {
        let week = week_of(&week)?;
        let weekly = book.weekly(week)?;
        let environment = environment_of(book)?;
        let around = neighbours(book, week)?;
        Ok(body(&weekly, &environment, around))
    })
    .await
}

/// The week before and the week after, as far as there is something in them.
fn neighbours(book: &mut Book, week: Week) -> Result<[Option<Week>; 2], Trouble> {
    let (first, last) = book.span()?.unwrap_or((week, week));
    let (before, after) = (Week::of_day(week.first_day() - 1), Week::of_day(week.last_day() + 1));
    let last = last.max(this_week());
    Ok([Some(before).filter(|before| *before >= first), Some(after).filter(|after| *after <= last)])
}

fn environment_of(book: &mut Book) -> Result<Environment, Trouble> {
    let history = book.history()?;
    Ok(environment(&history, &book.reader.epochs()?).anonymised())
}

fn body(weekly: &Weekly, environment: &Environment, around: [Option<Week>; 2]) -> Markup {
    let looks = Looks::of(&weekly.targets);
    let sections = page::sections(weekly, environment, (&looks, &[]));
    html! {
        (turning(weekly, around))
        (answer::first_screen(weekly, &looks))
        (downloads(weekly))
        nav aria-label="Contents of the week" {
            ul { @for (id, heading, _) in &sections { li { a href={ "#" (id) } { (heading) } } } }
        }
        @for (id, heading, body) in &sections { (section(id, heading, body)) }
        (pictures((&format!("/weeks/{}/charts", weekly.week), ""), &charts(weekly)))
    }
}

fn turning(weekly: &Weekly, [before, after]: [Option<Week>; 2]) -> Markup {
    let scale = weekly.scale.map_or(String::new(), |scale| format!(" · {} scale", scale.name()));
    html! {
        nav class="turning" aria-label="Weeks" {
            @match before { Some(week) => { a rel="prev" href={ "/weeks/" (week) } { "‹ " (week) } } None => { span {} } }
            p { "Week " (weekly.week) ", " (weekly.first_day) " to " (weekly.last_day) " · " (format!("{:.0}", weekly.hours)) " hours" (scale) }
            @match after { Some(week) => { a rel="next" href={ "/weeks/" (week) } { (week) " ›" } } None => { span {} } }
        }
    }
}

fn downloads(weekly: &Weekly) -> Markup {
    html! {
        p class="muted downloads" {
            "Take it along: "
            @for (place, (ending, name)) in ENDINGS.iter().enumerate() {
                @if place > 0 { ", " }
                a href={ "/weeks/" (weekly.week) "/longhaul-" (weekly.week) "." (ending) } download { (name) }
            }
            ". HTML and Markdown name no person, machine or path; to print, print this page."
        }
    }
}

const ENDINGS: [(&str, &str); 4] =
    [("html", "one HTML page"), ("md", "Markdown"), ("csv", "times as CSV"), ("json", "all of it as JSON")];

/// A week as a file; its ending says which.
pub async fn download(State(face): State<Face>, Path((week, file)): Path<(String, String)>) -> Response {
    let made = read(face.clone(), move |book| {
        let week = week_of(&week)?;
        let ending = file.strip_prefix(&format!("longhaul-{week}.")).unwrap_or_default().to_owned();
        let weekly = book.weekly(week)?;
        let (kind, text) = match ending.as_str() {
            "html" => ("text/html; charset=utf-8", report(&weekly, &environment_of(book)?)),
            "md" => ("text/markdown; charset=utf-8", markdown(&weekly)),
            "csv" => ("text/csv; charset=utf-8", details::times_table(&weekly).csv()),
            "json" => ("application/json", as_json(&weekly, book)?),
            _ => return Err(Trouble::Unknown(format!("file `{file}`"))),
        };
        Ok((kind, format!("attachment; filename=\"longhaul-{week}.{ending}\""), text))
    });
    match made.await {
        Ok((kind, name, text)) => {
            ([(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, name)], text).into_response()
        }
        Err(trouble) => framed(face, Place::Week, |_| Err(trouble)).await,
    }
}

fn as_json(weekly: &Weekly, book: &Book) -> Result<String, Trouble> {
    let caching = caching(&book.reader.rereads()?);
    serde_json::to_string_pretty(&WeekShown { weekly, caching: &caching })
        .map_err(|error| Trouble::Unfinished(error.to_string()))
}

/// Every chart of a week, as it is on its page.
fn charts(weekly: &Weekly) -> Vec<Chart> {
    let looks = Looks::of(&weekly.targets);
    let overview = answer::overview(weekly, &looks);
    let forests: Vec<Forest> = weekly.pairs.iter().map(|pair| pairs::forest(pair, weekly, &looks)).collect();
    let days: Vec<Days> =
        weekly.pairs.iter().filter_map(|pair| pairs::days(pair, weekly, &weekly.events)).collect();
    let (scale, day_scale) = (Forest::shared_scale(&forests), Days::shared_scale(&days));
    let overview = (!overview.groups.is_empty()).then(|| overview.draw(Forest::shared_scale([&overview])));
    let families = weekly.table.chunk_by(|a, b| a.subject.workload == b.subject.workload);
    let times = families.map(|family| {
        let chart = details::family_chart(family, &looks);
        chart.draw(chart.scale())
    });
    let drawn = forests.iter().map(|forest| forest.draw(scale));
    overview
        .into_iter()
        .chain(drawn)
        .chain(days.iter().map(|days| days.draw(day_scale)))
        .chain(times)
        .collect()
}

/// One chart of a week as a picture.
pub async fn week_chart(State(face): State<Face>, Path((week, file)): Path<(String, String)>) -> Response {
    let found = read(face, move |book| {
        let weekly = book.weekly(week_of(&week)?)?;
        let id = file.strip_suffix(".svg").unwrap_or_default();
        Ok(charts(&weekly).into_iter().find(|chart| chart.id == id))
    });
    found.await.map_or_else(|trouble| trouble.status().into_response(), picture)
}

/// The badge of a pair: its verdict in a few words.
pub async fn badge(State(face): State<Face>, Path((a, b)): Path<(String, String)>) -> Response {
    let found = read(face, move |book| {
        let newest = book.newest()?;
        let weekly = book.weekly(newest)?;
        let b = b.strip_suffix(".svg").unwrap_or(&b);
        let is_meant = |x: &str, y: &str| (x == a && y == b) || (x == b && y == a);
        let pair = weekly.pairs.iter().find(|pair| is_meant(pair.a.as_str(), pair.b.as_str()));
        Ok(pair.map(badges::badge))
    });
    match found.await {
        Ok(Some(svg)) => ([(CONTENT_TYPE, "image/svg+xml")], svg).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(trouble) => trouble.status().into_response(),
    }
}
