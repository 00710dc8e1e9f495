//! Checks of the scratch folder as a whole: free space, listing, `._` files that a Mac adds, change notification.

use std::ffi::CStr;

use crate::error::RunError;
use crate::platform::{self, EntryKind, FINDER_INFO, ListingFields, SYSTEM, Space, System, TEST_XATTR};

use super::check::{
    CheckAnswer, CheckOutcome, CheckedTarget, TargetCheck, TargetCheckMethod, milliseconds_since,
};
use super::scratch::{ListedEntry, ScratchFolder};
use super::scratch_names::numbered_name;

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck::named("space", TargetCheckMethod::Files(space))
        .linux("a size, and not more free space than that", "statvfs(3)")
        .macos("a size, and not more free space than that", "xnu bsd/sys/mount.h:110, struct statfs"),
    TargetCheck::named("folder listing", TargetCheckMethod::Files(listing))
        .linux("every name once, each of type file", "getdents(2)")
        .macos(
            "every name once, each of type file and with its size, and no ._ file",
            "man getattrlistbulk(2); xnu bsd/vfs/vfs_attrlist.c:4254",
        ),
    TargetCheck::named("._ files", TargetCheckMethod::Files(apple_doubles)).linux("none", "xattr(7)").macos(
        "none, or one for each file with attributes, renamed and removed together with the file",
        "xnu bsd/vfs/vfs_xattr.c:1572, default_setxattr; bsd/vfs/kpi_vfs.c:4714, vn_rename",
    ),
    TargetCheck::named("folder watch", TargetCheckMethod::Files(watch))
        .linux("reports a change made by this machine", "inotify(7)")
        .macos(
            "not available: an open folder would prevent its share from being ejected",
            "xnu bsd/vfs/vfs_subr.c:3001, vflush",
        ),
];

fn space(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    Ok(judge_space(on.context.space(scratch.folder())?))
}

fn judge_space(Space { free_bytes, total_bytes }: Space) -> CheckAnswer {
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let text = format!("{:.1} GB free of {:.1} GB", gigabytes(free_bytes), gigabytes(total_bytes));
    CheckAnswer::new(CheckOutcome::from(total_bytes > 0 && free_bytes <= total_bytes), text)
}

/// Number of files in the listing. It is small, so that the check is quick on a distant share.
const ENTRIES: usize = 8;

fn listing(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    for number in 0..ENTRIES {
        scratch.write(&numbered_name("entry-", number), &vec![7; number], on.context)?;
    }
    // The folder is listed until it is complete, then once more: only the last listing is timed, so that the time
    // does not include waiting for new files to become visible.
    let is_complete = |listed: &[ListedEntry]| own_entries(listed) == ENTRIES;
    scratch.list_until(on.context, ListingFields::FinderAttributes, is_complete)?;
    let start = platform::monotonic_ns();
    let listed = scratch.list(on.context, ListingFields::FinderAttributes)?;
    Ok(judge_listing(&listed, &milliseconds_since(start)))
}

/// Returns the number of test files that are listed exactly once.
fn own_entries(listed: &[ListedEntry]) -> usize {
    let times = |number| listed.iter().filter(|entry| entry.name == numbered_name("entry-", number)).count();
    (0..ENTRIES).filter(|number| times(*number) == 1).count()
}

