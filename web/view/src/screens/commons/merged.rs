//! Screen of what many machines say together.

use longhaul_analysis::summary::{ALPHA, RatioEstimate};
use longhaul_commons::{Merged, MergedPair, MergedResult};
use longhaul_model::all_metrics;

use super::families;
use crate::charts::ratio_text::ratio_text;
use crate::charts::{Chart, Forest, ForestGroup, ForestRow, MarkFill, SeriesStyle};
use crate::document::{Details, Document};
use crate::screens::{NO_VALUE, words};
use crate::table::Table;
use crate::units;

/// Number of machines drawn one by one.
const MACHINES_DRAWN: usize = 60;
/// Ratio that a chart marks as too small to matter.
const THRESHOLD: f64 = 1.1;
/// Explains the numbers.
const METHOD: [&str; 5] = [
    "Ratio: the mean over machines, by a random-effects model (Paule and Mandel; interval of Hartung and Knapp). The interval is valid \
     for a single look, so it is not used to decide.",
    "Spread: the standard deviation of the true ratios between machines. A ratio of one machine can differ from the mean by twice as much.",
    "Machines: the e-value for a difference in the stated direction, averaged over machines, each of which counts for at most 1.25×. \
     At 20 or more, a difference is shown. Over all machines, that is wrong in at most 5 % of cases, however often more machines are merged, and also if machines differ.",
    "All in: the product of the e-values of all machines, against \"no machine has a difference\". At 20 or more, some machines have one, \
     but not necessarily most.",
    "All this is about the machines whose owners shared a file. People who see a difference may share more often; no number corrects for that.",
];

/// Returns the screen.
pub fn merged(merged: &Merged) -> Document {
    let mut document = Document::titled(format!("Results of {}", units::count(merged.machines, "machine")));
    if merged.pairs.is_empty() {
        document.paragraph(match (merged.machines, merged.refused.is_empty()) {
            (0, false) => "No file could be used.",
            _ => "No file compares two protocols on enough days: at least 5 valid days are needed.",
        });
    }
    for (index, pair) in merged.pairs.iter().enumerate() {
        document.append(pair_section(index, pair));
    }
    if !merged.refused.is_empty() {
        document.section("left-out", "Files left out");
        document.list(merged.refused.iter().map(|file| format!("{}: {}", file.file, file.reason)));
    }
    document.section("method", "How to read this");
    document.list(METHOD);
    document
}

fn pair_section(index: usize, pair: &MergedPair) -> Document {
    let mut document = Document::new();
    let heading = format!("{} and {}, {} test data", pair.a, pair.b, pair.scale.name());
    document.section(format!("pair-{index}"), heading);
    let Some(all) = pair.groups.first().map(|group| &group.result) else {
        document.paragraph(format!(
            "{}, but none has at least 5 valid days yet.",
            units::count(pair.machines, "machine")
        ));
        return document;
    };
    document.paragraph(answer(pair, all));
    document.paragraph(agreement(pair, all));
    let groups = pair.groups.iter().map(|group| (families::group(group.kind), &group.result));
    document.table(table("groups of machines", pair, groups));
    document.charts(chart(index, pair));
    let mut tasks = Document::new();
    tasks.table(table(
        "single tasks",
        pair,
        pair.metrics.iter().map(|result| (metric_name(&result.key), result)),
    ));
    document.details(Details { summary: "Single tasks, all machines".to_owned(), content: tasks });
    document
}

/// Returns the answer over all machines.
fn answer(pair: &MergedPair, all: &MergedResult) -> String {
    let (faster, slower) = if all.ratio < 1.0 { (pair.b, pair.a) } else { (pair.a, pair.b) };
    let percent = units::decimal((1.0 - all.ratio.min(1.0 / all.ratio)) * 100.0, 1);
    let machines = units::count(all.machines, "machine");
    let difference = format!("{faster} took {percent} % less time than {slower}");
    match (all.is_shown, all.ln_e_all_in >= -ALPHA.ln()) {
        (true, _) => format!("Over {machines}, {difference}."),
        (false, true) => format!(
            "On average over {machines}, {difference}. That is not chance on every machine, but too few were measured, or they differ too \
             much, to say the same of other machines."
        ),
        (false, false) => {
            format!("No difference is shown yet: over {machines}, {difference}, which may be chance.")
        }
    }
}

