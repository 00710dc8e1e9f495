//! Screen that shows what a file shares, before it is written, and screen of the contradictions in a file.

use longhaul_commons::{SharedResults, target_name};
use longhaul_model::Role;

use super::families;
use crate::charts::ratio_text::ratio_text;
use crate::document::{Document, Fact};
use crate::screens::NO_VALUE;
use crate::table::Table;
use crate::units;
use longhaul_analysis::summary::RatioEstimate;

/// Promise that the tests of the file keep.
const PRIVACY: &str = "The file contains no user, computer, server, target, path or file names, no addresses, serial numbers or error texts. \
     It does contain the ISO week of the first round and the time of each round, from which a reader can tell when this computer was on.";

/// Explains why the ratios are not exactly those of the report.
const INTERVALS: &str = "The intervals are valid however often you look: 95 % for all pairs together. Unlike those of the report, the ratios are \
     not adjusted for the round trip time, because machines with different networks are compared.";

/// Returns the screen of what a file shares. `bytes` is its size.
pub fn share(share: &SharedResults, bytes: usize) -> Document {
    let mut document = Document::titled("What is shared");
    let with_runs = share.rounds.iter().filter(|round| !round.runs.is_empty()).count();
    document.facts(vec![
        Fact::new("machine", format!("{} (computed from a random number)", share.machine)),
        Fact::new("family", families::family(&share.family)),
        Fact::new("first week", share.first_week.to_string()),
        Fact::new("rounds", format!("{with_runs}, and {} without runs", share.rounds.len() - with_runs)),
        Fact::new("runs", share.runs().count().to_string()),
        Fact::new("histograms", share.histograms.len().to_string()),
        Fact::new("size", units::bytes(bytes as f64)),
    ]);
    document.table(targets(share));
    document.table(figures(share));
    if share.figures.is_empty() {
        document
            .note("No two shares have a valid day in common yet, so the file adds nothing to a comparison.");
    }
    if !share.figures.is_empty() {
        document.note(INTERVALS);
    }
    document.note(PRIVACY);
    document
}

fn targets(share: &SharedResults) -> Table {
    let mut table = Table::new("targets").words(["target", "role", "protocol"]);
    for (index, role) in share.targets.iter().enumerate() {
        let role = match role {
            Role::Share => "share",
            Role::Baseline => "baseline",
        };
        table.row([target_name(index).to_string(), role.to_owned(), share.protocol_of(index).to_string()]);
    }
    table
}

fn figures(share: &SharedResults) -> Table {
    let mut table = Table::new("figures").words(["targets", "task"]).figures(["ratio", "days", "rounds"]);
    for figure in &share.figures {
        let end = |sign: f64| figure.half_width.map(|width| (figure.ln_ratio + sign * width).exp());
        let estimate = end(-1.0).zip(end(1.0));
        let estimate = estimate.map(|(low, high)| RatioEstimate {
            value: figure.ln_ratio.exp(),
            low,
            high,
            days: figure.days,
        });
        table.row([
            format!("{} ÷ {}", target_name(figure.b), target_name(figure.a)),
            figure.key.clone(),
            estimate.map_or(NO_VALUE.to_owned(), ratio_text),
            figure.days.to_string(),
            figure.rounds.to_string(),
        ]);
    }
    table
}

/// Returns what would make others refuse a file that is not written yet; empty if there is nothing.
pub fn contradictions(findings: &[String]) -> Document {
    let mut document = Document::new();
    if !findings.is_empty() {
        document.warning("`longhaul merge` would refuse this file, because it contradicts itself:");
        document.list(findings.iter().cloned());
    }
    document
}

/// Returns the screen of the contradictions in a file.
pub fn findings(name: &str, findings: &[String]) -> Document {
    let mut document = Document::new();
    match findings {
        [] => document.paragraph(format!("{name}: no contradiction found.")),
        found => {
            document.paragraph(format!("{name} is refused:"));
            document.list(found.iter().cloned())
        }
    };
    document
}
