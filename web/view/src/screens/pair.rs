//! Two shares in depth: every comparison with its basis and its daily ratios.

use jiff::civil::Date;
use longhaul_analysis::summary::{Comparison, DayRatio, PairSummary, WeeklySummary};

use super::before_after::{BeforeAfterView, before_after};
use super::{method, so_far, week, words};
use crate::document::Document;
use crate::text::Text;
use crate::units;

/// Data of the report about a pair.
#[derive(Debug, Clone, Copy)]
pub struct PairReport<'a> {
    /// Summary of the week.
    pub weekly: &'a WeeklySummary,
    /// The pair, with the tasks to show.
    pub pair: &'a PairSummary,
    /// Day before which rounds are ignored; `None` for all rounds.
    pub since: Option<Date>,
    /// A day or an event, and the pair before and after it; `None` if the user asked for none.
    pub around: Option<BeforeAfterView<'a>>,
}

/// Returns the report about a pair.
pub fn pair(report: &PairReport<'_>) -> Document {
    let mut document = Document::new();
    if let Some(since) = report.since {
        document.warning(format!(
            "Only rounds since {since}. The interval is valid only if this day was chosen before looking at the data."
        ));
    }
    document.append(week::answer(report.weekly, report.pair)).append(week::sequential_weeks(report.pair));
    if let Some(headline) = &report.pair.headline {
        let lines = comparison_lines(headline);
        if !lines.is_empty() {
            document.subheading(words::subject(&headline.subject)).list(lines);
        }
    }
    for comparison in report.pair.by_wait_kind.iter().chain(&report.pair.tasks) {
        let basis = words::basis(comparison).map(Text::from);
        let lines = [week::sentence(report.pair, comparison)].into_iter().chain(basis);
        let lines = lines.into_iter().chain(comparison_lines(comparison));
        document.subheading(words::subject(&comparison.subject)).list(lines);
    }
    if let Some(around) = &report.around {
        document.append(before_after(report.pair, around));
    }
    document.section("method", "Method").list(method::summary_lines(report.weekly));
    document
}

/// Returns the figures of a comparison.
fn comparison_lines(comparison: &Comparison) -> Vec<Text> {
    let Comparison { a, b, .. } = comparison;
    let ratio = comparison.ratio.map(|ratio| {
        format!("{b} takes {:.3}× the time of {a} ({:.3} to {:.3})", ratio.value, ratio.low, ratio.high)
    });
    let typical = comparison.median_seconds.map(|(of_a, of_b)| {
        format!("Typical time: {a} {}, {b} {}", units::seconds(of_a), units::seconds(of_b))
    });
    let detectable = comparison
        .detectable_ratio
        .map(|ratio| format!("Smallest difference you could detect so far: {:.1} %", (ratio - 1.0) * 100.0));
    let needed = comparison
        .days_needed
        .map(|days| format!("Verdict expected in about {}", so_far::days_or_weeks(days)));
    let lines = [
        typical,
        ratio,
        (comparison.rounds.complete > 0).then(|| format!("Rounds won: {}", words::rounds_won(comparison))),
        detectable,
        needed,
        (!comparison.days.is_empty()).then(|| "Daily ratios, up to seven days in a line:".to_owned()),
    ];
    let days = comparison.days.chunks(7).map(daily_ratios);
    lines.into_iter().flatten().chain(days).map(Text::from).collect()
}

fn daily_ratios(days: &[DayRatio]) -> String {
    let ratios: Vec<String> = days.iter().map(|day| format!("{:.2}", day.ratio)).collect();
    format!("{}  {}", days[0].date, ratios.join("  "))
}
