//! How many of all times were at most so long: every value counts, none is smoothed.

use maud::{Markup, html};

use super::look::{Fill, Look, mark};
use super::scale::LogScale;
use super::svg::{Anchor, CHARACTER, Chart, Table, line, number, shortened, text};
use crate::units;

/// Where the curves are drawn, in per cent and in lines.
const ACROSS: (f64, f64) = (9.0, 99.0);
const DOWN: (f64, f64) = (0.6, 10.0);
/// Names are cut to so many characters.
const NAME: usize = 16;
const UNITS: f64 = 1000.0;
/// Steps are drawn to half a per cent, which is finer than a screen shows.
const FINEST: f64 = UNITS / 200.0;

/// The times of one target.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The target's name.
    pub name: String,
    /// Its look.
    pub look: Look,
    /// Every time in seconds, in order.
    pub times: Vec<f64>,
    /// How many failed, which have no time: the curve ends below 100 %.
    pub failed: usize,
}

/// The curves of some targets on one axis.
#[derive(Debug, Clone)]
pub struct Ecdf {
    /// Unique on a page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Target by target.
    pub curves: Vec<Curve>,
}

impl Ecdf {
    /// The axis that holds several.
    pub fn shared_scale<'e>(all: impl IntoIterator<Item = &'e Ecdf>) -> LogScale {
        let curves = all.into_iter().flat_map(|ecdf| &ecdf.curves);
        LogScale::over(curves.flat_map(|curve| curve.times.iter().copied()), ACROSS)
    }

    /// Draws it on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        let legend = DOWN.1 + 3.0;
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: legend + 1.4 * self.curves.len() as f64 + 0.4,
            drawing: html! {
                (ground(scale))
                @for (place, curve) in self.curves.iter().enumerate() {
                    (curve.draw(scale, place, self.curves.len()))
                    (curve.key(legend + 1.4 * place as f64))
                }
            },
            table: self.table(),
        }
    }

    fn description(&self) -> String {
        let mut out = "Up: the share of all attempts that took at most so long; across: seconds, logarithmic, on the axis that all \
                       pictures of this kind on the page share. A curve further left is faster; one that ends below 100 % \
                       belongs to a target on which attempts failed."
            .to_owned();
        for curve in &self.curves {
            out += &format!(" {}: {}.", curve.name, curve.in_words());
        }
        out
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["target", "n", "failed", "p5", "p25", "median", "p75", "p95"]);
        for curve in &self.curves {
            let mut row = vec![curve.name.clone(), curve.times.len().to_string(), curve.failed.to_string()];
            row.extend([0.05, 0.25, 0.5, 0.75, 0.95].map(|q| curve.quantile(q)));
            table.rows.push(row);
        }
        table
    }
}

impl Curve {
    fn quantile(&self, q: f64) -> String {
        longhaul_measure::stats::quantile(&self.times, q).map_or("–".to_owned(), units::seconds)
    }

    fn in_words(&self) -> String {
        format!("median {}, {} times, {} failed", self.quantile(0.5), self.times.len(), self.failed)
    }

    /// The steps, and the target's mark on them, at a height of its own.
    fn draw(&self, scale: LogScale, place: usize, of: usize) -> Markup {
        let attempts = (self.times.len() + self.failed).max(1) as f64;
        let units = scale.between((0.0, UNITS));
        let (mut path, mut drawn) = (String::new(), 0.0);
        for (rank, time) in self.times.iter().enumerate() {
            let (x, height) = (units.at(*time), UNITS * (rank + 1) as f64 / attempts);
            let is_last = rank + 1 == self.times.len();
            if rank > 0 && height - drawn < FINEST && !is_last {
                continue;
            }
            let y = UNITS - height;
            path += &if rank == 0 { format!("M{x:.0} {UNITS:.0}V{y:.0}") } else { format!("H{x:.0}V{y:.0}") };
            drawn = height;
        }
        let height = (place + 1) as f64 / (of + 1) as f64;
        let at = ((attempts * height) as usize).min(self.times.len().saturating_sub(1));
        html! {
            svg class={ "smoke " (self.look.class()) } x={ (number(ACROSS.0)) "%" } y={ (number(DOWN.0)) "em" }
                width={ (number(ACROSS.1 - ACROSS.0)) "%" } height={ (number(DOWN.1 - DOWN.0)) "em" }
                viewBox={ "0 0 " (UNITS) " " (UNITS) } preserveAspectRatio="none" { path class="median" d=(path) {} }
            @if let Some(time) = self.times.get(at) {
                @let y = DOWN.1 - (at + 1) as f64 / attempts * (DOWN.1 - DOWN.0);
                (mark((scale.at(*time), y), self.look, Fill::Solid))
            }
        }
    }

    fn key(&self, y: f64) -> Markup {
        let failed = if self.failed > 0 { format!(" ✗{}", self.failed) } else { String::new() };
        html! {
            (mark((ACROSS.0 + 1.6, y), self.look, Fill::Solid))
            (text((ACROSS.0 + 4.5, y + 0.35), Anchor::Start, "", &shortened(&self.name, NAME)))
            (text((100.0, y + 0.35), Anchor::End, "quiet", &format!("n {}{failed}", self.times.len())))
        }
    }
}

fn ground(scale: LogScale) -> Markup {
    html! {
        @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            @let y = DOWN.1 - share * (DOWN.1 - DOWN.0);
            (line("grid", (ACROSS.0, y), (ACROSS.1, y)))
            (text((ACROSS.0 - 0.8, y + 0.35), Anchor::End, "quiet", &format!("{}%", share * 100.0)))
        }
        @for tick in scale.ticks(7.0 * CHARACTER) {
            @let x = scale.at(tick);
            (line("grid", (x, DOWN.0), (x, DOWN.1)))
            (text((x, DOWN.1 + 1.2), Anchor::around(x, 6), "quiet", &units::duration(tick)))
        }
    }
}
