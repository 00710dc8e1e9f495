//! How it was, all day: the light probe as smoke, by weekday and hour, day by day, and the ledger of waits.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use longhaul_measure::model::{Beside, Event, LONG_WAIT_NS, ProbeKind, ProbeStep, Stall, Step, TargetName};
use longhaul_measure::stats::Histogram;
use longhaul_measure::summary::{Felt, Window, felt, local_day, longer_than, sampled};
use longhaul_report::charts::{Availability, Calendar, Chart, Heat, Looks, Smoke, Table};
use longhaul_report::page::parts::{figure, section, table_of};
use longhaul_report::{units, words};
use longhaul_service::words::time;
use maud::{Markup, html};

use super::frame::{picture, pictures, read};
use super::meant::{Asked, DAY_US, Meant};
use super::runs::choice;
use super::smoke::{by_target, merged, probes, smokes};
use super::{Place, Trouble, framed};
use crate::face::Face;
use crate::shelf::{Book, offset_at};

/// What may be chosen, in days; samples are kept for no longer.
const WINDOWS: [i64; 7] = [1, 3, 7, 28, 91, 364, 1_200];
/// Over so many days the hours of a week are put together.
const WEEKS_OF_HEAT: i64 = 8;
/// So many lines of the ledger are shown, the newest.
const STALLS_SHOWN: usize = 100;
/// The page.
pub async fn latency(State(face): State<Face>, Query(asked): Query<Asked>) -> Response {
    let now_us = face.now_us();
    framed(face, Place::Latency, move |book| {
        let meant = Meant::of(&asked, now_us)?;
        let shown = shown(book, &meant)?;
        Ok(html! {
            h1 { "Latency" }
            p { "From the instant at which the light probe meant to ask until the answer: a stall counts for every question that it \
                 swallowed. It asks while somebody uses a share or a round does, never to wake one up." }
            (choices(&meant))
            (turning(&meant, now_us))
            (shown.draw())
        })
    })
    .await
}

/// One chart of the page as a picture.
pub async fn latency_chart(
    State(face): State<Face>,
    Path(file): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let now_us = face.now_us();
    let found = read(face, move |book| {
        let shown = shown(book, &Meant::of(&asked, now_us)?)?;
        let id = file.strip_suffix(".svg").unwrap_or_default();
        Ok(shown.charts().into_iter().flatten().find(|chart| chart.id == id))
    });
    found.await.map_or_else(|trouble| trouble.status().into_response(), picture)
}

fn choices(meant: &Meant) -> Markup {
    let (days, chosen) = (WINDOWS.map(|days| days.to_string()), meant.days());
    let other = (!days.contains(&chosen)).then_some(&chosen);
    let kinds = ProbeKind::ALL.map(ProbeKind::name);
    html! {
        form class="search" {
            label { "Days "
                select name="days" { @for one in days.iter().chain(other) { option value=(one) selected[*one == chosen] { (one) } } }
            }
            label { "Asked "
                select name="kind" { @for one in kinds { option value=(one) selected[one == meant.kind.name()] { (one) } } }
            }
            (choice(("beside", "Beside"), &Beside::ALL.map(Beside::name), meant.beside.map_or("", Beside::name)))
            button { "Show" }
        }
    }
}

/// Earlier, later, closer, further away.
fn turning(meant: &Meant, now_us: i64) -> Markup {
    let (from_us, until_us) = meant.span_us();
    let (length_us, half) = (meant.length_us, meant.length_us / 2);
    let to =
        |length_us: i64, until_us: i64| format!("/latency{}", meant.query(length_us, until_us.min(now_us)));
    html! {
        nav class="turning" aria-label="Time" {
            a id="earlier" href=(to(length_us, until_us - half)) { "‹ earlier" }
            p { (time(from_us)) " to " (time(until_us)) " · "
                a id="closer" href=(to(half, until_us - half / 2)) { "closer" } " · "
                a id="further" href=(to(length_us * 2, until_us + half)) { "further" } }
            @if until_us < now_us { a id="later" href=(to(length_us, until_us + half)) { "later ›" } }
            @else { span {} }
        }
    }
}

