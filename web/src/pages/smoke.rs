//! What the light probe felt, step by step: for pictures, and for whoever draws it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul_measure::model::{Beside, Event, ProbeKind, ProbeStep, Step, TargetName};
use longhaul_report::charts::{Looks, Smoke, Spread, TimeScale};
use longhaul_store::SampleFilter;
use serde::Serialize;
use utoipa::ToSchema;

use super::Trouble;
use super::happened::happened;
use super::meant::Meant;
use crate::shelf::{Book, zone};

/// The percentiles of the bands.
pub const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// Answers to the question that is meant, in a span of time in microseconds since 1970 UTC, of all targets.
pub fn probes(
    book: &Book,
    meant: &Meant,
    (step, (since_us, until_us)): (Step, (i64, i64)),
) -> Result<Vec<ProbeStep>, Trouble> {
    let filter = SampleFilter { target: None, kind: Some(meant.kind), step, since_us, until_us };
    Ok(book.reader.probes(&filter)?)
}

/// A window of the light probe as numbers: `/api/v1/smoke`.
#[derive(Debug, Serialize, ToSchema)]
pub struct SmokeShown {
    /// Its begin, in microseconds since 1970 UTC.
    from_us: i64,
    /// Its end, in microseconds since 1970 UTC.
    until_us: i64,
    /// How long a step is, in seconds.
    step_seconds: i64,
    /// The time zone whose days are meant; null: it has no name.
    zone: Option<String>,
    /// What was asked.
    kind: ProbeKind,
    /// What went on beside it; null: whatever did.
    beside: Option<Beside>,
    /// Each target.
    targets: Vec<TargetSmoke>,
}

/// A target in it.
#[derive(Debug, Serialize, ToSchema)]
struct TargetSmoke {
    /// Its name.
    target: TargetName,
    /// Its steps, those without a question left out.
    steps: Vec<SmokeStep>,
    /// What may have changed it.
    events: Vec<SmokeEvent>,
}

/// A step: how the answers spread, in seconds; null without an answer.
#[derive(Debug, Serialize, ToSchema)]
struct SmokeStep {
    /// Its begin, in microseconds since 1970 UTC.
    at_us: i64,
    /// The 5th percentile.
    p5: Option<f64>,
    /// The 25th percentile.
    p25: Option<f64>,
    /// The median.
    p50: Option<f64>,
    /// The 75th percentile.
    p75: Option<f64>,
    /// The 95th percentile.
    p95: Option<f64>,
    /// The longest.
    longest: Option<f64>,
    /// Questions that were answered.
    count: u64,
    /// Questions that were not, or with an error.
    failed: u64,
}

/// An event of the journal.
#[derive(Debug, Serialize, ToSchema)]
struct SmokeEvent {
    /// When, in microseconds since 1970 UTC.
    at_us: i64,
    /// What kind.
    kind: String,
}

/// The window as numbers.
pub fn numbers(book: &Book, meant: &Meant) -> Result<SmokeShown, Trouble> {
    let (from_us, until_us) = meant.span_us();
    let own = probes(book, meant, (meant.step(), (from_us, until_us)))?;
    let events = book.reader.events(Some(from_us))?;
    let events: Vec<Event> = events.into_iter().map(|stored| stored.event).collect();
    let targets = by_target(&own, meant).into_iter().map(|(name, steps)| {
        let happened = happened(&events, name).into_iter().filter(|(at_us, _)| *at_us < until_us);
        TargetSmoke {
            target: name.clone(),
            steps: spreads(&steps, meant).iter().map(SmokeStep::from).collect(),
            events: happened.map(|(at_us, kind)| SmokeEvent { at_us, kind }).collect(),
        }
    });
    Ok(SmokeShown {
        from_us,
        until_us,
        step_seconds: meant.step_us() / 1_000_000,
        zone: zone().iana_name().map(str::to_owned),
        kind: meant.kind,
        beside: meant.beside,
        targets: targets.collect(),
    })
}

impl From<&Spread> for SmokeStep {
    fn from(spread: &Spread) -> Self {
        let at = |place: usize| spread.quantiles.map(|all| all[place]);
        Self {
            at_us: spread.at_us,
            p5: at(0),
            p25: at(1),
            p50: at(2),
            p75: at(3),
            p95: at(4),
            longest: spread.longest,
            count: spread.count,
            failed: spread.failed,
        }
    }
}

/// The window as pictures, one a target.
pub fn smokes(own: &[&ProbeStep], meant: &Meant, (looks, events): (&Looks, &[Event])) -> Vec<Smoke> {
    let time = TimeScale { span_us: meant.span_us(), zone: zone() };
    let smoke = |(name, steps): (&TargetName, Vec<&ProbeStep>)| Smoke {
        id: format!("smoke-{name}"),
        title: format!("{} on {name}", meant.kind.name()),
        name: name.to_string(),
        look: looks.look(name),
        steps: spreads(&steps, meant),
        step_us: meant.step_us(),
        time: time.clone(),
        events: happened(events, name),
    };
    by_target(own.iter().copied(), meant).into_iter().map(smoke).collect()
}

/// Those that answer the question, by target.
pub fn by_target<'s>(
    steps: impl IntoIterator<Item = &'s ProbeStep>,
    meant: &Meant,
) -> BTreeMap<&'s TargetName, Vec<&'s ProbeStep>> {
    let mut all: BTreeMap<&TargetName, Vec<&ProbeStep>> = BTreeMap::new();
    for step in steps.into_iter().filter(|step| meant.is_answered_by(step)) {
        all.entry(&step.target).or_default().push(step);
    }
    all
}

/// Steps of one place put together.
pub fn merged(steps: &[&ProbeStep], place: impl Fn(i64) -> i64) -> BTreeMap<i64, ProbeStep> {
    let mut all: BTreeMap<i64, ProbeStep> = BTreeMap::new();
    for step in steps {
        let put = |known: &mut ProbeStep| known.merge(step);
        all.entry(place(step.at_us)).and_modify(put).or_insert_with(|| (*step).clone());
    }
    all
}

fn spreads(steps: &[&ProbeStep], meant: &Meant) -> Vec<Spread> {
    let (zone, is_daily) = (zone(), meant.is_daily());
    let place = |at_us: i64| if is_daily { midnight(at_us, &zone) } else { at_us };
    merged(steps, place).into_iter().map(|(at_us, step)| spread(at_us, &step)).collect()
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
