//! A target in full: state, role, budget, and what was negotiated with its server.

use jiff::tz::TimeZone;
use longhaul_model::status::{Status, TargetStatus};
use longhaul_model::stored::StoredEpoch;
use longhaul_model::{Role, Timestamp};

use super::status;
use crate::document::{Details, Document, Fact};
use crate::table::Table;
use crate::text::Text;
use crate::time;

/// Returns a section for each target.
pub fn targets(status: &Status, epochs: &[StoredEpoch], zone: &TimeZone) -> Document {
    let mut document = Document::new();
    for target in &status.targets {
        document.section(format!("target-{}", target.name), target.name.as_str());
        document.facts(facts(target, status.now_us, zone));
        if let Some(newest) = epochs.iter().rfind(|epoch| epoch.target == target.name) {
            let since = time::timestamp(newest.opened, zone);
            document.note(format!("Epoch {}, since {since}.", newest.number)).details(negotiated(newest));
        }
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
    Details { summary: "Negotiated options".to_owned(), content }
}
