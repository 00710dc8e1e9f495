//! One task: how long it took on each target, day by day, and every time of it.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use longhaul_measure::model::RoundStatus;
use longhaul_measure::stats::quantile;
use longhaul_measure::summary::{History, KeptRun, Weekly};
use longhaul_measure::workloads::{WORKLOADS, Workload, workload};
use longhaul_report::charts::{Chart, Curve, Ecdf, Looks, Smoke, Spread, TimeScale};
use longhaul_report::page::details;
use longhaul_report::page::parts::{figure, section};
use longhaul_report::words::labelled;
use longhaul_store::CALLS_KEPT_DAYS;
use maud::{Markup, html};

use super::frame::{picture, pictures, read};
use super::happened::happened;
use super::slowest::{slowest_calls, slowest_runs};
use super::smoke::{QUANTILES, midnight};
use super::{Place, Trouble, framed};
use crate::face::Face;
use crate::shelf::{Book, zone};

const DAY_US: i64 = 86_400_000_000;

/// To the first task.
pub async fn tasks() -> Redirect {
    Redirect::to(&format!("/tasks/{}", WORKLOADS[0].name()))
}

/// The page of a task.
pub async fn task(State(face): State<Face>, Path(name): Path<String>) -> Response {
    let since_us = face.now_us() - CALLS_KEPT_DAYS * DAY_US;
    framed(face, Place::Tasks, move |book| {
        let workload = known(&name)?;
        let (history, weekly) = values(book)?;
        let calls = book.reader.calls(&name, since_us)?;
        let endpoints = endpoints(workload, &history, &weekly);
        Ok(html! {
            nav class="tabs" aria-label="Tasks" { ul { @for one in WORKLOADS {
                li { a href={ "/tasks/" (one.name()) } aria-current=[(one.name() == name).then_some("page")] { (one.name()) } }
            } } }
            h1 { (workload.name()) }
            p { (workload.summary()) }
            (body(&endpoints, &weekly, workload))
            (slowest_calls(&calls, weekly.scale))
            (slowest_runs(&history, workload, weekly.scale))
            (pictures((&format!("/tasks/{name}/charts"), ""), &charts(&endpoints).concat()))
        })
    })
    .await
}

/// One chart of a task as a picture.
pub async fn task_chart(State(face): State<Face>, Path((name, file)): Path<(String, String)>) -> Response {
    let found = read(face, move |book| {
        let (history, weekly) = values(book)?;
        let endpoints = endpoints(known(&name)?, &history, &weekly);
        let id = file.strip_suffix(".svg").unwrap_or_default();
        Ok(charts(&endpoints).concat().into_iter().find(|chart| chart.id == id))
    });
    found.await.map_or_else(|trouble| trouble.status().into_response(), picture)
}

fn known(name: &str) -> Result<&'static dyn Workload, Trouble> {
    workload(name).ok_or_else(|| Trouble::Unknown(format!("task `{name}`")))
}

fn values(book: &mut Book) -> Result<(std::sync::Arc<History>, std::sync::Arc<Weekly>), Trouble> {
    let newest = book.newest()?;
    Ok((book.history()?, book.weekly(newest)?))
}

/// One time that somebody waits for, on all targets.
struct Waits {
    label: String,
    smokes: Vec<Smoke>,
    ecdf: Ecdf,
}

fn endpoints(workload: &dyn Workload, history: &History, weekly: &Weekly) -> Vec<Waits> {
    let looks = Looks::of(&weekly.targets);
    let void = history.rounds.iter().filter(|round| round.status == Some(RoundStatus::Void));
    let void: BTreeSet<i64> = void.map(|round| round.number).collect();
    let place = WORKLOADS.iter().position(|known| known.name() == workload.name());
    let counts = |run: &&KeptRun| {
        Some(run.workload) == place && Some(run.scale) == weekly.scale && !void.contains(&run.round)
    };
    let runs: Vec<&KeptRun> = history.runs.iter().filter(counts).collect();
    let waits = |(place, endpoint): (usize, &longhaul_measure::model::Endpoint)| {
        let label = labelled(endpoint.activity, Some(endpoint.cache));
        let of_target = |target: usize| {
            let own: Vec<&KeptRun> = runs.iter().copied().filter(|run| run.target == target).collect();
            (!own.is_empty()).then_some((target, own))
        };
        let targets: Vec<(usize, Vec<&KeptRun>)> = (0..history.targets.len()).filter_map(of_target).collect();
        let named = |target: usize| {
            (history.targets[target].name.to_string(), looks.look(&history.targets[target].name))
        };
        Waits {
            smokes: targets
                .iter()
                .map(|(target, own)| Smoke {
                    events: happened(&history.events, &history.targets[*target].name),
                    ..smoke((own, place), named(*target), (endpoint.name, &label))
                })
                .collect(),
            ecdf: Ecdf {
                id: format!("all-{}", endpoint.name),
                title: format!("Every time of {label}"),
                curves: targets.iter().map(|(target, own)| curve((own, place), named(*target))).collect(),
            },
            label,
        }
    };
    on_one_time(workload.endpoints().iter().enumerate().map(waits).collect())
}

