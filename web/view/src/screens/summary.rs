//! The summary of all runs: a table per task, a line per target.

use longhaul_analysis::summary::{FigureSummary, Ratio, Spread, Summary, WorkloadSummary};
use longhaul_model::{CacheState, MIN_VALUES_FOR_P95, Unit};

use super::{NO_VALUE, or_no_value};
use crate::document::{Document, Fact};
use crate::table::Table;
use crate::text::Text;
use crate::units;
use crate::units::count;

/// Figure whose value is a ratio of two times.
const WARM_TO_COLD: &str = "warm-to-cold";
/// Number of values below which a quarter of them is not one value.
const MIN_VALUES_FOR_QUARTILES: usize = 4;

/// Returns the whole summary.
pub fn summary(summary: &Summary) -> Document {
    let mut document = Document::new();
    if summary.workloads.is_empty() {
        document.paragraph(
            Text::from("No runs to summarize yet: start some with ").code("longhaul run").plain("."),
        );
        return document;
    }
    // The runs of a target without outcomes are all excluded; they are listed below.
    let targets = summary.targets.iter().filter(|target| !target.outcomes.is_empty()).map(|target| {
        let outcomes: Vec<String> =
            target.outcomes.iter().map(|(name, runs)| format!("{runs} {name}")).collect();
        let protocol = target.protocol.as_deref().unwrap_or("protocol not known");
        Fact::new(target.name.to_string(), format!("{protocol}; runs: {}", outcomes.join(", ")))
    });
    document.facts(targets.collect());
    let scale = summary.scale.map_or("", |scale| scale.name());
    for workload in &summary.workloads {
        document.section(workload.name.to_string(), format!("{} ({scale})", workload.name));
        document.table(figures(workload));
    }
    document.list(summary.caching.iter().map(super::sentences::caching));
    document.list(
        summary.excluded.iter().map(|left| format!("Excluded: {} {}", count(left.runs, "run"), left.reason)),
    );
    add_notes(&mut document, summary);
    document
}

fn figures(workload: &WorkloadSummary) -> Table {
    let mut table = Table::new(format!("Figures of {}", workload.name))
        .words(["figure", "target"])
        .figures(["median", "middle 50 %", "p95", "n", "failed"])
        .words(["ratio by round (range; rounds)"]);
    for figure in &workload.figures {
        let mut title = title(figure);
        for (target, spread) in &figure.by_target {
            let mut ratios = figure.ratios.iter().filter(|ratio| ratio.b == *target).map(ratio_text);
            let mut row = vec![std::mem::take(&mut title), target.to_string()];
            row.extend(spread_cells(spread, figure.unit));
            row.push(ratios.next().unwrap_or_default());
            table.row(row);
            for ratio in ratios {
                let mut row = vec![String::new(); 7];
                row.push(ratio);
                table.row(row);
            }
        }
    }
    table
}

fn spread_cells(spread: &Spread, unit: Unit) -> [String; 5] {
    let value = |value: Option<f64>| or_no_value(value.map(|value| units::value(value, unit)));
    let range = match (spread.p25, spread.p75) {
        (Some(low), Some(high)) if spread.n >= MIN_VALUES_FOR_QUARTILES => {
            format!("{} to {}", units::value(low, unit), units::value(high, unit))
        }
        _ => NO_VALUE.to_owned(),
    };
    let p95 = spread.p95.filter(|_| spread.n >= MIN_VALUES_FOR_P95);
    [value(spread.median), range, value(p95), spread.n.to_string(), spread.failed.to_string()]
}

/// Returns the label of a figure: phase, name and cache state. The method for cold is included if it is the same
/// on all targets.
fn title(figure: &FigureSummary) -> String {
    let name = if figure.phase == figure.figure {
        figure.phase.clone()
    } else {
        format!("{}: {}", figure.phase, figure.figure)
    };
    if figure.figure == WARM_TO_COLD {
        return format!("{name} (warm time ÷ cold time; lower: caches save more)");
    }
    match (figure.cache, figure.by_target.values().next()) {
        (CacheState::Warm, _) => format!("{name}, warm"),
        (CacheState::Cold, Some(first)) => {
            let ways: Vec<&str> = first.cold_by.keys().copied().collect();
            let same = figure.by_target.values().all(|spread| spread.cold_by.keys().eq(first.cold_by.keys()));
            let how = if same { ways.join(" or ") } else { "differs by target".to_owned() };
            format!("{name}, cold ({how})")
        }
        (CacheState::None, _) | (CacheState::Cold, None) => name,
    }
}

fn ratio_text(ratio: &Ratio) -> String {
    let (low, high) = ratio.range;
    format!("{:.2}× {} ({low:.2} to {high:.2}; {})", ratio.median_ratio, ratio.a, ratio.rounds)
}

fn add_notes(document: &mut Document, summary: &Summary) {
    let mut figures = summary.workloads.iter().flat_map(|workload| &workload.figures);
    let is_unverified = |spread: &Spread| spread.cold_by.contains_key("unverified");
    document
        .note(
            "A ratio divides this target's figure by that of the named target in the same round; the median over the rounds comes \
             first. It is only descriptive: a few rounds are too few to decide, so no winner is named.",
        )
        .note("p95 needs at least 20 values, the middle 50 % four. Failed runs have no figure and are counted separately.");
    if figures.any(|figure| figure.by_target.values().any(is_unverified)) {
        document.note(
            "cold (unverified): it could not be confirmed that the caches were empty; the figure may include cached data.",
        );
    }
}
