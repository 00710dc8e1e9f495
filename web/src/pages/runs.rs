//! The list of runs with its search form, and the page of one run.

use axum::extract::{Path, Query};
use axum::response::Response;
use longhaul_model::{Outcome, TASKS, TargetName};
use longhaul_store::{RunFilter, StoredRun};
use longhaul_view::screens;
use maud::{Markup, html};
use serde::Deserialize;

use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::live::page_part;

/// Maximum number of runs that are shown. The database filters by target and workload; the outcome is filtered
/// here, among at most `MAX_SEARCHED` runs.
const MAX_SHOWN: usize = 100;
const MAX_SEARCHED: u32 = 2_000;

/// Query of the run list; an empty text matches everything.
#[derive(Debug, Default, Deserialize)]
pub struct RunSearch {
    #[serde(default)]
    target: String,
    #[serde(default)]
    workload: String,
    #[serde(default)]
    outcome: String,
}

/// Serves the list of runs.
pub async fn runs(app: AppState, Query(wanted): Query<RunSearch>) -> Response {
    render_page(app, NavItem::Runs, move |cache| {
        let names: Vec<TargetName> =
            cache.reader.targets()?.into_iter().map(|stored| stored.target.name).collect();
        let found = matching(cache.reader.runs(&filter(&wanted)?)?, &wanted);
        Ok(html! {
            h1 { "Runs" }
            (search_form(&wanted, &names))
            (list(&found))
        })
    })
    .await
}

fn filter(wanted: &RunSearch) -> Result<RunFilter, PageError> {
    let target = match wanted.target.as_str() {
        "" => None,
        name => {
            Some(name.parse().map_err(|_| PageError::BadRequest(format!("`{name}` is not a target name.")))?)
        }
    };
    let workload = Some(wanted.workload.clone()).filter(|name| !name.is_empty());
    let limit = if wanted.outcome.is_empty() { MAX_SHOWN as u32 } else { MAX_SEARCHED };
    Ok(RunFilter { target, workload, limit: Some(limit), ..RunFilter::default() })
}

/// Returns the runs with the requested outcome, newest first.
fn matching(runs: Vec<StoredRun>, wanted: &RunSearch) -> Vec<StoredRun> {
    let outcome = Outcome::from_name(&wanted.outcome);
    let is_meant = |stored: &StoredRun| outcome.is_none_or(|outcome| stored.run.outcome == outcome);
    runs.into_iter().rev().filter(is_meant).take(MAX_SHOWN).collect()
}

fn search_form(wanted: &RunSearch, names: &[TargetName]) -> Markup {
    let names: Vec<&str> = names.iter().map(TargetName::as_str).collect();
    let workloads: Vec<&str> = TASKS.iter().map(|workload| workload.name()).collect();
    let outcomes = Outcome::ALL.map(Outcome::name);
    html! {
        form class="search" role="search" {
            (select_field("target", "Target", &names, &wanted.target))
            (select_field("workload", "Task", &workloads, &wanted.workload))
            (select_field("outcome", "Outcome", &outcomes, &wanted.outcome))
            button { "Search" }
        }
    }
}

/// Renders a drop-down list with the option "all".
pub fn select_field(key: &str, label: &str, all: &[&str], chosen: &str) -> Markup {
    html! {
        label { (label) " "
            select name=(key) {
                option value="" { "all" }
                @for one in all { option value=(one) selected[*one == chosen] { (one) } }
            }
        }
    }
}

fn list(found: &[StoredRun]) -> Markup {
    html! {
        p class="muted" { (found.len()) " runs, newest first" @if found.len() == MAX_SHOWN { "; there may be more" } "." }
        (page_part(&screens::runs::runs(found)))
    }
}

/// Serves the page of one run.
pub async fn run(app: AppState, Path(number): Path<String>) -> Response {
    render_page(app, NavItem::Runs, move |cache| {
        let unknown = || PageError::NotFound(format!("run `{number}`"));
        let stored = cache.reader.run(number.parse().map_err(|_| unknown())?)?.ok_or_else(unknown)?;
        Ok(run_details(&stored))
    })
    .await
}

fn run_details(stored: &StoredRun) -> Markup {
    html! {
        (page_part(&screens::run::run(stored)))
        p { a href={ "/api/v1/runs/" (stored.number) } { "As JSON" } }
    }
}
