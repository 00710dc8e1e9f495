//! The made-up status of a service between two rounds.

use std::path::Path;

use longhaul_measure::platform;
use longhaul_model::Role;
use longhaul_model::time::{DAY, HOUR};
use longhaul_service::status::{DatabaseStatus, LastRound, ProbeState, Status, TargetState, TargetStatus};
use longhaul_store::{Reader, RoundCounts, RoundEnd, StoredRound};

use crate::{name, protocol};

/// Returns the status of a service with this database, which need not exist.
pub fn status(database: &Path) -> Status {
    let now = platform::wall_clock();
    let stored = Reader::open(database).and_then(|reader| reader.rounds()).unwrap_or_default();
    let mut rounds = RoundCounts::default();
    stored.iter().for_each(|round| rounds.add(round.end.as_ref().map(|end| end.status), 1));
    let file = DatabaseStatus { path: database.to_owned(), bytes: Some(123_456_789) };
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_us: now - 3 * DAY,
        targets: ["local", "smb", "nfs", "afp"].map(target).to_vec(),
        rounds,
        last_round: stored.last().and_then(last_round),
        next_round_us: Some(now + HOUR / 3),
        slices: 4,
        ..Status::new(file, now)
    }
}

fn last_round(stored: &StoredRound) -> Option<LastRound> {
    let RoundEnd { status, reason, ended, .. } = stored.end.clone()?;
    Some(LastRound { number: stored.number, status, reason, ended_us: ended })
}

fn target(label: &str) -> TargetStatus {
    let role = if label == "local" { Role::Baseline } else { Role::Share };
    TargetStatus {
        name: name(label),
        path: format!("/Volumes/{label}"),
        role,
        protocol: Some(protocol(label).to_string()),
        state: TargetState::Waiting { reason: "the next round".to_owned(), until_us: None },
        last_runs: Some((4, 4)),
        failed_tasks: vec![],
        bytes_last_24h: 4_200_000_000,
        bytes_limit: Some(20_000_000_000),
        probe: if role == Role::Share { ProbeState::Active } else { ProbeState::Off },
    }
}
