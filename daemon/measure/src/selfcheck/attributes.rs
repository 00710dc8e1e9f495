//! Checks of a file's extended attributes, times and permissions.

use std::ffi::CStr;

use crate::error::RunError;
use crate::platform::{FINDER_INFO, FINDER_INFO_BYTES, TEST_XATTR};

use super::check::{CheckAnswer, CheckedTarget, TargetCheck, TargetCheckMethod, error_text};
use super::listing::finder_info;
use super::scratch::ScratchFolder;

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck::named("extended attribute", TargetCheckMethod::Files(custom_attribute))
        .linux("stored and removed, or refused as not supported", "xattr(7), fsetxattr(2)")
        .macos("stored and removed", "man setxattr(2); xnu bsd/vfs/vfs_xattr.c:185, vn_setxattr"),
    TargetCheck::named("Finder info", TargetCheckMethod::Files(finder_attribute))
        .linux("stored and removed, or refused as not supported", "xattr(7), fsetxattr(2)")
        .macos("stored and removed", "man getattrlist(2); xnu bsd/vfs/vfs_xattr.c:1532, emptyfinfo"),
    TargetCheck::named("modification time", TargetCheckMethod::Files(times))
        .linux("stored, accurate to 2 s or better", "utimensat(2)")
        .macos("stored, accurate to 2 s or better", "man utimensat(2), mount_exfat(8)"),
    TargetCheck::named("permissions", TargetCheckMethod::Files(permissions))
        .linux("stored, accepted without effect, or refused as not supported", "chmod(2), mount.cifs(8)")
        .macos(
            "stored, accepted without effect, or refused as not supported",
            "man chmod(2), mount_smbfs(8)",
        ),
];

/// Extended attribute to set, and the file to set it on.
struct Attribute<'a> {
    file: &'static CStr,
    name: &'a CStr,
    value: &'a [u8],
}

fn custom_attribute(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    attribute(on, scratch, &Attribute { file: c"note", name: TEST_XATTR, value: b"a note" })
}

fn finder_attribute(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    attribute(on, scratch, &Attribute { file: c"finder", name: FINDER_INFO, value: &finder_info() })
}

/// Sets an extended attribute of a new file, reads it back through the file's name, and removes it.
fn attribute(
    on: &CheckedTarget<'_>,
    scratch: &ScratchFolder,
    given: &Attribute<'_>,
) -> Result<CheckAnswer, RunError> {
    let context = on.context;
    let file = context.create(scratch.folder(), given.file)?;
    if !context.setxattr(&file, given.name, given.value)? {
        context.close(file)?;
        return Ok(CheckAnswer::ok("refused as not supported"));
    }
    let stored = read_attribute(on, scratch, given)?.as_deref() == Some(given.value);
    let removed = context.remove_xattr(&file, given.name);
    context.close(file)?;
    let remains = read_attribute(on, scratch, given)?.is_some();
    Ok(match (stored, removed, remains) {
        (true, Ok(()), false) => CheckAnswer::ok("stored and removed"),
        (false, _, _) => CheckAnswer::differs("accepted, but not stored"),
        (true, Ok(()), true) => CheckAnswer::differs("stored, but still present after its removal"),
        (true, Err(error), _) => CheckAnswer::differs(format!("stored; {}", error_text(&error))),
    })
}

fn read_attribute(
    on: &CheckedTarget<'_>,
    scratch: &ScratchFolder,
    given: &Attribute<'_>,
) -> Result<Option<Vec<u8>>, RunError> {
    let mut value = [0; FINDER_INFO_BYTES];
    let length = on.context.getxattr_at(scratch.folder(), given.file, given.name, &mut value)?;
    Ok(length.map(|length| value[..length.min(value.len())].to_vec()))
}

/// Modification time that the check sets, in nanoseconds since 1970 UTC. The odd second and the fraction make
/// each timestamp resolution visible as a different rounding.
pub const TEST_TIME_NS: i64 = 1_700_000_001_123_456_789;

