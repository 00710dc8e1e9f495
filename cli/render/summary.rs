//! The summary as tables: one per task, a block per figure, a line per target.

use comfy_table::Table;
use longhaul_measure::model::{CacheState, Unit};
use longhaul_measure::stats::P95_NEEDS;
use longhaul_measure::summary::{FigureSummary, Ratio, Spread, Summary, WorkloadSummary};

use super::table::table;
use super::units;

/// The whole summary.
pub fn summary(summary: &Summary) -> String {
    let mut out = String::new();
    let scale = summary.scale.map_or("", |scale| scale.name());
    for target in &summary.targets {
        let outcomes: Vec<String> =
            target.outcomes.iter().map(|(name, runs)| format!("{runs} {name}")).collect();
        let protocol = target.protocol.as_deref().unwrap_or("protocol not known");
        out += &format!("{}  {protocol}  runs: {}\n", target.name, outcomes.join(", "));
    }
    for workload in &summary.workloads {
        out += &format!("\n{} ({scale})\n{}\n", workload.name, figures(workload));
    }
    if !summary.caching.is_empty() {
        out += &format!("\n{}\n", super::week::cached(&summary.caching));
    }
    for left in &summary.left_out {
        out += &format!("\nleft out: {} runs {}", left.runs, left.reason);
    }
    out + &notes(summary)
}

fn figures(workload: &WorkloadSummary) -> Table {
    let columns =
        ["figure", "target", "median", "middle half", "p95", "n", "failed", "ratio by round (range; rounds)"];
    let mut table = table(&columns);
    for figure in &workload.figures {
        for (place, (target, spread)) in figure.by_target.iter().enumerate() {
            let name = if place == 0 { title(figure, spread) } else { String::new() };
            let ratios = figure.ratios.iter().filter(|ratio| ratio.b == *target).map(ratio);
            table.add_row([
                name,
                target.to_string(),
                known(spread.median, figure.unit),
                range(spread, figure.unit),
                if spread.n >= P95_NEEDS { known(spread.p95, figure.unit) } else { "–".to_owned() },
                spread.n.to_string(),
                spread.failed.to_string(),
                ratios.collect::<Vec<_>>().join("\n"),
            ]);
        }
    }
    table
}

/// Phase, figure, cache state, and how cold was made, where it is the same for all.
fn title(figure: &FigureSummary, first: &Spread) -> String {
    let name = if figure.phase == figure.figure {
        figure.phase.clone()
    } else {
        format!("{}: {}", figure.phase, figure.figure)
    };
    match figure.cache {
        CacheState::None => name,
        CacheState::Warm => format!("{name}, warm"),
        CacheState::Cold => {
            let ways: Vec<&str> = first.cold_by.keys().copied().collect();
            let same = figure.by_target.values().all(|spread| spread.cold_by.keys().eq(first.cold_by.keys()));
            let how = if same { ways.join(" or ") } else { "differs by target".to_owned() };
            format!("{name}, cold ({how})")
        }
    }
}

fn known(value: Option<f64>, unit: Unit) -> String {
    value.map_or("–".to_owned(), |value| units::value(value, unit))
}

fn range(spread: &Spread, unit: Unit) -> String {
    match (spread.p25, spread.p75) {
        (Some(low), Some(high)) => format!("{} to {}", units::value(low, unit), units::value(high, unit)),
        _ => "–".to_owned(),
    }
}

fn ratio(ratio: &Ratio) -> String {
    let (low, high) = ratio.range;
    format!("{:.2}× {} ({low:.2} to {high:.2}; {})", ratio.median_ratio, ratio.a, ratio.rounds)
}

fn notes(summary: &Summary) -> String {
    let unverified = summary
        .workloads
        .iter()
        .flat_map(|workload| &workload.figures)
        .any(|figure| figure.by_target.values().any(|spread| spread.cold_by.contains_key("unverified")));
    let mut notes = vec![
        "A ratio is this target's figure divided by the named one's in the same round; the median of the rounds stands \
         first. It is a description: a few rounds decide nothing, and no winner is named here.",
        "p95 stands from 20 values on. Failed runs give no figure and are counted apart.",
    ];
    if unverified {
        notes.push(
            "cold (unverified): the caches could not be shown to be empty; such a figure may contain cached data.",
        );
    }
    format!("\n{}\n", notes.join("\n"))
}
