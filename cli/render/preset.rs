//! Presets as documents: their cost before a run, and their results. They stand here because they show types of `measure`.

use std::path::Path;

use longhaul_measure::workloads::Workload;
use longhaul_model::{CacheState, Run, Scale, Target};
use longhaul_presets::profile::{Profile, ProfileCost};
use longhaul_presets::{ContentMode, OperationSummary, PhaseSummary, Preset, PresetFigure, PresetSummary};
use longhaul_service::cost;
use longhaul_service::foreground::ForegroundPlan;
use longhaul_view::text::{Text, Tone};
use longhaul_view::units::{NO_VALUE, count, or_no_value};
use longhaul_view::{Document, Table, units};

/// Returns the list of presets, with the cost of one run each.
pub fn list(presets: &[Preset]) -> Document {
    let mut table = Table::new("Presets")
        .words(["preset"])
        .figures(["writes", "reads", "space", "duration"])
        .words(["in a round", "summary"]);
    for preset in presets.iter().filter(|preset| preset.content_mode() == ContentMode::Incompressible) {
        let cost = preset.profile.cost();
        table.row([
            preset.name().to_owned(),
            bytes(cost.setup_bytes + cost.bytes_written),
            bytes(cost.bytes_read),
            bytes(cost.space_bytes),
            duration(&preset.profile),
            scheduled_text(preset),
            preset.profile.summary.clone(),
        ]);
    }
    let next = Text::new().code("longhaul preset NAME --target T").plain(" runs one; ").code("--scale quick");
    let mut document = Document::new();
    document
        .table(table)
        .note(
            "Numbers are for one run at 30 MB/s and 1 ms per call, including preparation. Phases with a fixed duration read and \
             write as much as the target allows, and are not included.",
        )
        .note(next.plain(" makes it small."));
    document
}

/// Returns the part of a preset that one round runs at the standard scale.
fn scheduled_text(preset: &Preset) -> String {
    match preset.profile.slices {
        1 => "all".to_owned(),
        slices => format!("1/{slices}, {}", duration(&preset.round_profile(Scale::Standard))),
    }
}

fn bytes(count: u64) -> String {
    if count == 0 { NO_VALUE.to_owned() } else { units::bytes(count as f64) }
}

fn duration(profile: &Profile) -> String {
    units::estimated_duration(cost::profile_load(profile).seconds)
}

/// Describes the cost of a run in a sentence.
fn cost_text(profile: &Profile) -> String {
    let ProfileCost {
        setup_bytes: prepared,
        space_bytes: space,
        bytes_written: written,
        bytes_read: read,
        seconds,
        ..
    } = profile.cost();
    let mut parts = vec![];
    if prepared > 0 {
        parts.push(format!("prepares {}", units::bytes(prepared as f64)));
    }
    parts.push(format!(
        "writes {} and reads {} in each run",
        units::bytes(written as f64),
        units::bytes(read as f64)
    ));
    if seconds > 0.0 {
        parts.push(format!("and for {} as much as the target allows", units::duration(seconds)));
    }
    let free = units::bytes(space as f64);
    format!(
        "{}. It needs {free} of space and about {} per run at 30 MB/s and 1 ms per call",
        parts.join(", "),
        duration(profile)
    )
}

/// Describes the runs that are about to start.
pub fn plan(plan: &ForegroundPlan, profile: &Profile, content_mode: ContentMode) -> Document {
    let content = match content_mode {
        ContentMode::Incompressible => "incompressible",
        ContentMode::AsOriginal => {
            "zeros, LIKE THE ORIGINAL: a NAS that compresses data looks faster than it is"
        }
    };
    let targets = match plan.targets.len() {
        1 => "1 target".to_owned(),
        several => format!("each of {several} targets"),
    };
    let runs = format!(
        "{} on {targets}, {} scale, content: {content}.",
        count(plan.rounds, "run"),
        plan.tasks.scale.name(),
    );
    let mut document = Document::new();
    document
        .paragraph(format!("{} {}.", plan.tasks.workloads.join(", "), cost_text(profile)))
        .paragraph(runs);
    document
}

/// Describes a valid profile and the cost of a run.
pub fn profile(file: &Path, profile: &Profile) -> Document {
    let phases: Vec<&str> = profile.phases.iter().map(|phase| phase.name.as_str()).collect();
    let mut document = Document::new();
    document
        .paragraph(format!("{} is valid: {}", file.display(), profile.summary))
        .paragraph(format!("Phases: {}.", phases.join(", ")))
        .paragraph(format!("It {}.", cost_text(profile)));
    document
}