fn times(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const FILE: &CStr = c"time";
    let (context, folder) = (on.context, scratch.folder());
    scratch.write(FILE, b"x", context)?;
    if !context.set_times(folder, FILE, TEST_TIME_NS)? {
        return Ok(CheckAnswer::ok("refused as not supported"));
    }
    // Opening a new handle makes some clients request the attributes from the server again.
    scratch.read(FILE, 1, context)?;
    Ok(judge_time(context.getattr(folder, FILE)?.modified_ns))
}

/// Timestamp resolutions of known file systems, in nanoseconds, from finest to coarsest.
const RESOLUTIONS: [(i64, &str); 7] = [
    (1, "1 ns"),
    (100, "100 ns"),
    (1000, "1 µs"),
    (1_000_000, "1 ms"),
    (10_000_000, "10 ms"),
    (1_000_000_000, "1 s"),
    (2_000_000_000, "2 s"),
];

/// Returns the name of the resolution that explains why [`TEST_TIME_NS`] was read back as this time, in nanoseconds
/// since 1970 UTC; `None` if none does.
pub fn time_resolution(found_ns: i64) -> Option<&'static str> {
    let fits = |unit: i64| {
        // Some file systems truncate a time to their resolution, others round it up.
        let truncated = TEST_TIME_NS - TEST_TIME_NS.rem_euclid(unit);
        found_ns == truncated || (unit > 1 && found_ns == truncated + unit)
    };
    RESOLUTIONS.iter().find(|(unit, _)| fits(*unit)).map(|(_, name)| *name)
}

/// Judges a modification time read back, in nanoseconds since 1970 UTC.
fn judge_time(found_ns: i64) -> CheckAnswer {
    match time_resolution(found_ns) {
        Some(name) => CheckAnswer::ok(format!("stored with a resolution of {name}")),
        None => {
            let seconds = found_ns.saturating_sub(TEST_TIME_NS) as f64 / 1e9;
            CheckAnswer::differs(format!("the stored time is {seconds:+.3} s off"))
        }
    }
}

fn permissions(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const FILE: &CStr = c"mode";
    const MODE: u16 = 0o640;
    let (context, folder) = (on.context, scratch.folder());
    let file = context.create(folder, FILE)?;
    let accepted = context.set_mode(&file, MODE)?;
    context.close(file)?;
    let found = context.getattr(folder, FILE)?.mode;
    Ok(CheckAnswer::ok(match (accepted, found) {
        (false, _) => "refused as not supported".to_owned(),
        (true, MODE) => "stored".to_owned(),
        (true, other) => format!("accepted without effect: {MODE:03o} was set, {other:03o} was read back"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selfcheck::CheckOutcome;

    #[test]
    fn resolution_is_recognized_from_a_rounded_time() {
        const SECOND: i64 = 1_700_000_001_000_000_000;
        let resolution = |found| {
            let answer = judge_time(found);
            assert_eq!(answer.verdict, CheckOutcome::Ok, "{}", answer.text);
            answer.text.replace("stored with a resolution of ", "")
        };
        assert_eq!(resolution(TEST_TIME_NS), "1 ns");
        assert_eq!(resolution(SECOND + 123_456_700), "100 ns");
        assert_eq!(resolution(SECOND + 123_456_000), "1 µs");
        assert_eq!(resolution(SECOND + 124_000_000), "1 ms", "rounded up");
        assert_eq!(resolution(SECOND + 120_000_000), "10 ms");
        assert_eq!(resolution(SECOND), "1 s");
        assert_eq!(resolution(SECOND - 1_000_000_000), "2 s");
        assert_eq!(resolution(SECOND + 1_000_000_000), "1 s", "rounded up");
    }

    #[test]
    fn wrong_modification_time_differs() {
        for other in [0, TEST_TIME_NS - 3_600_000_000_000, TEST_TIME_NS + 5_000_000_000] {
            let answer = judge_time(other);
            assert_eq!(answer.verdict, CheckOutcome::Differs);
            assert!(answer.text.contains(" s off"), "{}", answer.text);
        }
        assert!(judge_time(TEST_TIME_NS - 3_600_000_000_000).text.contains("-3600.000"));
    }
}
