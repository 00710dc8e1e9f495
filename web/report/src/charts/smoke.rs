//! Smoke: how a time spreads, step by step. A pale band from the 5th to the 95th percentile, a darker one from the 25th to
//! the 75th, a line for the median, as SmokePing draws it. A step without a value is a gap; nothing is drawn across it.
//! Failures are marked where they happened.

use maud::{Markup, html};

use super::look::{Fill, Look, mark};
use super::scale::LogScale;
use super::svg::{Anchor, Chart, Table, line, number, shortened, text};
use super::ticks::numbered;
use super::time::TimeScale;
use crate::units;

/// Where the first and the last step are drawn, in per cent: on the left there is room for the axis.
const ACROSS: (f64, f64) = (13.0, 99.5);
/// Top and bottom of the plot, in lines.
const DOWN: (f64, f64) = (1.8, 11.0);
/// Names are cut to so many characters.
const NAME: usize = 24;
/// Units of a band's own drawing: across and down.
const UNITS: f64 = 1000.0;

/// How a time spread in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The begin of the step, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// The 5th, 25th, 50th, 75th and 95th percentile in seconds; `None` without a value.
    pub quantiles: Option<[f64; 5]>,
    /// The longest, in seconds.
    pub longest: Option<f64>,
    /// How many values.
    pub count: u64,
    /// How many failed, which have no time.
    pub failed: u64,
}

/// One target over time.
#[derive(Debug, Clone)]
pub struct Smoke {
    /// Unique on a page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The target's name.
    pub name: String,
    /// Its look.
    pub look: Look,
    /// Step by step, oldest first.
    pub steps: Vec<Spread>,
    /// How long a step is, in microseconds.
    pub step_us: i64,
    /// The time that is shown.
    pub time: TimeScale,
    /// What happened: when, in microseconds since 1970 UTC, and in a few words.
    pub events: Vec<(i64, String)>,
}

/// So many events are told below a picture; of more only the ticks are drawn, and the journal tells the rest.
const EVENTS_TOLD: usize = 8;

