//! The targets in full: state, role, budget, and what was negotiated with their servers.

use jiff::tz::TimeZone;
use longhaul_model::status::{Status, TargetStatus};
use longhaul_model::stored::StoredEpoch;
use longhaul_model::{Role, Timestamp};

use super::status;
use crate::document::{Details, Document, Fact};
use crate::table::Table;
use crate::text::Text;
use crate::time;

/// Returns a section for each target with its state now.
pub fn targets(status: &Status, zone: &TimeZone) -> Document {
    let mut document = Document::new();
    for target in &status.targets {
        document.section(format!("target-{}", target.name), target.name.as_str());
        document.facts(facts(target, status.now_us, zone));
    }
    document
}

/// Returns what was negotiated with the server of each target, since its newest epoch.
pub fn newest_epochs(status: &Status, epochs: &[StoredEpoch], zone: &TimeZone) -> Document {
    let mut document = Document::new();
    let newest = |target: &TargetStatus| epochs.iter().rfind(|epoch| epoch.target == target.name);
    let found: Vec<&StoredEpoch> = status.targets.iter().filter_map(newest).collect();
    if !found.is_empty() {
        document.section("negotiated", "Negotiated options");
    }
    for epoch in found {
        let since = time::timestamp(epoch.opened, zone);
        let note = format!(": epoch {}, since {since}.", epoch.number);
        document.paragraph(Text::new().target(&epoch.target).plain(note)).details(negotiated(epoch));
    }
    document
}

fn facts(target: &TargetStatus, now: Timestamp, zone: &TimeZone) -> Vec<Fact> {
    let role = match target.role {
        Role::Share => "compared with the others",
        Role::Baseline => "a baseline, not part of comparisons",
    };
    vec![
        Fact::new("State", status::target_state(target, now, zone)),
        Fact::new("Protocol", status::target_protocol(target)),
        Fact::new("Path", Text::new().code(target.path.as_str())),
        Fact::new("Role", role),
        Fact::new("Last round", status::last_runs(target).unwrap_or_else(|| "none yet".to_owned())),
        Fact::new("Last 24 h", status::budget(target)),
        Fact::new("Latency probe", status::probe(&target.probe)),
    ]
}

fn negotiated(epoch: &StoredEpoch) -> Details {
    let mut table = Table::new("Negotiated options").words(["negotiated", "value"]);
    for (key, value) in &epoch.negotiated {
        table.row([key.as_str(), value]);
    }
    let mut content = Document::new();
    content.table(table);
    Details { summary: format!("Options of {}", epoch.target), content }
}
