//! The list of runs with its search form, and the page of one run.

use axum::extract::Path;
use axum::response::Response;
use longhaul_model::{Outcome, TASKS, TargetName};
use longhaul_store::{RunFilter, StoredRun};
use longhaul_view::screens;
use longhaul_view::units::count;
use maud::{Markup, html};
use serde::Deserialize;

use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::cache::local_zone;
use crate::live::page_part;
use crate::params::Params;

/// Maximum number of runs on a page.
const RUNS_PER_PAGE: u32 = 100;

/// Query of the run list; an empty text matches everything.
#[derive(Debug, Default, Deserialize)]
pub struct RunSearch {
    #[serde(default)]
    target: String,
    #[serde(default)]
    workload: String,
    #[serde(default)]
    outcome: String,
    /// Number of newer runs, which other pages list.
    #[serde(default)]
    skip: u32,
}

/// Serves the list of runs.
pub async fn runs(app: AppState, Params(wanted): Params<RunSearch>) -> Response {
    render_page(app, NavItem::Runs, move |cache| {
        let names: Vec<TargetName> =
            cache.reader.targets()?.into_iter().map(|stored| stored.target.name).collect();
        let filter = filter(&wanted)?;
        let mut found = cache.reader.runs(&filter)?;
        found.reverse();
        let all = cache.reader.run_count(&filter)?;
        Ok(html! {
            h1 { "Runs" }
            (search_form(&wanted, &names))
            p class="muted" { (shown(wanted.skip, found.len(), all)) }
            (page_part(&screens::runs::runs(&found, &local_zone())))
            (page_buttons(&wanted, all))
        })
    })
    .await
}

fn filter(wanted: &RunSearch) -> Result<RunFilter, PageError> {
    let refused = |name: &str, what: &str| PageError::BadRequest(format!("`{name}` is not {what}."));
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let target = given(&wanted.target)
        .map(|name| name.parse().map_err(|_| refused(&name, "a target name")))
        .transpose()?;
    let outcome = given(&wanted.outcome)
        .map(|name| Outcome::from_name(&name).ok_or_else(|| refused(&name, "an outcome")))
        .transpose()?;
    let (workload, limit) = (given(&wanted.workload), Some(RUNS_PER_PAGE));
    Ok(RunFilter { target, workload, outcome, skip: wanted.skip, limit, ..RunFilter::default() })
}

/// Returns which of the runs that match a page shows.
fn shown(skip: u32, on_page: usize, all: u64) -> String {
    if on_page as u64 == all {
        return format!("{}, newest first.", count(all, "run"));
    }
    if on_page == 0 {
        return format!("{} match; there are no older ones.", count(all, "run"));
    }
    let last = u64::from(skip) + on_page as u64;
    format!("Runs {} to {last} of {all}, newest first.", skip.saturating_add(1))
}

/// Renders buttons for the pages with newer and older runs.
fn page_buttons(wanted: &RunSearch, all: u64) -> Markup {
    let fields = [("target", &wanted.target), ("workload", &wanted.workload), ("outcome", &wanted.outcome)];
    let button = |skip: u32, words: &str| {
        html! {
            form class="search" {
                @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                button name="skip" value=(skip) { (words) }
            }
        }
    };
    let older = wanted.skip.saturating_add(RUNS_PER_PAGE);
    html! {
        @if wanted.skip > 0 { (button(wanted.skip.saturating_sub(RUNS_PER_PAGE), "Newer runs")) }
        @if u64::from(older) < all { (button(older, "Older runs")) }
    }
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
        (page_part(&screens::run::run(stored, &local_zone())))
        p { a href={ "/api/v1/runs/" (stored.number) } { "As JSON" } }
    }
}
