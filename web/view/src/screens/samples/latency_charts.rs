//! The latency page: probe latency over time, by weekday and hour, and day by day.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use longhaul_analysis::stalls::StallCauses;
use longhaul_analysis::summary::{count_longer_than, latency_rows};
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    Event, Histogram, LoadContext, ProbeKind, ProbeStep, SLOW_CALL_NS, TargetName, Timestamp,
};

use super::stalls::StallList;
use super::{latency, stalls};
use crate::charts::time_scale::event_ticks;
use crate::charts::{
    Availability, BandChart, Calendar, Chart, HeatMap, QuantileStep, SeriesStyles, TimeScale,
};
use crate::document::Document;
use crate::text::Text;
use crate::time::{local_midnight, zoned};

/// Number of weeks that the heat map by weekday and hour covers.
pub const HEAT_MAP_WEEKS: u32 = 8;
/// The quantiles that a band chart shows, from 0 to 1.
pub const BAND_QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// A window of time, with the requests of the probe that it shows.
#[derive(Debug, Clone)]
pub struct LatencyWindow {
    /// Start and end of the window.
    pub span: (Timestamp, Timestamp),
    /// Length of a drawn step. Steps of [`DAY`] start at local midnight.
    pub step: Duration,
    /// Operation of the probe.
    pub kind: ProbeKind,
    /// Load filter: samples during rounds, or while idle; `None` for both.
    pub during: Option<LoadContext>,
    /// Time zone of the reader.
    pub zone: TimeZone,
}

/// The samples that the latency page shows.
#[derive(Debug, Clone)]
pub struct LatencySamples {
    /// Steps of the window.
    pub window: Vec<ProbeStep>,
    /// Hourly steps of the last [`HEAT_MAP_WEEKS`].
    pub weeks: Vec<ProbeStep>,
    /// Steps of half a day of at least a year.
    pub year: Vec<ProbeStep>,
    /// Events since the start of the window.
    pub events: Vec<Event>,
    /// Stalls in the window, with their causes.
    pub stalls: StallCauses,
}

/// The charts of the latency page.
#[derive(Debug, Clone)]
pub struct LatencyCharts {
    /// Latency over time, one chart for each target.
    pub bands: Vec<Chart>,
    /// Latency by weekday and hour.
    pub heat_maps: Vec<Chart>,
    /// Availability day by day.
    pub calendars: Vec<Chart>,
}

impl LatencyCharts {
    /// Draws the charts of all targets that have samples.
    pub fn draw(samples: &LatencySamples, window: &LatencyWindow, styles: &SeriesStyles) -> Self {
        let bands = band_charts(samples, window, styles);
        let heat_map =
            |(name, steps): (&TargetName, Vec<&ProbeStep>)| heat_map(name, styles, &steps, &window.zone);
        let heat_maps: Vec<HeatMap> =
            window.in_order(&samples.weeks, styles).into_iter().map(heat_map).collect();
        let calendar = |(name, steps): (&TargetName, Vec<&ProbeStep>)| calendar(name, styles, &steps).draw();
        let (band, heat) = (BandChart::shared_scale(&bands), HeatMap::shared_scale(&heat_maps));
        Self {
            bands: bands.iter().map(|one| one.draw(band)).collect(),
            heat_maps: heat_maps.iter().map(|one| one.draw(heat)).collect(),
            calendars: window.in_order(&samples.year, styles).into_iter().map(calendar).collect(),
        }
    }

    /// Returns all charts in the order of the page.
    pub fn all(&self) -> impl Iterator<Item = &Chart> {
        self.bands.iter().chain(&self.heat_maps).chain(&self.calendars)
    }
}

/// Returns the sections of the latency page.
pub fn latency_page(samples: &LatencySamples, window: &LatencyWindow, charts: &LatencyCharts) -> Document {
    let mut document = Document::new();
    document.section("over-time", "Over time");
    if charts.bands.is_empty() {
        let text = "No responses in this period. By default, the probe sends requests only while a user or a round uses a share; ";
        document.paragraph(Text::from(text).link("Targets", "/targets").plain(" shows whether it does now."));
    }
    document.charts(charts.bands.iter().cloned());
    document.table(latency::table(&latency_rows(&samples.window)));
    if !charts.heat_maps.is_empty() {
        document.section("hours", "By weekday and hour").charts(charts.heat_maps.iter().cloned());
    }
    if !charts.calendars.is_empty() {
        document.section("calendar", "Day by day").charts(charts.calendars.iter().cloned());
    }
    document.section("stalls", "Stalls");
    document.append(stalls::stalls(&samples.stalls, window.span, StallList::Newest, &window.zone));
    document
}