fn judge_listing(listed: &[ListedEntry], time: &str) -> CheckAnswer {
    let named = |number| listed.iter().filter(move |entry| entry.name == numbered_name("entry-", number));
    let found = own_entries(listed);
    let wrong_size = (0..ENTRIES)
        .filter(|number| named(*number).any(|entry| entry.size.is_some_and(|size| size != *number as u64)));
    let wrong_size = wrong_size.count();
    let apple_doubles = listed.iter().filter(|entry| entry.is_apple_double()).count();
    let others =
        listed.len() - apple_doubles - (0..ENTRIES).map(|number| named(number).count()).sum::<usize>();
    let kinds = listed.iter().filter(|entry| entry.kind == EntryKind::File).count();
    let sizes = if listed.iter().any(|entry| entry.size.is_some()) { "with sizes" } else { "without sizes" };
    let text = format!(
        "{found} of {ENTRIES} names in {time}, {kinds} listed as files, {sizes}, {wrong_size} wrong; \
         {apple_doubles} ._ files, {others} others"
    );
    let is_whole = found == ENTRIES && wrong_size + apple_doubles + others == 0;
    // gvfs does not report the type of an entry; longhaul then requests the type with a separate call.
    let unknown = listed.iter().filter(|entry| entry.kind == EntryKind::Unknown).count();
    CheckAnswer::new(CheckOutcome::from(is_whole && kinds + unknown == listed.len()), text)
}

/// Number of files that get an extended attribute: half of them Finder info, half a test attribute of longhaul.
const MARKED_FILES: usize = 4;

/// Numbers of `._` files (AppleDouble) after each step of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct AppleDoubleCounts {
    /// Number of files whose extended attribute was accepted.
    marked: usize,
    /// Number of `._` files after the attributes were set.
    after_setting: usize,
    /// True if the `._` file of a renamed file was renamed as well.
    renamed: bool,
    /// Number of `._` files after all files were removed.
    after_removal: usize,
}

fn apple_doubles(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    let mut counts = AppleDoubleCounts::default();
    for number in 0..MARKED_FILES {
        counts.marked += usize::from(create_with_attribute(on, scratch, number)?);
    }
    let apple_doubles = || -> Result<Vec<ListedEntry>, RunError> {
        let listed = scratch.list(on.context, ListingFields::Names)?;
        Ok(listed.into_iter().filter(ListedEntry::is_apple_double).collect())
    };
    counts.after_setting = apple_doubles()?.len();
    let folder = scratch.folder();
    on.context.rename(folder, &numbered_name("marked-", 0), c"moved")?;
    counts.renamed = apple_doubles()?.iter().any(|entry| entry.name.as_c_str() == c"._moved");
    scratch.unlink(c"moved", on.context)?;
    for number in 1..MARKED_FILES {
        scratch.unlink(&numbered_name("marked-", number), on.context)?;
    }
    counts.after_removal = apple_doubles()?.len();
    Ok(judge_apple_doubles(SYSTEM, counts))
}

/// Creates a file with an extended attribute; returns `false` if the file system does not support the attribute.
fn create_with_attribute(
    on: &CheckedTarget<'_>,
    scratch: &ScratchFolder,
    number: usize,
) -> Result<bool, RunError> {
    let name = numbered_name("marked-", number);
    let file = on.context.create(scratch.folder(), &name)?;
    let marked = match number % 2 {
        0 => on.context.setxattr(&file, FINDER_INFO, &finder_info()),
        _ => on.context.setxattr(&file, TEST_XATTR, b"note"),
    };
    on.context.close(file)?;
    marked
}

/// Returns Finder info with a file type and a creator. It is not all zeros, because a Mac does not store Finder
/// info of zeros.
pub fn finder_info() -> [u8; platform::FINDER_INFO_BYTES] {
    let mut info = [0; platform::FINDER_INFO_BYTES];
    info[..8].copy_from_slice(b"TEXTlgha");
    info
}

fn judge_apple_doubles(system: System, counts: AppleDoubleCounts) -> CheckAnswer {
    let AppleDoubleCounts { marked, after_setting, renamed, after_removal } = counts;
    let accepted = format!("{marked} of {MARKED_FILES} files accepted attributes");
    if after_setting + after_removal == 0 {
        return CheckAnswer::ok(format!("none; {accepted}"));
    }
    let moved = if renamed { "renamed with the file" } else { "not renamed with the file" };
    let text = format!(
        "{after_setting} after setting attributes, {moved}, {after_removal} after removing the files; {accepted}"
    );
    let is_appledouble = after_setting == marked && renamed && after_removal == 0;
    CheckAnswer::new(CheckOutcome::from(system == System::MacOs && is_appledouble), text)
}

