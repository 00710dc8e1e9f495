//! Extended attributes, times and permissions of a file.

use std::ffi::CStr;

use crate::error::RunError;
use crate::platform::{FINDER_INFO, FINDER_INFO_BYTES, NOTE_ATTRIBUTE};

use super::listing::finder_info;
use super::{Answer, Ask, CheckedTarget, Expectation, Expectations, Scratch, TargetCheck, error_text};

/// The calls of this group.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck {
        call: "extended attribute",
        expected: Expectations {
            linux: Expectation {
                text: "kept and removed, or refused as not supported",
                source: "xattr(7), fsetxattr(2)",
            },
            macos: Expectation {
                text: "kept and removed",
                source: "man setxattr(2); xnu bsd/vfs/vfs_xattr.c, vn_setxattr",
            },
        },
        ask: Ask::Files(note),
    },
    TargetCheck {
        call: "Finder info",
        expected: Expectations {
            linux: Expectation {
                text: "kept and removed, or refused as not supported",
                source: "xattr(7), fsetxattr(2)",
            },
            macos: Expectation {
                text: "kept and removed",
                source: "man getattrlist(2); xnu bsd/vfs/vfs_xattr.c, emptyfinfo",
            },
        },
        ask: Ask::Files(finder),
    },
    TargetCheck {
        call: "time of change",
        expected: Expectations {
            linux: Expectation { text: "kept, to 2 s at worst", source: "utimensat(2)" },
            macos: Expectation { text: "kept, to 2 s at worst", source: "man utimensat(2), mount_exfat(8)" },
        },
        ask: Ask::Files(times),
    },
    TargetCheck {
        call: "permissions",
        expected: Expectations {
            linux: Expectation {
                text: "kept, accepted without effect, or refused as not supported",
                source: "chmod(2), mount.cifs(8)",
            },
            macos: Expectation {
                text: "kept, accepted without effect, or refused as not supported",
                source: "man chmod(2), mount_smbfs(8)",
            },
        },
        ask: Ask::Files(permissions),
    },
];

/// An attribute and the file that gets it.
struct Attribute<'a> {
    file: &'static CStr,
    name: &'a CStr,
    value: &'a [u8],
}

fn note(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    attribute(on, scratch, &Attribute { file: c"note", name: NOTE_ATTRIBUTE, value: b"a note" })
}

fn finder(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    attribute(on, scratch, &Attribute { file: c"finder", name: FINDER_INFO, value: &finder_info() })
}

/// Sets an attribute of a new file, reads it by name, and removes it.
fn attribute(on: &CheckedTarget<'_>, scratch: &Scratch, given: &Attribute<'_>) -> Result<Answer, RunError> {
    let context = on.context;
    let file = context.create(scratch.folder(), given.file)?;
    if !context.setxattr(&file, given.name, given.value)? {
        context.close(file)?;
        return Ok(Answer::ok("refused as not supported"));
    }
    let kept = read_attribute(on, scratch, given)?.as_deref() == Some(given.value);
    let removed = context.remove_xattr(&file, given.name);
    context.close(file)?;
    let stays = read_attribute(on, scratch, given)?.is_some();
    Ok(match (kept, removed, stays) {
        (true, Ok(()), false) => Answer::ok("kept and removed"),
        (false, _, _) => Answer::differs("accepted, but not read back"),
        (true, Ok(()), true) => Answer::differs("kept, and still there after it was removed"),
        (true, Err(error), _) => Answer::differs(format!("kept; {}", error_text(&error))),
    })
}

fn read_attribute(
    on: &CheckedTarget<'_>,
    scratch: &Scratch,
    given: &Attribute<'_>,
) -> Result<Option<Vec<u8>>, RunError> {
    let mut value = [0; FINDER_INFO_BYTES];
    let length = on.context.getxattr_at(scratch.folder(), given.file, given.name, &mut value)?;
    Ok(length.map(|length| value[..length.min(value.len())].to_vec()))
}

/// An odd second and a part of one: every resolution changes it in its own way.
const GIVEN_NS: i64 = 1_700_000_001_123_456_789;

fn times(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const FILE: &CStr = c"time";
    let (context, folder) = (on.context, scratch.folder());
    scratch.write(FILE, b"x", context)?;
    if !context.set_times(folder, FILE, GIVEN_NS)? {
        return Ok(Answer::ok("refused as not supported"));
    }
    // A new handle has some clients ask the server again.
    scratch.read(FILE, 1, context)?;
    Ok(judge_time(context.getattr(folder, FILE)?.modified_ns))
}

/// The resolutions of file systems, in nanoseconds, the finest first.
const RESOLUTIONS: [(i64, &str); 7] = [
    (1, "1 ns"),
    (100, "100 ns"),
    (1000, "1 µs"),
    (1_000_000, "1 ms"),
    (10_000_000, "10 ms"),
    (1_000_000_000, "1 s"),
    (2_000_000_000, "2 s"),
];

/// A file system cuts a time down to its resolution, or rounds it up.
fn judge_time(found_ns: i64) -> Answer {
    let fits = |unit: i64| {
        let cut = GIVEN_NS - GIVEN_NS.rem_euclid(unit);
        found_ns == cut || (unit > 1 && found_ns == cut + unit)
    };
    match RESOLUTIONS.iter().find(|(unit, _)| fits(*unit)) {
        Some((_, name)) => Answer::ok(format!("kept to {name}")),
        None => {
            let seconds = found_ns.saturating_sub(GIVEN_NS) as f64 / 1e9;
            Answer::differs(format!("read back {seconds:+.3} s from what was set"))
        }
    }
}

fn permissions(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const FILE: &CStr = c"mode";
    const MODE: u16 = 0o640;
    let (context, folder) = (on.context, scratch.folder());
    let file = context.create(folder, FILE)?;
    let accepted = context.set_mode(&file, MODE)?;
    context.close(file)?;
    let found = context.getattr(folder, FILE)?.mode;
    Ok(Answer::ok(match (accepted, found) {
        (false, _) => "refused as not supported".to_owned(),
        (true, MODE) => "kept".to_owned(),
        (true, other) => format!("accepted without effect: {MODE:03o} was set, {other:03o} is read"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selfcheck::Verdict;

    #[test]
    fn a_resolution_is_recognized_by_what_it_does_to_a_time() {
        const SECOND: i64 = 1_700_000_001_000_000_000;
        let kept = |found| {
            let answer = judge_time(found);
            assert_eq!(answer.verdict, Verdict::Ok, "{}", answer.text);
            answer.text.replace("kept to ", "")
        };
        assert_eq!(kept(GIVEN_NS), "1 ns");
        assert_eq!(kept(SECOND + 123_456_700), "100 ns");
        assert_eq!(kept(SECOND + 123_456_000), "1 µs");
        assert_eq!(kept(SECOND + 124_000_000), "1 ms", "rounded up");
        assert_eq!(kept(SECOND + 120_000_000), "10 ms");
        assert_eq!(kept(SECOND), "1 s");
        assert_eq!(kept(SECOND - 1_000_000_000), "2 s");
        assert_eq!(kept(SECOND + 1_000_000_000), "1 s", "rounded up");
    }

    #[test]
    fn a_time_that_is_not_kept_differs() {
        for other in [0, GIVEN_NS - 3_600_000_000_000, GIVEN_NS + 5_000_000_000] {
            let answer = judge_time(other);
            assert_eq!(answer.verdict, Verdict::Differs);
            assert!(answer.text.contains(" s from what was set"), "{}", answer.text);
        }
        assert!(judge_time(GIVEN_NS - 3_600_000_000_000).text.contains("-3600.000"));
    }
}