impl LatencyWindow {
    /// Groups the steps that match the load filter by target.
    pub fn by_target<'s>(&self, steps: &'s [ProbeStep]) -> BTreeMap<&'s TargetName, Vec<&'s ProbeStep>> {
        let mut all: BTreeMap<&TargetName, Vec<&ProbeStep>> = BTreeMap::new();
        for step in steps.iter().filter(|step| self.during.is_none_or(|context| step.during == context)) {
            all.entry(&step.target).or_default().push(step);
        }
        all
    }

    /// Returns the quantiles of each step of the window.
    pub fn quantile_steps(&self, steps: &[&ProbeStep]) -> Vec<QuantileStep> {
        let is_daily = self.step == DAY;
        let place = |at: Timestamp| if is_daily { local_midnight(at, &self.zone) } else { at };
        merge_by(steps, place).into_iter().map(|(at, step)| quantile_step(at, &step)).collect()
    }
}

/// Steps of a table, from short to long.
const TABLE_STEPS: [Duration; 4] = [HOUR, DAY, DAY.saturating_mul(7), DAY.saturating_mul(28)];
/// Maximum number of rows of a table.
const MAX_TABLE_ROWS: u128 = 50;

impl LatencyWindow {
    /// Groups the steps that match the load filter by target, in the order of the targets.
    fn in_order<'s>(
        &self,
        steps: &'s [ProbeStep],
        styles: &SeriesStyles,
    ) -> Vec<(&'s TargetName, Vec<&'s ProbeStep>)> {
        let mut all: Vec<_> = self.by_target(steps).into_iter().collect();
        all.sort_by_key(|(name, _)| styles.place(name));
        all
    }

    /// Returns the length of a step of the table: that of the chart if its steps are few enough, or else a longer one.
    fn table_step(&self) -> Duration {
        let length = self.span.1.since(self.span.0);
        let is_short = |step: &Duration| length.as_micros() / step.as_micros() <= MAX_TABLE_ROWS;
        if is_short(&self.step) {
            return self.step;
        }
        TABLE_STEPS.into_iter().find(is_short).unwrap_or(TABLE_STEPS[3])
    }

    /// Returns the quantiles of longer steps, for the table; none if the steps of the chart are few enough. Steps of days start at
    /// midnight.
    fn table_steps(&self, steps: &[&ProbeStep]) -> Vec<QuantileStep> {
        let step = self.table_step();
        if step == self.step {
            return vec![];
        }
        let place = |at: Timestamp| self.table_step_start(step, at);
        merge_by(steps, place).into_iter().map(|(at, step)| quantile_step(at, &step)).collect()
    }

    /// Returns the start of the step of a table that contains a time.
    fn table_step_start(&self, step: Duration, at: Timestamp) -> Timestamp {
        let whole_steps = |length: Duration| step * (length.as_micros() / step.as_micros()) as u32;
        if step < DAY {
            return self.span.0 + whole_steps(at.since(self.span.0));
        }
        // Days are counted from midnight to noon, because a day has 23 or 25 hours when the clock changes.
        let start = local_midnight(self.span.0, &self.zone);
        let noon = local_midnight(at, &self.zone) + DAY / 2;
        local_midnight(start + whole_steps(noon.since(start)) + DAY / 2, &self.zone)
    }
}

fn band_charts(samples: &LatencySamples, window: &LatencyWindow, styles: &SeriesStyles) -> Vec<BandChart> {
    let time = TimeScale { span: window.span, zone: window.zone.clone() };
    let band_chart = |(name, steps): (&TargetName, Vec<&ProbeStep>)| BandChart {
        id: format!("bands-{name}"),
        title: format!("{} on {name}", window.kind.name()),
        name: name.to_string(),
        style: styles.style(name),
        steps: window.quantile_steps(&steps),
        table_steps: window.table_steps(&steps),
        table_step: window.table_step(),
        step: window.step,
        time: time.clone(),
        events: event_ticks(&samples.events, name),
    };
    window.in_order(&samples.window, styles).into_iter().map(band_chart).collect()
}

