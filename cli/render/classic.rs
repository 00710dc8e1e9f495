//! Classics: what they would do, and what came of them.

use std::path::Path;

use longhaul_measure::model::{CacheState, Run, Scale, Target};
use longhaul_measure::profile::{Cost, Profile};
use longhaul_measure::summary::{ClassicSummary, FigureOfRuns, OperationOfRuns, PhaseOfRuns};
use longhaul_measure::workloads::Workload;
use longhaul_measure::workloads::classic::{Classic, Manner};
use longhaul_service::cost;
use longhaul_service::runner::Plan;

use super::table::{align_right_from, table};
use super::units;

/// Every classic with what a run costs.
pub fn list(classics: &[Classic]) -> String {
    let mut out = table(&["classic", "writes", "reads", "space", "about", "in rounds", "what it does"]);
    for classic in classics.iter().filter(|classic| classic.manner() == Manner::Honest) {
        let cost = classic.profile.cost();
        out.add_row([
            classic.name().to_owned(),
            bytes(cost.prepared + cost.written),
            bytes(cost.read),
            bytes(cost.space),
            about(&classic.profile),
            in_rounds(classic),
            classic.profile.summary.clone(),
        ]);
    }
    format!(
        "{out}\n\nOf one run at 30 MB/s and 1 ms a call, its preparation included; what goes on for a fixed time reads and \
         writes as much as the target takes, and is not in the sums.\n`longhaul classic NAME --target T` runs one; \
         `--scale quick` makes it small.\n"
    )
}

/// What a round does of it at the standard scale.
fn in_rounds(classic: &Classic) -> String {
    match classic.profile.slices {
        1 => "all".to_owned(),
        slices => format!("1/{slices}, {}", about(&classic.in_rounds(Scale::Standard))),
    }
}

fn bytes(count: u64) -> String {
    if count == 0 { "–".to_owned() } else { units::bytes(count as f64) }
}

fn about(profile: &Profile) -> String {
    let seconds = cost::of_profile(profile).seconds;
    match seconds {
        short if short < 90.0 => format!("{short:.0} s"),
        middle if middle < 5400.0 => format!("{:.0} min", middle / 60.0),
        long => format!("{:.1} h", long / 3600.0),
    }
}

/// What a run costs, in a sentence.
fn costs(profile: &Profile) -> String {
    let Cost { prepared, space, written, read, seconds, .. } = profile.cost();
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
        parts.push(format!("and goes on for {} with as much as the target takes", units::seconds(seconds)));
    }
    let free = units::bytes(space as f64);
    format!(
        "{}. It needs {free} of space, and takes about {} a run at 30 MB/s and 1 ms a call",
        parts.join(", "),
        about(profile)
    )
}

/// What is about to be done.
pub fn beforehand(plan: &Plan, profile: &Profile, manner: Manner) -> String {
    let name = plan.tasks.workloads.join(", ");
    let content = match manner {
        Manner::Honest => "incompressible",
        Manner::AsOriginal => "zeros, AS THE ORIGINAL WRITES: a NAS that compresses flatters itself",
    };
    format!(
        "{name} {}.\n{} runs on {} target(s), {} scale, content: {content}.\n",
        costs(profile),
        plan.rounds,
        plan.targets.len(),
        plan.tasks.scale.name(),
    )
}

/// What a profile that was checked would do.
pub fn checked(file: &Path, profile: &Profile) -> String {
    let phases: Vec<&str> = profile.phases.iter().map(|phase| phase.name.as_str()).collect();
    format!(
        "{} is well formed: {}\nphases: {}\nIt {}.\n",
        file.display(),
        profile.summary,
        phases.join(", "),
        costs(profile)
    )
}