/// Returns how far machines agree.
fn agreement(pair: &MergedPair, all: &MergedResult) -> String {
    let mut text = format!("{} of {} agree.", all.agreement.agree, units::count(all.agreement.of, "machine"));
    if all.machines > 1 {
        text += &format!(" Between machines the ratio varies by {} (standard deviation).", spread(all));
    }
    let waiting = pair.machines - all.machines;
    if waiting > 0 {
        text += &format!(" Not counted: {} with fewer than 5 valid days.", units::count(waiting, "machine"));
    }
    text
}

fn spread(result: &MergedResult) -> String {
    format!("{} %", units::decimal((result.between.exp() - 1.0) * 100.0, 1))
}

fn table<'r>(
    caption: &str,
    pair: &MergedPair,
    results: impl Iterator<Item = (String, &'r MergedResult)>,
) -> Table {
    let ratio = format!("{} ÷ {}", pair.b, pair.a);
    let mut table = Table::new(caption)
        .words([if caption == "single tasks" { "task" } else { "group" }])
        .figures(["count", ratio.as_str(), "spread", "agree", "e: machines", "e: all in"])
        .words(["difference"]);
    for (name, result) in results {
        table.row([
            name,
            result.machines.to_string(),
            estimate(result).map_or_else(|| format!("{:.2}×", result.ratio), ratio_text),
            if result.machines > 1 { spread(result) } else { NO_VALUE.to_owned() },
            format!("{} of {}", result.agreement.agree, result.agreement.of),
            e_value(result.ln_e_machines),
            e_value(result.ln_e_all_in),
            if result.is_shown { "shown".to_owned() } else { "not shown".to_owned() },
        ]);
    }
    table
}

fn estimate(result: &MergedResult) -> Option<RatioEstimate> {
    let (low, high) = result.low.zip(result.high)?;
    Some(RatioEstimate { value: result.ratio, low, high, days: result.machines })
}

/// Returns an e-value with two digits; very large and very small ones as a bound.
fn e_value(ln_e: f64) -> String {
    match ln_e.exp() {
        value if value > 1e6 => "over 1,000,000".to_owned(),
        value if value >= 100.0 => units::grouped(value.round()),
        value if value < 0.01 => "below 0.01".to_owned(),
        value => units::decimal(value, if value < 1.0 { 2 } else { 1 }),
    }
}

fn metric_name(key: &str) -> String {
    let found = all_metrics().find(|(task, metric)| key == format!("{}/{}", task.name(), metric.name));
    found.map_or_else(|| key.to_owned(), |(_, metric)| words::with_cache(metric.activity, metric.cache))
}

fn chart(index: usize, pair: &MergedPair) -> Option<Chart> {
    let rows: Vec<ForestRow> = pair
        .each
        .iter()
        .take(MACHINES_DRAWN)
        .map(|machine| ForestRow {
            label: format!("machine {}", machine.machine),
            ratio: machine.low.zip(machine.high).map(|(low, high)| RatioEstimate {
                value: machine.ratio,
                low,
                high,
                days: machine.days,
            }),
            verdict_text: String::new(),
            style: SeriesStyle::NEUTRAL,
            fill: MarkFill::Solid,
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    // The time on the second protocol divided by that on the first: the second takes less time on the left.
    let group = ForestGroup { left: pair.b.to_string(), right: pair.a.to_string(), rows };
    let forest = Forest {
        id: format!("machines-{index}"),
        title: "Each machine".to_owned(),
        groups: vec![group],
        threshold: THRESHOLD,
    };
    Some(forest.draw(Forest::shared_scale([&forest])))
}
