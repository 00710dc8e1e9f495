use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::testing::Site;

/// Creates a sandbox with the files `tree/a/ours-1` and `tree/ours-2` in a new folder, and passes it to a
/// check.
fn with_sandbox(check: impl FnOnce(&Path, &Sandbox, &TimedFs<'_>)) {
    let site = Site::new();
    let (sandbox, context) = (site.sandbox(), site.context(0));
    sandbox.record_entry("tree", &1, &context).unwrap();
    let place = site.path().join(".longhaul-m-nas/tree");
    std::fs::create_dir_all(place.join("a")).unwrap();
    std::fs::write(place.join("a/ours-1"), "12345").unwrap();
    std::fs::write(place.join("ours-2"), "123").unwrap();
    check(site.path(), &sandbox, &context);
}

fn ours(_: &str, path: &Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().starts_with("ours")
}

#[test]
fn clean_leaves_nothing_behind() {
    with_sandbox(|target, sandbox, context| {
        let listed = sandbox.clean(CleanMode::List, context, &ours).unwrap();
        assert_eq!(listed.folders, [("tree".to_owned(), 2, 8)]);
        assert!(target.join(".longhaul-m-nas/tree/ours-2").exists(), "listing must not remove files");
        let removed = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert_eq!(removed, listed);
        assert_eq!(std::fs::read_dir(target).unwrap().count(), 0);
    });
}

#[test]
fn foreign_file_and_its_parent_folders_are_kept() {
    with_sandbox(|target, sandbox, context| {
        let foreign = target.join(".longhaul-m-nas/tree/a/foreign.txt");
        std::fs::write(&foreign, "mine").unwrap();
        let report = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert_eq!((report.foreign.len(), report.sandbox_removed), (1, false));
        assert_eq!(std::fs::read_to_string(foreign).unwrap(), "mine");
        assert!(!target.join(".longhaul-m-nas/tree/ours-2").exists());
    });
}

#[test]
fn all_foreign_files_are_counted_and_some_are_listed() {
    with_sandbox(|target, sandbox, context| {
        for number in 0..30 {
            std::fs::write(target.join(format!(".longhaul-m-nas/tree/foreign-{number}")), "mine").unwrap();
        }
        let report = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert_eq!((report.foreign.len(), report.foreign_count), (MAX_FOREIGN_LISTED, 30));
    });
}

#[test]
fn folder_kept_for_a_foreign_file_can_be_cleaned_later() {
    with_sandbox(|target, sandbox, context| {
        let foreign = target.join(".longhaul-m-nas/tree/a/foreign.txt");
        std::fs::write(&foreign, "mine").unwrap();
        sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert_eq!(sandbox.manifest_entry::<u64>("tree").unwrap(), None, "what it held is gone");
        let again = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert_eq!(again.foreign, std::slice::from_ref(&foreign), "the file is reported, not its folder");
        std::fs::remove_file(foreign).unwrap();
        assert!(sandbox.clean(CleanMode::Remove, context, &ours).unwrap().sandbox_removed);
        assert_eq!(std::fs::read_dir(target).unwrap().count(), 0);
    });
}

#[test]
fn foreign_name_that_is_not_utf8_can_be_reported() {
    let foreign = vec![PathBuf::from(OsStr::from_bytes(b"/m/a-\xff"))];
    let text = serde_json::to_string(&CleanReport { foreign, ..CleanReport::default() }).unwrap();
    let report: CleanReport = serde_json::from_str(&text).unwrap();
    assert_eq!(report.foreign, [PathBuf::from("/m/a-\u{fffd}")]);
}

#[test]
fn symbolic_link_is_foreign_and_not_followed() {
    with_sandbox(|target, sandbox, context| {
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("ours-3"), "not in the sandbox").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), target.join(".longhaul-m-nas/tree/link")).unwrap();
        let report = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert_eq!(report.foreign.len(), 1);
        assert!(elsewhere.path().join("ours-3").exists());
    });
}

#[test]
fn folder_that_is_not_in_the_manifest_is_foreign() {
    with_sandbox(|target, sandbox, context| {
        std::fs::create_dir(target.join(".longhaul-m-nas/other")).unwrap();
        std::fs::write(target.join(".longhaul-m-nas/other/ours-4"), "x").unwrap();
        let report = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert!(!report.sandbox_removed);
        assert!(target.join(".longhaul-m-nas/other/ours-4").exists());
    });
}

#[test]
fn apple_double_file_is_removed_with_its_owner() {
    with_sandbox(|target, sandbox, context| {
        for name in ["tree/._ours-2", "tree/._a", "._tree", "._sandbox.json.partial"] {
            std::fs::write(target.join(".longhaul-m-nas").join(name), "xattrs").unwrap();
        }
        let listed = sandbox.clean(CleanMode::List, context, &ours).unwrap();
        assert_eq!(listed.folders, [("tree".to_owned(), 4, 20)]);
        assert!(sandbox.clean(CleanMode::Remove, context, &ours).unwrap().sandbox_removed);
        assert!(!target.join(".longhaul-m-nas").exists());
    });
}

#[test]
fn folders_that_are_nested_too_deeply_are_foreign() {
    // A process on macOS starts with a limit of 256, and each level has two open.
    crate::platform::raise_descriptor_limit().unwrap();
    with_sandbox(|target, sandbox, context| {
        let place = target.join(".longhaul-m-nas/tree");
        let folder = place.join("d/".repeat(MAX_DEPTH + 1));
        std::fs::create_dir_all(&folder).unwrap();
        let report = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
        assert_eq!(report.foreign, std::slice::from_ref(&folder));
        assert!(folder.exists() && !place.join("ours-2").exists());
    });
}

/// Returns the paths of all files below a folder, relative to the folder.
fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(&at).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else {
                files.insert(entry.path().strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn exactly_our_files_are_removed(
        paths in proptest::collection::btree_set("[ab]/[cd]/(ours|other)-[0-9]|(ours|other)-[a-z]", 0..25),
    ) {
        with_sandbox(|target, sandbox, context| {
            let place = target.join(".longhaul-m-nas/tree");
            for path in &paths {
                let path = place.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "x").unwrap();
            }
            let before = files_below(&place);
            let foreign: BTreeSet<PathBuf> = before.into_iter().filter(|path| !ours("tree", path)).collect();
            let report = sandbox.clean(CleanMode::Remove, context, &ours).unwrap();
            assert_eq!(report.sandbox_removed, foreign.is_empty());
            let remaining = if place.exists() { files_below(&place) } else { BTreeSet::new() };
            assert_eq!(remaining, foreign);
        });
    }
}
