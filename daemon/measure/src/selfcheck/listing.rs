//! The scratch folder seen from above: its space, its listing, the files that a Mac adds to it, and its changes.

use std::ffi::CStr;

use crate::error::RunError;
use crate::platform::{self, EntryKind, FINDER_INFO, NOTE_ATTRIBUTE, SYSTEM, Space, System, Wanted};

use super::scratch::{Listed, numbered};
use super::{
    Answer, Ask, CheckedTarget, Expectation, Expectations, Scratch, TargetCheck, milliseconds_since,
};

/// The calls of this group.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck {
        call: "space",
        expected: Expectations {
            linux: Expectation { text: "a size, and no more free than that", source: "statvfs(3)" },
            macos: Expectation {
                text: "a size, and no more free than that",
                source: "xnu bsd/sys/mount.h, struct statfs",
            },
        },
        ask: Ask::Files(space),
    },
    TargetCheck {
        call: "folder listing",
        expected: Expectations {
            linux: Expectation { text: "every name once, each a file", source: "getdents(2)" },
            macos: Expectation {
                text: "every name once, each a file with its size, and no ._ file",
                source: "man getattrlistbulk(2); xnu bsd/vfs/vfs_attrlist.c",
            },
        },
        ask: Ask::Files(listing),
    },
    TargetCheck {
        call: "._ files",
        expected: Expectations {
            linux: Expectation { text: "none", source: "xattr(7)" },
            macos: Expectation {
                text: "none, or one for each file with attributes, renamed and removed with it",
                source: "xnu bsd/vfs/vfs_xattr.c, default_setxattr; bsd/vfs/kpi_vfs.c, vn_rename",
            },
        },
        ask: Ask::Files(twins),
    },
    TargetCheck {
        call: "folder watch",
        expected: Expectations {
            linux: Expectation { text: "made, and hears a change by this machine", source: "inotify(7)" },
            macos: Expectation {
                text: "not offered: an open folder would keep its share from being ejected",
                source: "xnu bsd/vfs/vfs_subr.c, vflush",
            },
        },
        ask: Ask::Files(watch),
    },
];

fn space(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    Ok(judge_space(on.context.space(scratch.folder())?))
}

fn judge_space(Space { free_bytes, total_bytes }: Space) -> Answer {
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let text = format!("{:.1} GB free of {:.1} GB", gigabytes(free_bytes), gigabytes(total_bytes));
    Answer::expect(total_bytes > 0 && free_bytes <= total_bytes, text)
}

/// Files in the listing. Few, so that a share far away is not asked for long.
const ENTRIES: usize = 8;

fn listing(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    for number in 0..ENTRIES {
        scratch.write(&numbered("entry-", number), &vec![7; number], on.context)?;
    }
    // Two looks: the time of the second is that of one listing, whatever the first waited for.
    let is_whole = |listed: &[Listed]| own_entries(listed) == ENTRIES;
    scratch.list_until(on.context, Wanted::FinderAttributes, is_whole)?;
    let began = platform::monotonic_ns();
    let listed = scratch.list(on.context, Wanted::FinderAttributes)?;
    Ok(judge_listing(&listed, &milliseconds_since(began)))
}

/// How many of the files are listed exactly once.
fn own_entries(listed: &[Listed]) -> usize {
    let times = |number| listed.iter().filter(|entry| entry.name == numbered("entry-", number)).count();
    (0..ENTRIES).filter(|number| times(*number) == 1).count()
}

fn judge_listing(listed: &[Listed], took: &str) -> Answer {
    let named = |number| listed.iter().filter(move |entry| entry.name == numbered("entry-", number));
    let found = own_entries(listed);
    let wrong_size = (0..ENTRIES)
        .filter(|number| named(*number).any(|entry| entry.size.is_some_and(|size| size != *number as u64)));
    let wrong_size = wrong_size.count();
    let twins = listed.iter().filter(|entry| entry.is_twin()).count();
    let others = listed.len() - twins - (0..ENTRIES).map(|number| named(number).count()).sum::<usize>();
    let kinds = listed.iter().filter(|entry| entry.kind == EntryKind::File).count();
    let sizes = if listed.iter().any(|entry| entry.size.is_some()) { "with sizes" } else { "without sizes" };
    let text = format!(
        "{found} of {ENTRIES} names in {took}, {kinds} told to be files, {sizes}, {wrong_size} wrong; {twins} ._ files, \
         {others} others"
    );
    let is_whole = found == ENTRIES && wrong_size + twins + others == 0;
    // gvfs leaves the kind open; then longhaul asks for it.
    let unknown = listed.iter().filter(|entry| entry.kind == EntryKind::Unknown).count();
    Answer::expect(is_whole && kinds + unknown == listed.len(), text)
}

/// Files that get attributes: half of them Finder info, half one of longhaul's own.
const MARKED: usize = 4;

/// How many `._` files there were after each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Twins {
    /// Files whose attribute was accepted.
    marked: usize,
    /// After the attributes were set.
    after_setting: usize,
    /// Whether one file's twin had its new name after the file was renamed.
    renamed: bool,
    /// After all files were removed.
    after_removal: usize,
}