/// Returns the results of all runs of a preset on one target.
pub fn summary(target: &Target, runs: &[&Run], summary: &PresetSummary) -> Document {
    let protocol = runs.iter().rev().find_map(|run| run.protocol.as_ref());
    let protocol = protocol.map_or("protocol not known".to_owned(), ToString::to_string);
    let PresetSummary { preset, runs: succeeded, failed, .. } = summary;
    let mut document = Document::titled(format!(
        "{preset} on {} ({protocol}): {}, {failed} failed",
        target.name,
        count(succeeded + failed, "run")
    ));
    if let Some(original) = &summary.original {
        document.paragraph(format!("Reproduces {original}."));
    }
    for failure in runs.iter().filter_map(|run| run.failure.as_ref()) {
        document.paragraph(Text::new().toned("failed", Tone::Bad).plain(format!(": {}", failure.message)));
    }
    if summary.runs == 0 {
        document.paragraph("No run succeeded, so there are no figures.");
        return document;
    }
    for table in &summary.tables {
        document.list(table.lines());
    }
    let (own, others) = match summary.original {
        Some(_) => ("As printed by the original", "Not shown by the original"),
        None => ("Figures", "Each phase"),
    };
    document.section("original", own).table(figures(&summary.figures));
    let published = published_figures(summary);
    if !published.blocks.is_empty() && runs.iter().any(|run| run.scale == Scale::Quick) {
        document.warning("The next table compares nothing: these runs used small test data, the published ones the full size.");
    }
    document.append(published);
    document.section("phases", others).table(phases(&summary.phases)).note(
        "overhead: time between calls, in which content is generated and verified; excluded from every rate, like opening \
         files before and closing them after. steady: in the second half the rate varies by at most 20 % and drifts by at \
         most 10 %.",
    );
    document.table(operations(&summary.phases));
    if !summary.differences.is_empty() {
        document.section("differences", "Differences from the original");
        document.list(summary.differences.iter().map(String::as_str));
    }
    document
}

fn figures(all: &[PresetFigure]) -> Table {
    let mut table = Table::new("Figures")
        .words(["figure", "unit"])
        .figures(["median", "smallest", "largest", "each run"]);
    for figure in all {
        let number = |value: Option<f64>| or_no_value(value.map(units::grouped));
        let each: Vec<String> = figure.values.iter().map(|value| units::grouped(*value)).collect();
        table.row([
            figure.name.clone(),
            figure.unit.to_owned(),
            number(figure.median),
            number(figure.range.map(|range| range.0)),
            number(figure.range.map(|range| range.1)),
            each.join(" "),
        ]);
    }
    table
}

/// Returns the published figures with the ratio of ours to each; empty if they were not requested.
fn published_figures(summary: &PresetSummary) -> Document {
    let mut table = Table::new("Published figures")
        .words(["figure"])
        .figures(["published"])
        .words(["unit", "setup"])
        .figures(["yours"])
        .words(["note"]);
    let mut sources: Vec<&str> = vec![];
    for figure in &summary.figures {
        for published in &figure.published {
            let place = sources.iter().position(|known| *known == published.citation).unwrap_or_else(|| {
                sources.push(published.citation);
                sources.len() - 1
            });
            table.row([
                figure.name.clone(),
                units::grouped(published.value),
                figure.unit.to_owned(),
                format!("{} [{}]", published.setup, place + 1),
                or_no_value(published.times_published.map(|multiple| format!("{multiple:.2}×"))),
                published.note.unwrap_or_default().to_owned(),
            ]);
        }
    }
    let mut document = Document::new();
    if !sources.is_empty() {
        document.section("published", "Published figures next to your median").table(table);
        document.list(sources.iter().enumerate().map(|(place, source)| format!("[{}] {source}", place + 1)));
    }
    document
}

fn phases(all: &[PhaseSummary]) -> Table {
    let mut table =
        Table::new("Phases").words(["phase", "cache"]).figures(["time", "overhead", "steady", "from cache"]);
    for phase in all {
        let steady = match phase.steady_runs {
            (_, 0) => "too short".to_owned(),
            (steady, runs) => format!("{steady} of {runs}"),
        };
        table.row([
            phase.phase.clone(),
            cache_text(phase),
            units::seconds_or_none(phase.seconds),
            units::seconds_or_none(phase.overhead_seconds),
            steady,
            phase.cache_share.map_or("not known".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        ]);
    }
    table
}

fn cache_text(phase: &PhaseSummary) -> String {
    let ways: Vec<&str> = phase.cold_by.iter().map(|(way, _)| *way).collect();
    match phase.cache {
        CacheState::Cold => format!("cold ({})", ways.join(" or ")),
        CacheState::Warm => "warm".to_owned(),
        CacheState::None => NO_VALUE.to_owned(),
    }
}

fn operations(all: &[PhaseSummary]) -> Table {
    let mut table = Table::new("Operations")
        .words(["phase", "operation"])
        .figures(["count", "errors", "p50", "p95", "p99"]);
    for phase in all {
        for OperationSummary { operation, count, errors, p50, p95, p99 } in &phase.operations {
            let [p50, p95, p99] = [*p50, *p95, *p99].map(units::seconds_or_none);
            let (count, errors) = (count.to_string(), errors.to_string());
            table.row([phase.phase.clone(), operation.to_string(), count, errors, p50, p95, p99]);
        }
    }
    table
}
