//! The targets page: state, negotiated options and budget of each target, and the buttons to control the service.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use longhaul_service::command::{Command, Pause};
use longhaul_view::render::html::section;
use longhaul_view::screens;
use maud::{Markup, html};

use super::{NavItem, render_page};
use crate::app_state::AppState;
use crate::cache::local_zone;
use crate::live::{LiveState, page_part};

/// Serves the targets page.
pub async fn targets(app: AppState, headers: HeaderMap) -> Response {
    let now = app.live_state();
    let commands = if app.guard.keys.has_session(&headers) { command_buttons() } else { login_hint() };
    render_page(app, NavItem::Targets, move |cache| {
        let epochs = cache.reader.epochs()?;
        Ok(html! {
            h1 { "Targets" }
            (service_section(&now, &commands))
            div data-live="targets" { (now.targets_html()) }
            @if let Some(status) = &now.status { (page_part(&screens::targets::newest_epochs(status, &epochs, &local_zone()))) }
        })
    })
    .await
}

fn service_section(now: &LiveState, commands: &Markup) -> Markup {
    section(
        "service",
        "The service",
        &html! {
            div data-live="round" { (now.round_html()) }
            @if let Some(status) = &now.status { p { "Rounds: " (screens::status::rounds(status)) "." } }
            (commands)
        },
    )
}

/// Renders the hint for a browser that is not logged in.
fn login_hint() -> Markup {
    html! { p class="muted" { "To pause, resume or start rounds from this browser, open the page with " code { "longhaul dashboard" } "." } }
}

fn command_buttons() -> Markup {
    html! {
        form method="post" class="commands" {
            @for (order, label) in [("round", "Start a round"), ("pause", "Pause"), ("resume", "Resume")] {
                button formaction={ "/commands/" (order) } { (label) }
            }
        }
    }
}

/// Executes a command from a button and redirects to the targets page.
pub async fn run_command(app: AppState, Path(order): Path<String>) -> Response {
    let set_pause = |pause| app.deps.service.send(Command::SetPause(pause));
    match order.as_str() {
        "pause" => set_pause(Pause::On),
        "resume" => set_pause(Pause::Off),
        "round" => app.deps.service.send(Command::RunRound),
        _ => return StatusCode::NOT_FOUND.into_response(),
    }
    Redirect::to("/targets").into_response()
}
