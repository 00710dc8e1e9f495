//! Tests of `uninstall --purge`: it removes only files that longhaul recognizes by their names, and nothing through a
//! symbolic link.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::support::{CommandOutput, Place, TINY_TREES, assert_all_ok, find_sandbox, tree};

/// Folder of source files of `incremental-backup` at the quick scale, below `local/<target>`.
const SOURCE: &str = "incremental-backup/600/folder 0000";

/// Creates a test environment with a round on target `a`, a backup source on the local disk, and log files.
fn measured() -> (Place, PathBuf) {
    let place = Place::with_tiny_trees();
    let a = place.folder("a");
    let tasks = ["folder-index", "incremental-backup"];
    assert_all_ok(&place.run(&tasks, &[("a", &a)]).expect(0).runs());
    for name in ["longhaul.log", "longhaul.log.1", "longhaul.log.3", "stderr.log"] {
        write(&logs(&place).join(name));
    }
    assert!(
        place.data().join("local/a").join(SOURCE).is_dir(),
        "the backup source is in the expected folder"
    );
    (place, a)
}

fn logs(place: &Place) -> PathBuf {
    place.path("home/state/longhaul")
}

fn config(place: &Place) -> PathBuf {
    place.path("home/config/longhaul")
}

/// Writes a file and creates its parent folders.
fn write(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "mine").unwrap();
}

/// Moves a folder and creates a symbolic link to it at the old path.
fn move_behind_a_link(folder: &Path, to: &Path) {
    fs::rename(folder, to).unwrap();
    symlink(to, folder).unwrap();
}