/// All smokes of the page on one axis of time.
fn on_one_time(mut all: Vec<Waits>) -> Vec<Waits> {
    let spans = || all.iter().flat_map(|waits| &waits.smokes).map(|smoke| smoke.time.span_us);
    let first = spans().map(|(from, _)| from).min().unwrap_or(0);
    let last = spans().map(|(_, to)| to).max().unwrap_or(0);
    all.iter_mut().flat_map(|waits| &mut waits.smokes).for_each(|smoke| smoke.time.span_us = (first, last));
    all
}

type Named = (String, longhaul_report::charts::Look);

/// Day by day, all epochs: a change of epoch is seen, and no day pools two of them but the one on which it changed.
fn smoke((runs, place): (&[&KeptRun], usize), (name, look): Named, (key, label): (&str, &str)) -> Smoke {
    let zone = zone();
    let mut days: BTreeMap<i64, (Vec<f64>, u64)> = BTreeMap::new();
    for run in runs {
        let (times, failed) = days.entry(midnight(run.started_us, &zone)).or_default();
        times.extend(run.times.get(place));
        *failed += u64::from(run.outcome.is_failure());
    }
    let first = days.keys().next().copied().unwrap_or(0);
    let last = days.keys().last().map_or(DAY_US, |last| last + DAY_US);
    Smoke {
        id: format!("days-{key}-{name}"),
        title: format!("{label} on {name}, day by day"),
        name,
        look,
        steps: days.into_iter().map(|(at_us, (times, failed))| spread(at_us, &times, failed)).collect(),
        step_us: DAY_US,
        time: TimeScale { span_us: (first, last), zone },
        events: vec![],
    }
}

fn spread(at_us: i64, times: &[f64], failed: u64) -> Spread {
    let all = QUANTILES.map(|q| quantile(times, q));
    Spread {
        at_us,
        quantiles: all.iter().all(Option::is_some).then(|| all.map(Option::unwrap_or_default)),
        longest: times.iter().copied().reduce(f64::max),
        count: times.len() as u64,
        failed,
    }
}

/// Of the newest epoch only.
fn curve((runs, place): (&[&KeptRun], usize), (name, look): Named) -> Curve {
    let epoch = runs.iter().map(|run| run.epoch).max();
    let own = runs.iter().filter(|run| Some(run.epoch) == epoch);
    let mut times: Vec<f64> = own.clone().filter_map(|run| run.times.get(place)).collect();
    times.sort_by(f64::total_cmp);
    Curve { name, look, times, failed: own.filter(|run| run.outcome.is_failure()).count() }
}

/// Endpoint by endpoint: the smokes of its targets on one axis, then all its times.
fn charts(all: &[Waits]) -> Vec<Vec<Chart>> {
    let draw = |waits: &Waits| {
        let scale = Smoke::shared_scale(&waits.smokes);
        let drawn = waits.smokes.iter().map(|smoke| smoke.draw(scale));
        drawn.chain([waits.ecdf.draw(Ecdf::shared_scale([&waits.ecdf]))]).collect()
    };
    all.iter().map(draw).collect()
}

fn body(all: &[Waits], weekly: &Weekly, workload: &dyn Workload) -> Markup {
    let looks = Looks::of(&weekly.targets);
    let family: Vec<_> =
        weekly.table.iter().filter(|row| row.subject.workload == Some(workload.name())).cloned().collect();
    html! {
        @if family.is_empty() { p { "It was not measured yet." } }
        @else {
            @let times = details::family_chart(&family, &looks);
            (section("times", "Where it stands", &figure(&times.draw(times.scale()), &[])))
            @for (place, (waits, charts)) in all.iter().zip(charts(all)).enumerate() {
                (section(&format!("wait-{place}"), &capital(&waits.label), &html! {
                    p class="muted" { "All bands of this part share their axes. They show every run but those of void rounds; verdicts leave out the days on \
                         which a target settles, so they count fewer." }
                    @let notes = waits.smokes.iter().map(Smoke::notes).chain([vec![]]);
                    div class="many" { @for (chart, notes) in charts.iter().zip(notes) { (figure(chart, &notes)) } }
                }))
            }
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
