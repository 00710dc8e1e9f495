//! How it was, all day: the light probe as smoke, by weekday and hour, day by day, and the ledger of waits.

use std::collections::BTreeMap;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul_measure::model::{Beside, Event, ProbeKind, ProbeStep, Stall, Step, TargetName};
use longhaul_measure::stats::Histogram;
use longhaul_measure::summary::{Felt, Window, felt, local_day, sampled};
use longhaul_report::charts::{Availability, Calendar, Chart, Heat, Looks, Smoke, Spread, Table, TimeScale};
use longhaul_report::page::parts::{figure, section, table_of};
use longhaul_report::{units, words};
use longhaul_service::words::time;
use longhaul_store::SampleFilter;
use maud::{Markup, html};
use serde::Deserialize;

use super::frame::{picture, pictures, read};
use super::happened::happened;
use super::runs::choice;
use super::{Place, Trouble, framed};
use crate::face::Face;
use crate::shelf::{Book, offset_at, zone};

const DAY_US: i64 = 86_400_000_000;
/// What may be chosen, in days; samples are kept for no longer.
const WINDOWS: [i64; 7] = [1, 3, 7, 28, 91, 364, 1_200];
/// A longer window is drawn day by day: hours would be a comb.
const MOST_DAYS_IN_HOURS: i64 = 14;
/// Over so many days the hours of a week are put together.
const WEEKS_OF_HEAT: i64 = 8;
/// So many lines of the ledger are shown, the newest.
const STALLS_SHOWN: usize = 100;
/// The percentiles of the bands.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// What is asked; an empty text is the default.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Asked {
    #[serde(default)]
    days: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    beside: String,
    #[serde(default)]
    until: String,
}

/// What is meant.
struct Meant {
    days: i64,
    kind: ProbeKind,
    beside: Option<Beside>,
    until_us: i64,
}

impl Meant {
    fn of(asked: &Asked, now_us: i64) -> Result<Self, Trouble> {
        let or =
            |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
        let wrong = |what: &str, text: &str| Trouble::Question(format!("`{text}` is no {what}."));
        let days: i64 = or(&asked.days, "7").parse().map_err(|_| wrong("number of days", &asked.days))?;
        let kind = or(&asked.kind, ProbeKind::Read.name());
        let latest = |us: i64| us.clamp(0, now_us);
        Ok(Self {
            days: days.clamp(1, Step::HalfDay.days_kept()),
            kind: ProbeKind::from_name(&kind).ok_or_else(|| wrong("kind of question", &kind))?,
            beside: match asked.beside.as_str() {
                "" => None,
                name => Some(Beside::from_name(name).ok_or_else(|| wrong("choice", name))?),
            },
            until_us: match asked.until.as_str() {
                "" => now_us,
                text => latest(text.parse().map_err(|_| wrong("instant in microseconds", text))?),
            },
        })
    }

    /// Drawn day by day, it begins with a whole day.
    fn span_us(&self) -> (i64, i64) {
        let from_us = self.until_us - self.days * DAY_US;
        (if self.is_daily() { midnight(from_us, &zone()) } else { from_us }, self.until_us)
    }

    fn is_daily(&self) -> bool {
        self.days > MOST_DAYS_IN_HOURS
    }

    /// The question with another length and another end.
    fn query(&self, days: i64, until_us: i64) -> String {
        let beside = self.beside.map_or("", Beside::name);
        format!("?days={days}&kind={}&beside={beside}&until={until_us}", self.kind.name())
    }

