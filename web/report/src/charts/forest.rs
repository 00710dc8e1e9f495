//! The forest plot: ratios with their intervals on one axis, against the line of no difference.

use longhaul_measure::summary::Estimate;
use maud::{Markup, html};

use super::look::{Fill, Look, mark};
use super::scale::LogScale;
use super::svg::{Anchor, CHARACTER, Chart, Table, area, glyph, line, shortened, text, text_beside};
use super::{ratio_label, ratio_text, tick_text};

/// Some comparisons that have their two sides in common.
#[derive(Debug, Clone)]
pub struct ForestGroup {
    /// Who takes less time where the ratio is below 1.
    pub left: String,
    /// Who takes less time where it is above 1.
    pub right: String,
    /// The comparisons.
    pub rows: Vec<ForestRow>,
}

/// One comparison.
#[derive(Debug, Clone)]
pub struct ForestRow {
    /// What is compared.
    pub label: String,
    /// The time on the left divided by the time on the right; `None` while anything fits.
    pub ratio: Option<Estimate>,
    /// What may be said of it, in a few words.
    pub said: String,
    /// Whose mark it bears: that of the one that is called better, or nobody's.
    pub look: Look,
    /// Whether it is decided.
    pub fill: Fill,
}

/// A forest plot.
#[derive(Debug, Clone)]
pub struct Forest {
    /// Unique on a page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The comparisons.
    pub groups: Vec<ForestGroup>,
    /// From which ratio on a difference matters, above 1.
    pub threshold: f64,
}

/// How far an interval is drawn, in multiples of the furthest estimate's logarithm; beyond, an arrow says that it goes on.
const FURTHEST: f64 = 2.5;
/// But at least so far, as a ratio.
const AT_LEAST: f64 = 1.5;
/// Where the axis is drawn, in per cent: figures stand on its right.
const ACROSS: (f64, f64) = (3.0, 50.0);
/// Room that the number of days needs beside an interval, in per cent.
const DAYS_ROOM: f64 = 19.0;
/// Names in the heading of a group are cut to so many characters: both fit on a phone.
const NAME: usize = 12;

impl Forest {
    /// The axis that holds several plots, so that equal lengths mean equal ratios in all of them.
    pub fn shared_scale<'f>(forests: impl IntoIterator<Item = &'f Forest>) -> LogScale {
        let mut values = vec![1.0];
        let mut ends = vec![];
        for forest in forests {
            values.extend([forest.threshold, 1.0 / forest.threshold]);
            let ratios = forest.groups.iter().flat_map(|group| &group.rows).filter_map(|row| row.ratio);
            for ratio in ratios {
                values.push(ratio.value);
                ends.extend([ratio.low, ratio.high]);
            }
        }
        let furthest = values.iter().filter(|value| **value > 0.0).map(|value| value.ln().abs());
        let limit = furthest.fold(0.0, f64::max).mul_add(FURTHEST, 0.0).max(AT_LEAST.ln()).exp();
        values.extend(ends.into_iter().map(|end| end.clamp(1.0 / limit, limit)));
        LogScale::over(values, ACROSS)
    }

    /// Draws it on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        let (mut y, mut rows) = (1.4, vec![]);
        for group in &self.groups {
            rows.push(group.heading(y));
            y += 1.7;
            for row in &group.rows {
                rows.push(row.draw(scale, y));
                y += row.height(scale);
            }
            y += 0.3;
        }
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: y + 3.1,
            drawing: html! {
                (self.ground(scale, y))
                @for row in rows { (row) }
            },
            table: self.table(),
        }
    }

    /// The band in which nothing matters, the line of no difference, and the axis.
    fn ground(&self, scale: LogScale, bottom: f64) -> Markup {
        let (top, one) = (1.2, scale.at(1.0));
        let label = "no difference";
        html! {
            (area("band", (scale.at(1.0 / self.threshold), top), (scale.at(self.threshold), bottom)))
            @for tick in scale.ticks(5.5 * CHARACTER) {
                (line("grid", (scale.at(tick), top), (scale.at(tick), bottom)))
                (text((scale.at(tick), bottom + 1.1), Anchor::Middle, "quiet", &tick_text(tick)))
            }
            (line("one", (one, top), (one, bottom)))
            (text((one, 0.9), Anchor::around(one, label.len()), "quiet", label))
            (text((0.0, bottom + 2.5), Anchor::Start, "quiet", &self.axis()))
        }
    }

    fn axis(&self) -> String {
        match self.groups.as_slice() {
            [only] => {
                let (left, right) = (shortened(&only.left, NAME), shortened(&only.right, NAME));
                format!("time on {left} ÷ on {right}, logarithmic")
            }
            _ => "time on left ÷ on right, logarithmic".to_owned(),
        }
    }

    fn description(&self) -> String {
        let percent = crate::units::plain((self.threshold - 1.0) * 100.0, 1);
        let mut out = format!(
            "Each line is an interval, its mark the estimate, on a logarithmic axis of ratios of times. At 1× there is no \
             difference; within the shaded band of {percent} % none matters. Hollow marks are not decided."
        );
        for group in &self.groups {
            for row in &group.rows {
                let found = row.ratio.map_or("anything fits so far".to_owned(), ratio_in_words);
                out += &format!(
                    " {} against {}, {}: {found}; {}.",
                    group.left, group.right, row.label, row.said
                );
            }
        }
        out
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new(["left", "right", "task", "ratio left ÷ right", "from", "to", "days", "verdict"]);
        for group in &self.groups {
            for row in &group.rows {
                let of = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
                table.rows.push(vec![
                    group.left.clone(),
                    group.right.clone(),
                    row.label.clone(),
                    of(row.ratio.map(|ratio| ratio.value)),
                    of(row.ratio.map(|ratio| ratio.low)),
                    of(row.ratio.map(|ratio| ratio.high)),
                    row.ratio.map_or("–".to_owned(), |ratio| ratio.days.to_string()),
                    row.said.clone(),
                ]);
            }
        }
        table
    }
}

