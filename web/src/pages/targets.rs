//! The targets: state, what was negotiated, budget; and the three orders that a person gives from here.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use longhaul_measure::model::Role;
use longhaul_report::charts::Table;
use longhaul_report::page::parts::{section, table_of};
use longhaul_report::units;
use longhaul_service::desk::Pause;
use longhaul_service::status::{Status, TargetStatus};
use longhaul_service::words;
use longhaul_store::StoredEpoch;
use maud::{Markup, html};

use super::{Now, Place, framed};
use crate::face::Face;

/// The page.
pub async fn targets(State(face): State<Face>, headers: HeaderMap) -> Response {
    let now = face.now();
    let orders = if face.guard.knows(&headers) { orders() } else { how_to_order() };
    framed(face, Place::Targets, move |book| {
        let epochs = book.reader.epochs()?;
        Ok(html! {
            h1 { "Targets" }
            (service(&now, &orders))
            @if let Some(status) = &now.status {
                @for target in &status.targets { (one(target, status, &epochs)) }
            }
        })
    })
    .await
}

fn service(now: &Now, orders: &Markup) -> Markup {
    section(
        "service",
        "The service",
        &html! {
            div data-live="round" { (now.round()) }
            @if let Some(status) = &now.status { p { "Rounds: " (words::rounds(status)) "." } }
            (orders)
        },
    )
}

/// For a browser that may not give orders.
fn how_to_order() -> Markup {
    html! { p class="muted" { "To pause, to resume and to make a round from this browser, open the page with " code { "longhaul page" } "." } }
}

fn orders() -> Markup {
    html! {
        form method="post" class="orders" {
            @for (order, label) in [("round", "Make a round now"), ("pause", "Pause"), ("resume", "Resume")] {
                button formaction={ "/orders/" (order) } { (label) }
            }
        }
    }
}

fn one(target: &TargetStatus, status: &Status, epochs: &[StoredEpoch]) -> Markup {
    let own: Vec<&StoredEpoch> = epochs.iter().filter(|epoch| epoch.target == target.name).collect();
    let role = match target.role {
        Role::Share => "compared with the others",
        Role::Baseline => "a baseline, compared with nobody",
    };
    let used = units::bytes(target.bytes_per_day as f64);
    let allowed = target.bytes_allowed.map_or("no limit".to_owned(), |bytes| units::bytes(bytes as f64));
    let runs = target.last_runs.map_or("none yet".to_owned(), |(runs, ok)| format!("{ok} of {runs} runs ok"));
    section(
        &format!("target-{}", target.name),
        target.name.as_str(),
        &html! {
            dl class="facts" {
                dt { "State" } dd { (words::target_state(target, status.now_us)) }
                dt { "Reached by" } dd { (target.protocol.as_deref().unwrap_or("not mounted")) }
                dt { "Path" } dd { code { (target.path) } }
                dt { "Role" } dd { (role) }
                dt { "Latest round" } dd { (runs) }
                dt { "In 24 hours" } dd { (used) " of " (allowed) }
                dt { "Light probe" } dd { (words::probe(&target.probe)) }
            }
            @if let Some(newest) = own.last() { (negotiated(newest, own.len())) }
        },
    )
}

fn negotiated(epoch: &StoredEpoch, epochs: usize) -> Markup {
    let mut table = Table::new(["negotiated", "value"]);
    table.rows.extend(epoch.negotiated.iter().map(|(key, value)| vec![key.clone(), value.clone()]));
    html! {
        p class="muted" { "Epoch " (epochs) ", since " (words::time(epoch.opened_us)) "." }
        @if !table.rows.is_empty() {
            details { summary { "What was negotiated" } (table_of("What was negotiated", &table)) }
        }
    }
}

/// Takes an order and leads back.
pub async fn order(State(face): State<Face>, Path(order): Path<String>) -> Response {
    let give = |pause| face.control.desk.order(|orders| orders.pause = Some(pause));
    match order.as_str() {
        "pause" => give(Pause::On),
        "resume" => give(Pause::Off),
        "round" => face.control.desk.order(|orders| orders.round = true),
        _ => return StatusCode::NOT_FOUND.into_response(),
    }
    Redirect::to("/targets").into_response()
}