    fn is_meant(&self, step: &ProbeStep) -> bool {
        step.kind == self.kind && self.beside.is_none_or(|beside| step.beside == beside)
    }
}

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
    let days = WINDOWS.map(|days| days.to_string());
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let kinds = ProbeKind::ALL.map(ProbeKind::name);
    html! {
        form class="search" {
            label { "Days "
                select name="days" { @for one in &days { option value=(one) selected[*one == meant.days.to_string()] { (one) } } }
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
    let half = meant.days * DAY_US / 2;
    html! {
        nav class="turning" aria-label="Time" {
            a href={ "/latency" (meant.query(meant.days, until_us - half)) } { "‹ earlier" }
            p { (time(from_us)) " to " (time(until_us)) " · "
                a href={ "/latency" (meant.query((meant.days / 2).max(1), until_us - half / 2)) } { "closer" } " · "
                a href={ "/latency" (meant.query(meant.days * 2, (until_us + half).min(now_us))) } { "further" } }
            @if until_us < now_us { a href={ "/latency" (meant.query(meant.days, (until_us + half).min(now_us))) } { "later ›" } }
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
    let probes = |step: Step, (since_us, until_us): (i64, i64)| {
        book.reader.probes(&SampleFilter { target: None, step, since_us, until_us })
    };
    let (from_us, until_us) = meant.span_us();
    let own = probes(Step::for_window(meant.days * DAY_US / 1_000_000), (from_us, until_us))?;
    let weeks = probes(Step::Hour, (until_us - WEEKS_OF_HEAT * 7 * DAY_US, until_us))?;
    let year = probes(Step::HalfDay, (until_us - meant.days.max(364) * DAY_US, until_us))?;
    let events = book.reader.events(Some(from_us))?;
    let events: Vec<Event> = events.into_iter().map(|stored| stored.event).collect();
    let stalls = book.reader.stalls(from_us)?;
    let stalls = stalls.into_iter().filter(|stall| stall.started_us < until_us).collect();
    Ok(Shown {
        felt: felt(&own).into_iter().filter(|felt| felt.kind == meant.kind).collect(),
        smokes: by_target(own, meant)
            .into_iter()
            .map(|(name, steps)| Smoke {
                events: happened(&events, &name),
                ..smoke(&name, &looks, (&steps, meant))
            })
            .collect(),
        query: meant.query(meant.days, meant.until_us),
        heats: by_target(weeks, meant).into_iter().map(|(name, steps)| heat(&name, &looks, &steps)).collect(),
        calendars: by_target(year, meant)
            .into_iter()
            .map(|(name, steps)| calendar(&name, &looks, &steps))
            .collect(),
        stalls,
        span_us: meant.span_us(),
    })
}

fn by_target(steps: Vec<ProbeStep>, meant: &Meant) -> BTreeMap<TargetName, Vec<ProbeStep>> {
    let mut all: BTreeMap<TargetName, Vec<ProbeStep>> = BTreeMap::new();
    for step in steps.into_iter().filter(|step| meant.is_meant(step)) {
        all.entry(step.target.clone()).or_default().push(step);
    }
    all
}

/// Steps of one place put together.
fn merged(steps: &[ProbeStep], place: impl Fn(i64) -> i64) -> BTreeMap<i64, ProbeStep> {
    let mut all: BTreeMap<i64, ProbeStep> = BTreeMap::new();
    for step in steps {
        all.entry(place(step.at_us)).and_modify(|known| known.merge(step)).or_insert_with(|| step.clone());
    }
    all
}

fn smoke(name: &TargetName, looks: &Looks, (steps, meant): (&[ProbeStep], &Meant)) -> Smoke {
    let zone = zone();
    let is_daily = meant.is_daily();
    let step_us = if is_daily { DAY_US } else { Step::for_window(meant.days * 86_400).seconds() * 1_000_000 };
    let place = |at_us: i64| if is_daily { midnight(at_us, &zone) } else { at_us };
    Smoke {
        id: format!("smoke-{name}"),
        title: format!("{} on {name}", meant.kind.name()),
        name: name.to_string(),
        look: looks.look(name),
        steps: merged(steps, place).into_iter().map(|(at_us, step)| spread(at_us, &step)).collect(),
        step_us,
        time: TimeScale { span_us: meant.span_us(), zone: zone.clone() },
        events: vec![],
    }
}

fn spread(at_us: i64, step: &ProbeStep) -> Spread {
    let quantile = |q: f64| step.latency.quantile_ns(q).map(|ns| ns / 1e9);
    let all = QUANTILES.map(quantile);
    Spread {
        at_us,
        quantiles: all.iter().all(Option::is_some).then(|| all.map(Option::unwrap_or_default)),
        longest: step.latency.max_ns().map(|ns| ns as f64 / 1e9),
        count: step.latency.count(),
        failed: step.errors + step.lost,
    }
}

/// The begin of the local day of an instant.
pub fn midnight(at_us: i64, zone: &TimeZone) -> i64 {
    let local = Timestamp::from_microsecond(at_us).map(|at| at.to_zoned(zone.clone()));
    let begin = local.and_then(|local| local.start_of_day());
    begin.map_or(at_us, |begin| begin.timestamp().as_microsecond())
}

fn heat(name: &TargetName, looks: &Looks, steps: &[ProbeStep]) -> Heat {
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

fn calendar(name: &TargetName, looks: &Looks, steps: &[ProbeStep]) -> Calendar {
    let days: Vec<(i64, Availability)> = merged(steps, |at_us| local_day(at_us, 0))
        .into_iter()
        .map(|(day, step)| (day, of_day(step)))
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

fn of_day(step: ProbeStep) -> Availability {
    let slow = felt(std::slice::from_ref(&step)).first().map_or(0, |felt| felt.longer[1]);
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
                li { strong { (waited.target) } ": " (waited.stalls) " stalls that the probe felt, "
                    (words::waited(waited.seconds)) " in all; " (waited.in_runs_only) " more in longhaul's own runs only." }
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