fn ratio_in_words(ratio: Estimate) -> String {
    format!("{}, {} days", ratio_text(ratio), ratio.days)
}

impl ForestGroup {
    /// Who takes less time on which side.
    fn heading(&self, y: f64) -> Markup {
        let is_short = self.left.chars().count() + self.right.chars().count() <= NAME;
        let less = if is_short { "less time on" } else { "less on" };
        let side = |name: &str| format!("{less} {}", shortened(name, NAME));
        html! {
            (line("divide", (0.0, y - 0.15), (100.0, y - 0.15)))
            (text((0.0, y + 1.1), Anchor::Start, "strong", &format!("◂ {}", side(&self.left))))
            (text((100.0, y + 1.1), Anchor::End, "strong", &format!("{} ▸", side(&self.right))))
        }
    }
}

/// Where the number of days stands.
enum Beside {
    Right(f64),
    Left(f64),
    Below(f64),
}

impl ForestRow {
    fn height(&self, scale: LogScale) -> f64 {
        let days = self.ratio.map(|ratio| days_beside(ratio, scale));
        if matches!(days, Some(Beside::Below(_))) { 3.7 } else { 2.8 }
    }

    fn draw(&self, scale: LogScale, top: f64) -> Markup {
        let y = top + 1.95;
        html! {
            (text((0.0, top + 1.0), Anchor::Start, "", &self.label))
            @match self.ratio {
                Some(ratio) => {
                    (text((100.0, y + 0.35), Anchor::End, "", &ratio_label(ratio)))
                    (self.interval(ratio, scale, y))
                }
                None => { (text((100.0, y + 0.35), Anchor::End, "quiet", "anything fits so far")) }
            }
        }
    }

    fn interval(&self, ratio: Estimate, scale: LogScale, y: f64) -> Markup {
        let (low, high) = (scale.at(ratio.low), scale.at(ratio.high));
        let days = if ratio.days == 1 { "1 day".to_owned() } else { format!("{} days", ratio.days) };
        let class = self.look.class();
        html! {
            g class=(class) {
                (line("range", (low, y), (high, y)))
                @if !scale.holds(ratio.low) { (glyph((low, y), "arrow", "M5 -4.5L0 0L5 4.5")) }
                @if !scale.holds(ratio.high) { (glyph((high, y), "arrow", "M-5 -4.5L0 0L-5 4.5")) }
            }
            (mark((scale.at(ratio.value), y), self.look, self.fill))
            @match days_beside(ratio, scale) {
                Beside::Right(x) => { (text_beside((x, y + 0.35), Anchor::Start, "quiet", &days)) }
                Beside::Left(x) => { (text_beside((x, y + 0.35), Anchor::End, "quiet", &days)) }
                Beside::Below(x) => { (text((x, y + 1.45), Anchor::around(x, 2 * days.len()), "quiet", &days)) }
            }
        }
    }
}

fn days_beside(ratio: Estimate, scale: LogScale) -> Beside {
    let (low, high) = (scale.at(ratio.low), scale.at(ratio.high));
    match () {
        () if high < ACROSS.1 - DAYS_ROOM => Beside::Right(high),
        () if low > DAYS_ROOM => Beside::Left(low),
        () => Beside::Below(scale.at(ratio.value)),
    }
}
