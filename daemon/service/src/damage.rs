//! The problem that data on a target differs from what was written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{StoredMismatch, TargetName, Timestamp};
use longhaul_store::Reader;

/// Code of the problem in the status.
pub const DAMAGE_PROBLEM: &str = "damaged-data";
/// Time for which the status shows a mismatch after it was found last.
const SHOWN_FOR: Duration = DAY.saturating_mul(14);

/// Returns the text of the problem; `None` if nothing was found in the last 14 days.
///
/// # Errors
///
/// If the database cannot be read.
pub fn damage_problem(reader: &Reader, now: Timestamp) -> longhaul_store::Result<Option<String>> {
    Ok(problem_text(&reader.mismatches(Some(now - SHOWN_FOR))?))
}

fn problem_text(mismatches: &[StoredMismatch]) -> Option<String> {
    // A range that was found over several protocols is one range of the file.
    let mut by_target: BTreeMap<&TargetName, BTreeSet<(&str, u64, u64)>> = BTreeMap::new();
    for mismatch in mismatches {
        let range = (mismatch.file.as_str(), mismatch.offset, mismatch.length);
        by_target.entry(&mismatch.target).or_default().insert(range);
    }
    let count = |(target, count): (&TargetName, usize)| match count {
        1 => format!("1 range of a file on {target}"),
        count => format!("{count} ranges of files on {target}"),
    };
    let counts = by_target.iter().map(|(target, ranges)| count((target, ranges.len())));
    let counts: Vec<String> = counts.collect();
    (!counts.is_empty()).then(|| {
        let all: usize = by_target.values().map(BTreeSet::len).sum();
        let differ = if all == 1 { "differs" } else { "differ" };
        format!(
            "{} {differ} from what longhaul wrote there. Check the NAS, its disks and its memory; `longhaul integrity` shows \
             where and how",
            counts.join(" and ")
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn mismatch(number: i64, target: &str) -> StoredMismatch {
        let missing = StoredMismatch::new(number, target.parse().unwrap(), "photo-batch/16-0/IMG_0001.JPG");
        StoredMismatch { offset: number.unsigned_abs(), ..missing }
    }

    #[test]
    fn range_found_over_two_protocols_is_one_range() {
        let found = |protocol: &str| StoredMismatch { protocol: Some(protocol.into()), ..mismatch(1, "smb") };
        let text = problem_text(&[found("SMB 3.0.2"), found("SMB 3.1.1")]).unwrap();
        assert!(text.starts_with("1 range of a file on smb differs from"), "{text}");
    }

    #[test]
    fn problem_names_the_targets_and_no_file() {
        assert_eq!(problem_text(&[]), None);
        let one = problem_text(&[mismatch(1, "smb")]).unwrap();
        assert!(one.starts_with("1 range of a file on smb differs from"), "{one}");
        let more = problem_text(&[mismatch(1, "smb"), mismatch(1, "nfs"), mismatch(2, "smb")]).unwrap();
        assert!(more.starts_with("1 range of a file on nfs and 2 ranges of files on smb differ"), "{more}");
        assert!(!more.contains("IMG_"));
    }
}