impl Smoke {
    /// The axis that holds several, so that equal heights mean equal times in all of them.
    pub fn shared_scale<'s>(all: impl IntoIterator<Item = &'s Smoke>) -> LogScale {
        let steps = all.into_iter().flat_map(|smoke| &smoke.steps);
        let values = steps.filter_map(|step| step.quantiles).flat_map(|[low, .., high]| [low, high]);
        LogScale::over(values, (DOWN.1, DOWN.0))
    }

    /// Draws it on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: DOWN.1 + 2.2,
            drawing: html! {
                (self.heading())
                (ground(scale))
                (self.bands(scale))
                (self.failures())
                (self.happened())
                (self.time.draw(ACROSS, DOWN.1))
            },
            table: self.table(),
        }
    }

    fn heading(&self) -> Markup {
        let (count, failed) = self.counted();
        let failed = if failed > 0 { format!(" ✗{failed}") } else { String::new() };
        html! {
            (mark((ACROSS.0 + 1.6, 0.7), self.look, Fill::Solid))
            (text((ACROSS.0 + 4.5, 1.05), Anchor::Start, "strong", &shortened(&self.name, NAME)))
            (text((100.0, 1.05), Anchor::End, "quiet", &format!("n {count}{failed}")))
        }
    }

    fn counted(&self) -> (u64, u64) {
        self.steps.iter().fold((0, 0), |(count, failed), step| (count + step.count, failed + step.failed))
    }

    /// The bands, each run of steps without a gap being one path.
    fn bands(&self, scale: LogScale) -> Markup {
        let runs = self.steps.split(|step| step.quantiles.is_none());
        // A day on which the clock is changed has 25 hours.
        let follows = |a: &Spread, b: &Spread| b.at_us - a.at_us <= self.step_us + self.step_us / 20;
        let runs: Vec<&[Spread]> = runs.flat_map(|run| run.chunk_by(follows)).collect();
        let path = |low: usize, high: usize| {
            runs.iter().map(|run| self.outline(run, (low, high), scale)).collect::<String>()
        };
        let medians: String = runs.iter().map(|run| self.middle(run, scale)).collect();
        html! {
            svg class={ "smoke " (self.look.class()) } x={ (number(ACROSS.0)) "%" } y={ (number(DOWN.0)) "em" }
                width={ (number(ACROSS.1 - ACROSS.0)) "%" } height={ (number(DOWN.1 - DOWN.0)) "em" }
                viewBox={ "0 0 " (UNITS) " " (UNITS) } preserveAspectRatio="none" {
                path class="outer" d=(path(0, 4)) {}
                path class="inner" d=(path(1, 3)) {}
                path class="median" d=(medians) {}
            }
        }
    }

    fn outline(&self, run: &[Spread], (low, high): (usize, usize), scale: LogScale) -> String {
        let known = run.iter().filter_map(|step| Some((step.at_us, step.quantiles?)));
        let points: Vec<(f64, f64, f64, f64)> = known
            .map(|(at_us, q)| {
                (
                    self.across(at_us),
                    self.across(at_us + self.step_us),
                    down(scale, q[high]),
                    down(scale, q[low]),
                )
            })
            .collect();
        let Some((first, ..)) = points.first() else { return String::new() };
        let mut path = format!("M{first:.0} {:.0}", points[0].2);
        for (_, to, top, _) in &points {
            path += &format!("V{top:.0}H{to:.0}");
        }
        for (from, _, _, bottom) in points.iter().rev() {
            path += &format!("V{bottom:.0}H{from:.0}");
        }
        path + "Z"
    }

    fn middle(&self, run: &[Spread], scale: LogScale) -> String {
        let known = run.iter().filter_map(|step| Some((step.at_us, step.quantiles?[2])));
        let mut path = String::new();
        for (at_us, median) in known {
            let (from, to, y) = (self.across(at_us), self.across(at_us + self.step_us), down(scale, median));
            let begin = if path.is_empty() { format!("M{from:.0} {y:.0}") } else { format!("V{y:.0}") };
            path += &format!("{begin}H{to:.0}");
        }
        path
    }

    fn across(&self, at_us: i64) -> f64 {
        self.time.share(at_us) * UNITS
    }

    /// A cross for every step with a failure.
    fn failures(&self) -> Markup {
        let failed = self.steps.iter().filter(|step| step.failed > 0);
        html! {
            @for step in failed {
                (super::svg::glyph((self.place(step.at_us + self.step_us / 2), DOWN.1 - 0.6), "failed", "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5"))
            }
        }
    }

    /// Ticks at the top, with numbers where they are told.
    fn happened(&self) -> Markup {
        let places: Vec<f64> = self.shown().map(|(at_us, _)| self.place(*at_us)).collect();
        let (top, bottom) = (DOWN.0, DOWN.0 + 0.9);
        if places.len() <= EVENTS_TOLD {
            return numbered(&places, (top, bottom));
        }
        html! { @for x in &places { (line("event", (*x, top), (*x, bottom))) } }
    }

    fn shown(&self) -> impl Iterator<Item = &(i64, String)> {
        let (from, to) = self.time.span_us;
        self.events.iter().filter(move |(at_us, _)| (from..to).contains(at_us))
    }

    /// The events, numbered as in the picture.
    pub fn notes(&self) -> Vec<String> {
        match self.shown().count() {
            many if many > EVENTS_TOLD => vec![format!("{many} events: the journal tells them")],
            _ => {
                let note = |(place, (at_us, label)): (usize, &(i64, String))| {
                    format!("{} {label} ({})", place + 1, self.time.label(*at_us))
                };
                self.shown().enumerate().map(note).collect()
            }
        }
    }

    /// Where an instant lies, in per cent.
    fn place(&self, at_us: i64) -> f64 {
        ACROSS.0 + self.time.share(at_us) * (ACROSS.1 - ACROSS.0)
    }

    fn description(&self) -> String {
        let (count, failed) = self.counted();
        let gaps = self.steps.iter().filter(|step| step.quantiles.is_none()).count();
        format!(
            "On a logarithmic axis of seconds that all pictures of this kind on the page share: the line is the median of a step, \
             the dark band goes from the 25th to the 75th percentile, the pale one from the 5th to the 95th. A step is {}. {}: {count} \
             values in {} steps; {failed} failures, marked ✗ below, have no time; {gaps} steps without a value are left blank.",
            crate::words::waited(self.step_us as f64 / 1e6),
            self.name,
            self.steps.len() - gaps,
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["step", "n", "failed", "p5", "p25", "median", "p75", "p95", "longest"]);
        let known = |value: Option<f64>| value.map_or("–".to_owned(), units::seconds);
        for step in &self.steps {
            let mut row = vec![self.time.label(step.at_us), step.count.to_string(), step.failed.to_string()];
            row.extend((0..5).map(|place| known(step.quantiles.map(|all| all[place]))));
            row.push(known(step.longest));
            table.rows.push(row);
        }
        table
    }
}

/// Where a value lies in a band's own units.
fn down(scale: LogScale, seconds: f64) -> f64 {
    scale.between((UNITS, 0.0)).at(seconds)
}

fn ground(scale: LogScale) -> Markup {
    html! {
        @for tick in scale.ticks(1.9) {
            @let y = scale.at(tick);
            (line("grid", (ACROSS.0, y), (ACROSS.1, y)))
            (text((ACROSS.0 - 1.0, y + 0.35), Anchor::End, "quiet", &units::duration(tick)))
        }
        (line("one", (ACROSS.0, DOWN.1), (ACROSS.1, DOWN.1)))
    }
}