/// All runs of a classic on one target.
pub fn summary(target: &Target, runs: &[&Run], summary: &ClassicSummary) -> String {
    let protocol = runs
        .iter()
        .rev()
        .find_map(|run| run.protocol.as_ref())
        .map_or("protocol not known".to_owned(), ToString::to_string);
    let mut out = format!(
        "{} on {} ({protocol}): {} runs, {} failed\n",
        summary.classic, target.name, summary.runs, summary.failed
    );
    if let Some(original) = &summary.original {
        out += &format!("reproduces {original}\n");
    }
    for failure in runs.iter().filter_map(|run| run.failure.as_ref()) {
        out += &format!("\nfailed: {}\n", failure.message);
    }
    if summary.runs == 0 {
        return out + "\nNo run ended well, so there is no figure.\n";
    }
    summary.tables.iter().for_each(|table| out += &format!("\n{table}\n"));
    out += &format!("\nas the original prints it\n{}\n", figures(&summary.figures));
    out += &published(summary);
    out += &format!("\nwhat it does not tell\n{}\n", phases(&summary.phases));
    out += &format!("\n{}\n", operations(&summary.phases));
    if !summary.differs.is_empty() {
        out += "\nwhat differs from the original\n";
        summary.differs.iter().for_each(|line| out += &format!("  {line}\n"));
    }
    out
}

fn figures(all: &[FigureOfRuns]) -> String {
    let mut table = table(&["figure", "unit", "median", "smallest", "largest", "each run"]);
    for figure in all {
        let number = |value: Option<f64>| value.map_or("–".to_owned(), units::thousands);
        let each: Vec<String> = figure.values.iter().map(|value| units::thousands(*value)).collect();
        table.add_row([
            figure.name.clone(),
            figure.unit.to_owned(),
            number(figure.median),
            number(figure.range.map(|range| range.0)),
            number(figure.range.map(|range| range.1)),
            each.join(" "),
        ]);
    }
    align_right_from(&mut table, 2);
    table.to_string()
}

/// Published figures, and how many times each ours is; nothing where none was asked for.
fn published(summary: &ClassicSummary) -> String {
    let mut table = table(&["figure", "published", "unit", "under", "yours is", "note"]);
    let mut sources: Vec<&str> = vec![];
    for figure in &summary.figures {
        for beside in &figure.published {
            let place = sources.iter().position(|known| *known == beside.citation).unwrap_or_else(|| {
                sources.push(beside.citation);
                sources.len() - 1
            });
            table.add_row([
                figure.name.clone(),
                units::thousands(beside.value),
                figure.unit.to_owned(),
                format!("{} [{}]", beside.under, place + 1),
                beside.multiple.map_or("–".to_owned(), |multiple| format!("{multiple:.2}×")),
                beside.note.unwrap_or_default().to_owned(),
            ]);
        }
    }
    if sources.is_empty() {
        return String::new();
    }
    let cited = sources.iter().enumerate().map(|(place, source)| format!("  [{}] {source}\n", place + 1));
    format!("\npublished, beside your median\n{table}\n{}", cited.collect::<String>())
}

fn phases(all: &[PhaseOfRuns]) -> String {
    let mut table = table(&["phase", "cache", "time", "own time", "steady", "from this cache"]);
    for phase in all {
        let seconds = |value: Option<f64>| value.map_or("–".to_owned(), units::seconds);
        let steady = match phase.steady {
            (_, 0) => "too short to say".to_owned(),
            (steady, runs) => format!("{steady} of {runs}"),
        };
        table.add_row([
            phase.phase.clone(),
            cache(phase),
            seconds(phase.seconds),
            seconds(phase.own_seconds),
            steady,
            phase.cache_share.map_or("not known".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        ]);
    }
    format!(
        "{table}\nown time: between calls, in which content is made and checked; left out of every rate, as what is opened before and closed afterwards. steady: its second half moves by at most 20 %, and drifts by at most 10 %."
    )
}

fn cache(phase: &PhaseOfRuns) -> String {
    let ways: Vec<&str> = phase.cold_by.iter().map(|(way, _)| *way).collect();
    match phase.cache {
        CacheState::Cold => format!("cold ({})", ways.join(" or ")),
        CacheState::Warm => "warm".to_owned(),
        CacheState::None => "–".to_owned(),
    }
}

fn operations(all: &[PhaseOfRuns]) -> String {
    let mut table = table(&["phase", "operation", "count", "errors", "p50", "p95", "p99"]);
    for phase in all {
        for OperationOfRuns { operation, count, errors, p50, p95, p99 } in &phase.operations {
            let time = |value: &Option<f64>| value.map_or("–".to_owned(), units::seconds);
            table.add_row([
                phase.phase.clone(),
                operation.to_string(),
                count.to_string(),
                errors.to_string(),
                time(p50),
                time(p95),
                time(p99),
            ]);
        }
    }
    align_right_from(&mut table, 2);
    table.to_string()
}