/// Everything that the page is made of.
struct Shown {
    smokes: Vec<Smoke>,
    heats: Vec<Heat>,
    calendars: Vec<Calendar>,
    felt: Vec<Felt>,
    stalls: Vec<Stall>,
    span_us: (i64, i64),
    query: String,
}

fn shown(book: &mut Book, meant: &Meant) -> Result<Shown, Trouble> {
    let newest = book.newest()?;
    let looks = Looks::of(&book.weekly(newest)?.targets);
    let (from_us, until_us) = meant.span_us();
    let year_us = (until_us - meant.length_us.max(364 * DAY_US), until_us);
    let year = probes(book, meant, (Step::HalfDay, year_us))?;
    let weeks = probes(book, meant, (Step::Hour, (until_us - WEEKS_OF_HEAT * 7 * DAY_US, until_us)))?;
    let fine = match meant.step() {
        Step::HalfDay => vec![],
        step @ (Step::FiveMinutes | Step::Hour) => probes(book, meant, (step, (from_us, until_us)))?,
    };
    let coarse = year.iter().filter(|step| step.at_us >= Step::HalfDay.begin(from_us));
    let own: Vec<&ProbeStep> =
        if meant.step() == Step::HalfDay { coarse.collect() } else { fine.iter().collect() };
    let events = book.reader.events(Some(from_us))?;
    let events: Vec<Event> = events.into_iter().map(|stored| stored.event).collect();
    let stalls = book.reader.stalls(from_us)?;
    let stalls = stalls.into_iter().filter(|stall| stall.started_us < until_us).collect();
    Ok(Shown {
        felt: felt(own.iter().copied()),
        smokes: smokes(&own, meant, (&looks, &events)),
        query: meant.query(meant.length_us, meant.until_us),
        heats: by_target(&weeks, meant).into_iter().map(|(name, steps)| heat(name, &looks, &steps)).collect(),
        calendars: by_target(&year, meant)
            .into_iter()
            .map(|(name, steps)| calendar(name, &looks, &steps))
            .collect(),
        stalls,
        span_us: meant.span_us(),
    })
}

fn heat(name: &TargetName, looks: &Looks, steps: &[&ProbeStep]) -> Heat {
    let mut fields: [[Histogram; 24]; 7] = Default::default();
    for step in steps {
        let local_us = step.at_us + i64::from(offset_at(step.at_us)) * 1_000_000;
        let (day, hour) = (local_us.div_euclid(DAY_US), local_us.rem_euclid(DAY_US) / 3_600_000_000);
        fields[(day + 3).rem_euclid(7) as usize][hour as usize].merge(&step.latency);
    }
    let field = |latency: Histogram| latency.quantile_ns(0.5).map(|ns| (ns / 1e9, latency.count()));
    Heat {
        id: format!("hours-{name}"),
        title: format!("{name} by weekday and hour, {WEEKS_OF_HEAT} weeks"),
        name: name.to_string(),
        look: looks.look(name),
        fields: fields.map(|hours| hours.map(field)),
    }
}

fn calendar(name: &TargetName, looks: &Looks, steps: &[&ProbeStep]) -> Calendar {
    let days: Vec<(i64, Availability)> = merged(steps, |at_us| local_day(at_us, 0))
        .into_iter()
        .map(|(day, step)| (day, of_day(&step)))
        .collect();
    let span = (days.first().map_or(0, |(day, _)| *day), days.last().map_or(0, |(day, _)| *day));
    Calendar {
        id: format!("days-{name}"),
        title: format!("{name}, day by day (days of UTC)"),
        name: name.to_string(),
        look: looks.look(name),
        days,
        span,
    }
}

fn of_day(step: &ProbeStep) -> Availability {
    let slow = longer_than(&step.latency, LONG_WAIT_NS);
    Availability { answers: step.latency.count(), slow, failed: step.errors + step.lost }
}