/// Merges steps for which `place` returns the same key, for example the start of their day.
fn merge_by<K: Ord>(steps: &[&ProbeStep], place: impl Fn(Timestamp) -> K) -> BTreeMap<K, ProbeStep> {
    let mut all: BTreeMap<K, ProbeStep> = BTreeMap::new();
    for step in steps {
        let put = |known: &mut ProbeStep| known.merge(step);
        all.entry(place(step.at_us)).and_modify(put).or_insert_with(|| (*step).clone());
    }
    all
}

fn quantile_step(at: Timestamp, step: &ProbeStep) -> QuantileStep {
    let quantile = |q: f64| step.latency.quantile_ns(q).map(|ns| ns / 1e9);
    let all = BAND_QUANTILES.map(quantile);
    QuantileStep {
        at,
        quantiles: all.iter().all(Option::is_some).then(|| all.map(Option::unwrap_or_default)),
        max: step.latency.max_ns().map(|ns| ns as f64 / 1e9),
        count: step.latency.count(),
        failed: step.errors + step.timeouts,
    }
}

fn heat_map(name: &TargetName, styles: &SeriesStyles, steps: &[&ProbeStep], zone: &TimeZone) -> HeatMap {
    let mut fields: [[Histogram; 24]; 7] = Default::default();
    for step in steps {
        let Some(local) = zoned(step.at_us, zone) else { continue };
        let day = local.weekday().to_monday_zero_offset();
        fields[day as usize][local.hour() as usize].merge(&step.latency);
    }
    let field = |latency: Histogram| latency.quantile_ns(0.5).map(|ns| (ns / 1e9, latency.count()));
    HeatMap {
        id: format!("hours-{name}"),
        title: format!("{name} by weekday and hour, {HEAT_MAP_WEEKS} weeks"),
        name: name.to_string(),
        style: styles.style(name),
        cells: fields.map(|hours| hours.map(field)),
    }
}

fn calendar(name: &TargetName, styles: &SeriesStyles, steps: &[&ProbeStep]) -> Calendar {
    let days: Vec<(i64, Availability)> = merge_by(steps, |at| at.local_day(0))
        .into_iter()
        .map(|(day, step)| (day, day_availability(&step)))
        .collect();
    let span = (days.first().map_or(0, |(day, _)| *day), days.last().map_or(0, |(day, _)| *day));
    Calendar {
        id: format!("days-{name}"),
        title: format!("{name}, day by day (UTC days)"),
        name: name.to_string(),
        style: styles.style(name),
        days,
        span,
    }
}

fn day_availability(step: &ProbeStep) -> Availability {
    let slow = count_longer_than(&step.latency, SLOW_CALL_NS);
    Availability { answers: step.latency.count(), slow, failed: step.errors + step.timeouts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::timestamp;

    #[test]
    fn rows_of_days_start_at_midnight_after_the_clock_changed() {
        // From 20 October 2026, 00:00 in Berlin, where 25 October has 25 hours, to the end of the month.
        let start = Timestamp::from_us(1_792_447_200_000_000);
        let hours = 12 * 24 + 1;
        let window = LatencyWindow {
            span: (start, start + hours * HOUR),
            step: HOUR,
            kind: ProbeKind::Read,
            during: None,
            zone: TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap(),
        };
        let target: TargetName = "smb".parse().unwrap();
        let step = |hour: u32| {
            ProbeStep::new(target.clone(), start + hour * HOUR, ProbeKind::Read, LoadContext::Idle)
        };
        let steps: Vec<ProbeStep> = (0..hours).map(step).collect();
        let rows = window.table_steps(&steps.iter().collect::<Vec<_>>());
        let days: Vec<String> = rows.iter().map(|row| timestamp(row.at, &window.zone)).collect();
        let expected: Vec<String> = (20..32).map(|day| format!("2026-10-{day} 00:00:00")).collect();
        assert_eq!(days, expected);
    }
}