/// Returns all files, folders and links below a folder.
fn entries(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

/// Checks that each path is reported as left behind.
fn assert_left_behind(output: &CommandOutput, paths: &[PathBuf]) {
    for path in paths {
        output.assert_stderr(&[&format!("left behind: {}: ", path.display())]);
    }
}

/// Returns the paths that a dry run lists for removal. A listed folder is removed with everything in it.
fn listed(output: &CommandOutput) -> Vec<PathBuf> {
    let lines = output.out.lines().filter_map(|line| line.strip_prefix("would remove "));
    let path = |line: &str| {
        let path = line.split_once(": ").map_or(line, |(_, path)| path);
        PathBuf::from(path.split_once(" (").map_or(path, |(path, _)| path))
    };
    lines.map(path).collect()
}

#[test]
fn purge_leaves_a_linked_log_folder_alone() {
    let (place, _) = measured();
    let moved = place.path("moved");
    write(&logs(&place).join("letter.txt"));
    move_behind_a_link(&logs(&place), &moved);
    let before = tree::contents(&moved);
    let link = logs(&place).display().to_string();
    let shown = place.longhaul("service uninstall --purge --dry-run").expect(0);
    assert!(shown.out.contains(&format!("would leave {link}")), "{shown}");
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    output.assert_stderr(&[&link, &moved.display().to_string(), "symbolic link"]);
    assert_eq!(tree::contents(&moved), before);
    assert!(logs(&place).is_symlink() && !place.data().exists());
}

#[test]
fn purge_leaves_foreign_files_in_every_folder() {
    let (place, _) = measured();
    let names = ["mine.txt", "longhaul.log.backup", "longhaul.kept-notes.txt", "config.toml.new-mine"];
    let folders = [place.data(), config(&place), logs(&place)];
    let mine: Vec<PathBuf> = folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect();
    mine.iter().for_each(|path| write(path));
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    let left: BTreeSet<PathBuf> = folders.iter().flat_map(|folder| entries(folder)).collect();
    assert_eq!(left, mine.iter().cloned().collect());
    assert_left_behind(&output, &mine);
}

#[test]
fn purge_leaves_foreign_files_in_local() {
    let (place, a) = measured();
    let local = place.data().join("local");
    let source = local.join("a").join(SOURCE);
    let mine = [
        local.join("mine.txt"),
        local.join("photos/incremental-backup.jpg"),
        local.join("a/mine.txt"),
        source.join("mine.txt"),
        source.join("Dokument 000001 r0.dat.bak"),
    ];
    mine.iter().for_each(|path| write(path));
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    let files: Vec<PathBuf> = tree::files(&place.data()).iter().map(|path| place.data().join(path)).collect();
    assert_eq!(files.iter().collect::<BTreeSet<_>>(), mine.iter().collect());
    assert_left_behind(&output, &[&[mine[0].clone(), local.join("photos")], &mine[2..]].concat());
    assert_eq!(find_sandbox(&a), None, "the test data on the target is removed");
}

#[test]
fn purge_follows_no_link_in_local() {
    let (place, _) = measured();
    let (local, outside) = (place.data().join("local"), place.folder("outside"));
    // File names that longhaul uses itself, in a foreign folder.
    write(&outside.join(SOURCE).join("Dokument 000001 r0.dat"));
    write(&outside.join("Dokument 000002 r0.dat"));
    write(&outside.join("600/folder 0000/Dokument 000003 r0.dat"));
    let before = tree::contents(&outside);
    let links = [local.join("b"), local.join("a").join(SOURCE).join("Dokument 999999 r0.dat")];
    symlink(&outside, &links[0]).unwrap();
    symlink(outside.join("Dokument 000002 r0.dat"), &links[1]).unwrap();
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    assert_left_behind(&output, &links);
    output.assert_stderr(&["symbolic link"]);
    assert_eq!(tree::contents(&outside), before);
    assert!(links.iter().all(|link| link.is_symlink()));
}

#[test]
fn purge_removes_nothing_through_a_linked_local() {
    let (place, _) = measured();
    let (local, moved) = (place.data().join("local"), place.path("moved"));
    move_behind_a_link(&local, &moved);
    let before = tree::contents(&moved);
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    output.assert_stderr(&[&local.display().to_string(), "symbolic link"]);
    assert_eq!(tree::contents(&moved), before);
}

#[test]
fn purge_of_a_linked_data_folder_explains_the_option() {
    let (place, a) = measured();
    let moved = place.path("moved");
    move_behind_a_link(&place.data(), &moved);
    let contents = || {
        // SQLite creates two files next to a database when it reads it.
        let mut contents = tree::contents(&moved);
        contents.retain(|path, _| {
            !path.ends_with("longhaul.sqlite-shm") && !path.ends_with("longhaul.sqlite-wal")
        });
        contents
    };
    let before = contents();
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    let database = moved.join("longhaul.sqlite").display().to_string();
    output.assert_stderr(&["symbolic link", &format!("--database {database} service uninstall --purge")]);
    assert_eq!(contents().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(contents() == before);
    assert!(find_sandbox(&a).is_some(), "the sandbox stays, because the database that lists it stays");
    place.longhaul("service uninstall --purge --yes --database").arg(&database).expect(0);
    assert!(!moved.exists() || entries(&moved).is_empty());
    assert_eq!(find_sandbox(&a), None);
}

#[test]
fn purge_removes_only_the_given_config_file() {
    let (place, _) = measured();
    let (file, neighbour) = (place.path("elsewhere/my.toml"), place.path("elsewhere/config.toml"));
    write(&neighbour);
    fs::write(&file, TINY_TREES).unwrap();
    place.longhaul("service uninstall --purge --yes --config").arg(&file).expect(0);
    assert_eq!(entries(&place.path("elsewhere")), BTreeSet::from([neighbour]));
    assert!(!config(&place).exists() && !place.data().exists());
}

#[test]
fn purge_of_a_named_database_keeps_the_usual_results_and_configuration() {
    let (place, a) = measured();
    let b = place.folder("b");
    let database = place.folder("other").join("other.sqlite");
    assert_all_ok(
        &place.run(&["folder-index"], &[("b", &b)]).arg("--database").arg(&database).expect(0).runs(),
    );
    place.longhaul("service uninstall --purge --yes --database").arg(&database).expect(0);
    assert!(!database.exists() && find_sandbox(&b).is_none());
    assert!(find_sandbox(&a).is_some() && config(&place).join("config.toml").exists());
    assert_all_ok(&place.stored_runs());
}

/// The database has the only knowledge of what is on the targets.
#[test]
fn purge_with_an_unreadable_database_names_where_test_data_may_be_left() {
    let (place, a) = measured();
    place.configure(&format!("[targets.a]\npath = \"{}\"\n", a.display()));
    fs::write(place.database(), "no database").unwrap();
    let may_be = format!("{}/.longhaul-*-a: test data, if this machine measured there", a.display());
    let output = place.longhaul("service uninstall --purge --dry-run").expect(0);
    assert!(output.out.contains(&may_be) && !output.out.contains("nothing was measured"), "{output}");
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    output.assert_stderr(&["left behind", &may_be]);
    assert!(!output.out.contains("Everything except longhaul's programs was removed"), "{output}");
    assert!(find_sandbox(&a).is_some() && !place.database().exists());
}

/// A newer version can read it.
#[test]
fn purge_with_the_database_of_a_newer_version_removes_nothing() {
    let (place, a) = measured();
    Connection::open(place.database()).unwrap().execute_batch("PRAGMA user_version = 999").unwrap();
    place.longhaul("service uninstall --purge --yes").expect(1).assert_stderr(&["newer longhaul"]);
    assert!(find_sandbox(&a).is_some() && place.database().exists());
}

#[test]
fn purge_leaves_a_configuration_that_is_a_link() {
    let (place, _) = measured();
    let (link, moved) = (config(&place).join("config.toml"), place.path("kept.toml"));
    move_behind_a_link(&link, &moved);
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    output.assert_stderr(&[&link.display().to_string(), "symbolic link"]);
    assert_eq!(fs::read_to_string(moved).unwrap(), TINY_TREES);
    assert!(link.is_symlink());
}

#[test]
fn purge_keeps_user_folders_next_to_a_database() {
    let place = Place::with_tiny_trees();
    let (a, folder) = (place.folder("a"), place.folder("folder"));
    let mine = ["local/bin/tool", "local/a/mine.txt", "try/notes.txt", "mine.txt", "results.kept-1.txt"];
    let mine = mine.map(|name| folder.join(name));
    mine.iter().for_each(|path| write(path));
    let database = folder.join("results.sqlite");
    let run = place.run(&["folder-index", "incremental-backup"], &[("a", &a)]);
    assert_all_ok(&run.arg("--database").arg(&database).expect(0).runs());
    place.longhaul("service uninstall --purge --yes --database").arg(&database).expect(1);
    let files: Vec<PathBuf> = tree::files(&folder).iter().map(|path| folder.join(path)).collect();
    assert_eq!(files.iter().collect::<BTreeSet<_>>(), mine.iter().collect());
}

#[test]
fn a_dry_run_lists_exactly_what_a_purge_removes() {
    let (place, _) = measured();
    let local = place.data().join("local");
    for path in ["mine.txt", "a/incremental-backup/mine.txt", "b/mine.txt"] {
        write(&local.join(path));
    }
    write(&logs(&place).join("mine.txt"));
    write(&place.data().join("longhaul.damaged-1234.sqlite-wal"));
    write(&place.data().join("longhaul.restored.sqlite"));
    fs::create_dir_all(local.join("empty")).unwrap();
    symlink(place.root(), place.data().join("longhaul.starts")).unwrap();
    let at_first = entries(place.root());
    let mut listed = listed(&place.longhaul("service uninstall --purge --dry-run").expect(0));
    // The unit of the service manager is listed even if it does not exist.
    listed.retain(|path| !path.starts_with(place.path("home/config/systemd")));
    let before = entries(place.root());
    let removed: Vec<&PathBuf> = at_first.difference(&before).collect();
    assert_eq!(removed, Vec::<&PathBuf>::new(), "a dry run removes nothing");
    place.longhaul("service uninstall --purge --yes").expect(1);
    let after = entries(place.root());
    let gone: BTreeSet<&PathBuf> = before.difference(&after).collect();
    let goes = |path: &PathBuf| listed.iter().any(|listed| path.starts_with(listed));
    let wrong: Vec<&PathBuf> = before.iter().filter(|path| gone.contains(path) != goes(path)).collect();
    assert_eq!(wrong, Vec::<&PathBuf>::new(), "listed: {listed:#?}");
    assert!(listed.iter().all(|path| before.contains(path)), "a listed path does not exist: {listed:#?}");
}

#[test]
fn cleaning_without_a_sandbox_removes_the_local_files() {
    let place = Place::with_tiny_trees();
    let target = place.folder("a");
    assert_all_ok(&place.run(&["folder-index"], &[("a", &target)]).expect(0).runs());
    fs::remove_dir_all(find_sandbox(&target).unwrap()).unwrap();
    let local = place.data().join("local/a");
    write(&local.join(SOURCE).join("Dokument 000001 r0.dat"));
    let named = format!("{}: 1 file", local.display());
    let listed = place.longhaul("targets clean a").expect(2);
    assert!(listed.out.contains(&format!("would remove {named}")) && local.exists(), "{listed}");
    let removed = place.longhaul("targets clean a --yes").expect(0);
    assert!(removed.out.contains(&format!("removed {named}")) && !local.exists(), "{removed}");
}