fn watch(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const NAME: &CStr = c"changed";
    let Some(watch) = on.context.watch_folder(scratch.folder())? else {
        return Ok(CheckAnswer::new(CheckOutcome::from(SYSTEM == System::MacOs), "not available"));
    };
    scratch.write(NAME, b"x", on.context)?;
    let is_reported = watch.has_changed(|_| false);
    let text = if is_reported { "reports a change" } else { "created, but does not report a change" };
    Ok(CheckAnswer::new(CheckOutcome::from(is_reported), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_free_space_than_the_size_differs() {
        let judged = |free_bytes, total_bytes| judge_space(Space { free_bytes, total_bytes }).verdict;
        assert_eq!(judged(5, 10), CheckOutcome::Ok);
        assert_eq!((judged(11, 10), judged(0, 0)), (CheckOutcome::Differs, CheckOutcome::Differs));
    }

    fn complete_listing() -> Vec<ListedEntry> {
        let entry = |number| ListedEntry {
            name: numbered_name("entry-", number),
            kind: EntryKind::File,
            size: Some(number as u64),
        };
        (0..ENTRIES).map(entry).collect()
    }

    #[test]
    fn listing_with_every_name_once_is_as_expected() {
        assert_eq!(judge_listing(&complete_listing(), "1 ms").verdict, CheckOutcome::Ok);
        let mut without_types = complete_listing();
        without_types[3].kind = EntryKind::Unknown;
        without_types.iter_mut().for_each(|entry| entry.size = None);
        let answer = judge_listing(&without_types, "1 ms");
        assert_eq!(answer.verdict, CheckOutcome::Ok, "{}", answer.text);
        assert!(answer.text.contains("7 listed as files, without sizes"), "{}", answer.text);
    }

    #[test]
    fn wrong_listing_differs() {
        let differs = |change: fn(&mut Vec<ListedEntry>)| {
            let mut listed = complete_listing();
            change(&mut listed);
            let answer = judge_listing(&listed, "1 ms");
            assert_eq!(answer.verdict, CheckOutcome::Differs, "{}", answer.text);
            answer.text
        };
        assert!(differs(|listed| drop(listed.pop())).starts_with("7 of 8"));
        differs(|listed| listed.push(listed[0].clone()));
        differs(|listed| listed[2].size = Some(9));
        differs(|listed| listed[2].kind = EntryKind::Folder);
        let apple_double =
            differs(|listed| listed.push(ListedEntry { name: c"._entry-1".to_owned(), ..listed[1].clone() }));
        assert!(apple_double.contains("1 ._ files, 0 others"), "{apple_double}");
        let other =
            differs(|listed| listed.push(ListedEntry { name: c".DS_Store".to_owned(), ..listed[1].clone() }));
        assert!(other.contains("0 ._ files, 1 others"), "{other}");
    }

    #[test]
    fn apple_double_files_are_expected_only_on_a_mac() {
        let counts = AppleDoubleCounts { marked: 4, after_setting: 4, renamed: true, after_removal: 0 };
        assert_eq!(judge_apple_doubles(System::MacOs, counts).verdict, CheckOutcome::Ok);
        assert_eq!(judge_apple_doubles(System::Linux, counts).verdict, CheckOutcome::Differs);
        for other in [
            AppleDoubleCounts { after_setting: 8, ..counts },
            AppleDoubleCounts { renamed: false, ..counts },
            AppleDoubleCounts { after_removal: 1, ..counts },
        ] {
            assert_eq!(judge_apple_doubles(System::MacOs, other).verdict, CheckOutcome::Differs, "{other:?}");
        }
        let none = AppleDoubleCounts { marked: 4, ..AppleDoubleCounts::default() };
        assert_eq!(judge_apple_doubles(System::MacOs, none).verdict, CheckOutcome::Ok);
        assert_eq!(judge_apple_doubles(System::Linux, none).verdict, CheckOutcome::Ok);
    }
}
