//! The checks in brief, for the first screens: one sentence each.

use longhaul_analysis::checks::IntegrityLine;
use longhaul_analysis::summary::{Freshness, KindFreshness};
use longhaul_model::{KeepResult, TargetFidelity};

use crate::units;

/// Results of the checks.
#[derive(Debug, Clone, Copy)]
pub struct CheckResults<'a> {
    /// Freshness of each target in its newest epoch.
    pub freshness: &'a [Freshness],
    /// Verified data of each target.
    pub integrity: &'a [IntegrityLine],
    /// The newest check of the properties of each target.
    pub fidelity: &'a [TargetFidelity],
}

/// Returns a sentence for each check that has a result.
pub fn in_brief(results: &CheckResults<'_>) -> Vec<String> {
    [visible(results.freshness), verified(results.integrity), lost(results.fidelity)]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns how many changes became visible through each target; `None` without targets.
pub fn visible<'a>(freshness: impl IntoIterator<Item = &'a Freshness>) -> Option<String> {
    let count = |freshness: &Freshness| format!("{} {}", freshness.target, seen_of_all(freshness));
    let counts: Vec<String> = freshness.into_iter().map(count).collect();
    (!counts.is_empty())
        .then(|| format!("Changes made elsewhere that became visible: {}.", counts.join(", ")))
}

/// Returns how many of all changes became visible, as `130 of 150`.
pub fn seen_of_all(freshness: &Freshness) -> String {
    let total = |count: fn(&KindFreshness) -> u64| freshness.kinds.iter().map(count).sum::<u64>();
    let changes = total(|kind| kind.changes);
    format!("{} of {changes}", changes - total(|kind| kind.not_seen))
}

fn verified(lines: &[IntegrityLine]) -> Option<String> {
    let total = |count: fn(&IntegrityLine) -> u64| lines.iter().map(count).sum::<u64>();
    let (bytes, wrong) = (total(|line| line.bytes_verified), total(|line| line.mismatches));
    let ranges = match wrong {
        0 => "nothing wrong".to_owned(),
        wrong => format!("{} wrong; `longhaul integrity` shows where", units::count(wrong, "range")),
    };
    (bytes > 0 || wrong > 0).then(|| {
        format!("Read back and compared with what was written: {}, {ranges}.", units::bytes(bytes as f64))
    })
}

fn lost(checks: &[TargetFidelity]) -> Option<String> {
    let count = |check: &TargetFidelity| {
        let tested = check.findings.iter().filter(|finding| finding.result.is_tested()).count();
        let lost = check.findings.iter().filter(|finding| finding.result == KeepResult::Lost).count();
        format!("{} {lost} of {tested}", check.target)
    };
    let is_tested = |check: &&TargetFidelity| check.findings.iter().any(|finding| finding.result.is_tested());
    let counts: Vec<String> = checks.iter().filter(is_tested).map(count).collect();
    (!counts.is_empty()).then(|| format!("Properties of files lost without an error: {}.", counts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_ranges_are_told_if_no_compared_byte_is_known() {
        let line = IntegrityLine {
            target: "nas".parse().unwrap(),
            protocol: None,
            bytes_verified: 0,
            bytes_over_the_wire: 0,
            files_verified: 0,
            by_age: vec![],
            mismatches: 2,
            excluded_rate_bytes: None,
            first_us: None,
            last_us: None,
            wrong_ranges: vec![],
        };
        let text = verified(&[line]).unwrap();
        assert!(text.ends_with("2 ranges wrong; `longhaul integrity` shows where."), "{text}");
    }
}
