//! Metric values of the checks apart from speed.

use std::collections::BTreeMap;

use longhaul_model::KeepResult;

use super::labelled::{Observations, target_labels, with_label};
use crate::attributes::Labels;
use crate::current_state::CurrentState;
use crate::values::Value;

/// Returns the number of changes made elsewhere by kind, and by whether the target showed them in time.
pub fn freshness_changes(now: &CurrentState) -> Observations {
    let mut counts: BTreeMap<Labels, u64> = BTreeMap::new();
    for day in &now.checks.freshness {
        let labels = with_label(&target_labels(&day.target), "longhaul.change.kind", day.kind.name());
        for (visibility, changes) in [("seen", day.changes - day.not_seen), ("not-seen", day.not_seen)] {
            *counts.entry(with_label(&labels, "longhaul.change.visibility", visibility)).or_default() +=
                changes;
        }
    }
    gauges(counts)
}

/// Returns the bytes that were read back and compared, by whether they are known to have come from the server.
pub fn verified_bytes(now: &CurrentState) -> Observations {
    let mut counts: BTreeMap<Labels, u64> = BTreeMap::new();
    for total in &now.checks.verified {
        let labels = target_labels(&total.target);
        let unknown = total.bytes.saturating_sub(total.wire_bytes);
        for (origin, bytes) in [("server", total.wire_bytes), ("unknown", unknown)] {
            *counts.entry(with_label(&labels, "longhaul.data.origin", origin)).or_default() += bytes;
        }
    }
    gauges(counts)
}

/// Returns the number of wrong ranges of each target on which something was verified, also where it is zero.
pub fn mismatches(now: &CurrentState) -> Observations {
    let verified = now.checks.verified.iter().map(|total| (target_labels(&total.target), 0));
    let mut counts: BTreeMap<Labels, u64> = verified.collect();
    for mismatch in &now.checks.mismatches {
        *counts.entry(target_labels(&mismatch.target)).or_default() += 1;
    }
    gauges(counts)
}

/// Returns the number of properties of files by the result of the last check.
pub fn fidelity_properties(now: &CurrentState) -> Observations {
    let of_target = |check: &longhaul_model::TargetFidelity| {
        let labels = target_labels(&check.target);
        let count = |result| check.findings.iter().filter(|finding| finding.result == result).count() as u64;
        KeepResult::ALL
            .map(|result| (with_label(&labels, "longhaul.fidelity.result", result.name()), count(result)))
    };
    gauges(now.checks.fidelity.iter().flat_map(of_target))
}

fn gauges(counts: impl IntoIterator<Item = (Labels, u64)>) -> Observations {
    counts.into_iter().map(|(labels, count)| (labels, Value::Number(count as f64))).collect()
}

#[cfg(test)]
mod tests {
    use longhaul_model::{ChangeKind, DataAge, FreshnessDay, TargetName, Timestamp, VerifiedTotal};

    use super::*;
    use crate::check_results::CheckResults;

    fn value(found: &Observations, label: &str) -> Vec<Value> {
        let has_label = |labels: &Labels| labels.values().any(|value| value == label);
        found.iter().filter(|(labels, _)| has_label(labels)).map(|(_, value)| value.clone()).collect()
    }

    #[test]
    fn days_and_ages_of_a_target_are_added_up() {
        let target: TargetName = "smb".parse().unwrap();
        let day = |day, changes, not_seen| FreshnessDay {
            target: target.clone(),
            epoch: 1,
            kind: ChangeKind::NewFile,
            day,
            changes,
            not_seen,
            slow: 0,
            limit: None,
        };
        let total = |age| VerifiedTotal {
            target: target.clone(),
            protocol: None,
            age,
            bytes: 10,
            files: 1,
            wire_bytes: 4,
            first: Timestamp::UNIX_EPOCH,
            last: Timestamp::UNIX_EPOCH,
        };
        let checks = CheckResults {
            freshness: vec![day(1, 5, 2), day(2, 5, 5)],
            verified: vec![total(DataAge::Hours), total(DataAge::Weeks)],
            ..CheckResults::default()
        };
        let now = CurrentState { checks, ..CurrentState::default() };
        let changes = freshness_changes(&now);
        assert_eq!(value(&changes, "seen"), [Value::Number(3.0)]);
        assert_eq!(value(&changes, "not-seen"), [Value::Number(7.0)]);
        let bytes = verified_bytes(&now);
        assert_eq!(
            (value(&bytes, "server"), value(&bytes, "unknown")),
            (vec![Value::Number(8.0)], vec![Value::Number(12.0)])
        );
        assert_eq!(
            value(&mismatches(&now), "smb"),
            [Value::Number(0.0)],
            "zero is shown where data was verified"
        );
    }
}