impl Shown {
    /// Smoke, weekdays and hours, days.
    fn charts(&self) -> [Vec<Chart>; 3] {
        let (smoke, heat) = (Smoke::shared_scale(&self.smokes), Heat::shared_scale(&self.heats));
        [
            self.smokes.iter().map(|one| one.draw(smoke)).collect(),
            self.heats.iter().map(|one| one.draw(heat)).collect(),
            self.calendars.iter().map(Calendar::draw).collect(),
        ]
    }

    fn draw(&self) -> Markup {
        let [smokes, heats, calendars] = self.charts();
        let many =
            |charts: &[Chart]| html! { div class="many" { @for chart in charts { (figure(chart, &[])) } } };
        html! {
            (section("smoke", "Over time", &html! {
                @if smokes.is_empty() { p { "No answer in this time. The probe asks while somebody uses a share, or a round does: "
                    a href="/targets" { "Targets" } " says whether it does." } }
                p id="pulling" class="muted" hidden { "Pull across a picture to look closer; a double click leads back. With the keyboard: arrows walk, + and − \
                     zoom, 0 leads back." }
                div class="many" { @for (chart, smoke) in smokes.iter().zip(&self.smokes) { (figure(chart, &smoke.notes())) } }
                (table_of("Answers in this time", &answers(&self.felt)))
            }))
            @if !heats.is_empty() { (section("hours", "By weekday and hour", &many(&heats))) }
            @if !calendars.is_empty() { (section("calendar", "Day by day", &many(&calendars))) }
            (section("stalls", "The ledger of waits", &self.ledger()))
            (pictures(("/latency/charts", &self.query), &smokes.into_iter().chain(heats).chain(calendars).collect::<Vec<_>>()))
        }
    }

    fn ledger(&self) -> Markup {
        let window = Window { span_us: self.span_us, stalls: self.stalls.clone(), ..Window::default() };
        let newest: Vec<&Stall> = self.stalls.iter().rev().take(STALLS_SHOWN).collect();
        html! {
            @if newest.is_empty() { p { "Nobody waited for longer than a second in this time, as far as longhaul was there." } }
            ul { @for waited in sampled(&window).waited {
                li { strong { (waited.target) } ": stalls that the probe felt: " (waited.stalls) ", "
                    (words::waited(waited.seconds)) " in all; in longhaul's own runs only: " (waited.in_runs_only) "." }
            } }
            @if !newest.is_empty() {
                p class="muted" { (newest.len()) " of " (self.stalls.len()) ", the newest first." }
                (table_of("The ledger of waits", &lines(&newest)))
            }
        }
    }
}

fn answers(felt: &[Felt]) -> Table {
    let mut table =
        Table::new(["target", "beside", "n", "median", "p95", "p99", "longest", "> 1 s", "lost", "failed"]);
    let known = |value: Option<f64>| value.map_or("–".to_owned(), units::seconds);
    for felt in felt {
        table.rows.push(vec![
            felt.target.to_string(),
            felt.beside.name().to_owned(),
            felt.count.to_string(),
            known(felt.p50),
            known(felt.p95),
            known(felt.p99),
            known(felt.max),
            felt.longer[1].to_string(),
            felt.lost.to_string(),
            felt.errors.to_string(),
        ]);
    }
    table
}

fn lines(stalls: &[&Stall]) -> Table {
    let mut table = Table::new(["began", "target", "for", "call", "calls", "who waited", "errors"]);
    for stall in stalls {
        let lasted = stall.ended_us.map_or("goes on".to_owned(), |ended_us| {
            let seconds = units::seconds((ended_us - stall.started_us) as f64 / 1e6);
            if stall.is_cut { format!("at least {seconds}") } else { seconds }
        });
        let errors = stall.errors.iter().map(|(name, count)| format!("{name} {count}"));
        table.rows.push(vec![
            time(stall.started_us),
            stall.target.to_string(),
            lasted,
            stall.operation.clone(),
            stall.calls.to_string(),
            stall.who.join(", "),
            errors.collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}