fn twins(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    let mut seen = Twins::default();
    for number in 0..MARKED {
        seen.marked += usize::from(mark(on, scratch, number)?);
    }
    let twins = || -> Result<Vec<Listed>, RunError> {
        let listed = scratch.list(on.context, Wanted::Names)?;
        Ok(listed.into_iter().filter(Listed::is_twin).collect())
    };
    seen.after_setting = twins()?.len();
    let folder = scratch.folder();
    on.context.rename((folder, &numbered("marked-", 0)), (folder, c"moved"))?;
    seen.renamed = twins()?.iter().any(|entry| entry.name.as_c_str() == c"._moved");
    scratch.unlink(c"moved", on.context)?;
    for number in 1..MARKED {
        scratch.unlink(&numbered("marked-", number), on.context)?;
    }
    seen.after_removal = twins()?.len();
    Ok(judge_twins(SYSTEM, seen))
}

/// Makes a file and gives it an attribute; `false` where the file system refuses it.
fn mark(on: &CheckedTarget<'_>, scratch: &Scratch, number: usize) -> Result<bool, RunError> {
    let name = numbered("marked-", number);
    let file = on.context.create(scratch.folder(), &name)?;
    let marked = match number % 2 {
        0 => on.context.setxattr(&file, FINDER_INFO, &finder_info()),
        _ => on.context.setxattr(&file, NOTE_ATTRIBUTE, b"note"),
    };
    on.context.close(file)?;
    marked
}

/// Finder info with a type and a creator: of zeros alone a Mac makes nothing.
pub fn finder_info() -> [u8; platform::FINDER_INFO_BYTES] {
    let mut info = [0; platform::FINDER_INFO_BYTES];
    info[..8].copy_from_slice(b"TEXTlgha");
    info
}

fn judge_twins(system: System, seen: Twins) -> Answer {
    let Twins { marked, after_setting, renamed, after_removal } = seen;
    let of = format!("{marked} of {MARKED} files took attributes");
    if after_setting + after_removal == 0 {
        return Answer::ok(format!("none; {of}"));
    }
    let moved = if renamed { "renamed with its file" } else { "not renamed with its file" };
    let text =
        format!("{after_setting} after setting, {moved}, {after_removal} after removing the files; {of}");
    let is_appledouble = after_setting == marked && renamed && after_removal == 0;
    Answer::expect(system == System::MacOs && is_appledouble, text)
}

fn watch(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const NAME: &CStr = c"changed";
    let Some(watch) = on.context.watch_folder(scratch.folder())? else {
        return Ok(Answer::expect(SYSTEM == System::MacOs, "not offered"));
    };
    scratch.write(NAME, b"x", on.context)?;
    let hears = watch.changed(|_| false);
    Ok(Answer::expect(hears, if hears { "hears a change" } else { "made, but hears no change" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selfcheck::Verdict;

    #[test]
    fn more_free_than_there_is_differs() {
        let judged = |free_bytes, total_bytes| judge_space(Space { free_bytes, total_bytes }).verdict;
        assert_eq!(judged(5, 10), Verdict::Ok);
        assert_eq!((judged(11, 10), judged(0, 0)), (Verdict::Differs, Verdict::Differs));
    }

    fn whole() -> Vec<Listed> {
        let entry = |number| Listed {
            name: numbered("entry-", number),
            kind: EntryKind::File,
            size: Some(number as u64),
        };
        (0..ENTRIES).map(entry).collect()
    }

    #[test]
    fn a_listing_with_every_name_once_is_as_expected() {
        assert_eq!(judge_listing(&whole(), "1 ms").verdict, Verdict::Ok);
        let mut open = whole();
        open[3].kind = EntryKind::Unknown;
        open.iter_mut().for_each(|entry| entry.size = None);
        let open = judge_listing(&open, "1 ms");
        assert_eq!(open.verdict, Verdict::Ok, "{}", open.text);
        assert!(open.text.contains("7 told to be files, without sizes"), "{}", open.text);
    }

    #[test]
    fn a_listing_that_lies_differs() {
        let differs = |change: fn(&mut Vec<Listed>)| {
            let mut listed = whole();
            change(&mut listed);
            let answer = judge_listing(&listed, "1 ms");
            assert_eq!(answer.verdict, Verdict::Differs, "{}", answer.text);
            answer.text
        };
        assert!(differs(|listed| drop(listed.pop())).starts_with("7 of 8"));
        differs(|listed| listed.push(listed[0].clone()));
        differs(|listed| listed[2].size = Some(9));
        differs(|listed| listed[2].kind = EntryKind::Folder);
        let twin =
            differs(|listed| listed.push(Listed { name: c"._entry-1".to_owned(), ..listed[1].clone() }));
        assert!(twin.contains("1 ._ files, 0 others"), "{twin}");
        let other =
            differs(|listed| listed.push(Listed { name: c".DS_Store".to_owned(), ..listed[1].clone() }));
        assert!(other.contains("0 ._ files, 1 others"), "{other}");
    }

    #[test]
    fn twins_follow_their_files_on_a_mac_and_are_not_there_on_linux() {
        let twins = Twins { marked: 4, after_setting: 4, renamed: true, after_removal: 0 };
        assert_eq!(judge_twins(System::MacOs, twins).verdict, Verdict::Ok);
        assert_eq!(judge_twins(System::Linux, twins).verdict, Verdict::Differs);
        for other in [
            Twins { after_setting: 8, ..twins },
            Twins { renamed: false, ..twins },
            Twins { after_removal: 1, ..twins },
        ] {
            assert_eq!(judge_twins(System::MacOs, other).verdict, Verdict::Differs, "{other:?}");
        }
        let none = Twins { marked: 4, ..Twins::default() };
        assert_eq!(judge_twins(System::MacOs, none).verdict, Verdict::Ok);
        assert_eq!(judge_twins(System::Linux, none).verdict, Verdict::Ok);
    }
}
