//! What `uninstall --purge` may remove: files that longhaul recognizes by their names, and nothing through a link.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use support::{Place, Said, TINY_TREES, assert_all_ok, find_arena, tree};

/// The source files of `incremental-backup` at the quick scale, below the folder of a target in `local`.
const SOURCE: &str = "incremental-backup/600/folder 0000";

/// A home in which a round was made on the target `a`, with a log and a source on the local disk.
fn measured() -> (Place, PathBuf) {
    let place = Place::with_tiny_trees();
    let a = place.folder("a");
    let tasks = ["folder-index", "incremental-backup"];
    assert_all_ok(&place.run(&tasks, &[("a", &a)]).expect(0).runs());
    for name in ["longhaul.log", "longhaul.log.1", "longhaul.log.3", "stderr.log"] {
        write(&logs(&place).join(name));
    }
    assert!(place.data().join("local/a").join(SOURCE).is_dir(), "the source is where this test looks for it");
    (place, a)
}

fn logs(place: &Place) -> PathBuf {
    place.path("home/state/longhaul")
}

fn config(place: &Place) -> PathBuf {
    place.path("home/config/longhaul")
}

/// Writes a file and the folders that lead to it.
fn write(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "mine").unwrap();
}

/// Moves a folder away, and leaves a link to it in its place.
fn move_behind_a_link(folder: &Path, to: &Path) {
    fs::rename(folder, to).unwrap();
    symlink(to, folder).unwrap();
}

/// Everything below a folder, links and folders too.
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

/// Checks that each path is said to be left behind.
fn names_all(said: &Said, paths: &[PathBuf]) {
    for path in paths {
        said.complains_of(&[&format!("left behind: {}: ", path.display())]);
    }
}

/// The paths that a dry run says will go; those that are folders go with everything in them.
fn listed(said: &Said) -> Vec<PathBuf> {
    let lines = said.out.lines().filter_map(|line| line.strip_prefix("would remove "));
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
    let shown = place.longhaul("uninstall --purge --dry-run").expect(0);
    assert!(shown.out.contains(&format!("would leave {link}")), "{shown}");
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    said.complains_of(&[&link, &moved.display().to_string(), "symbolic link"]);
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
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    let left: BTreeSet<PathBuf> = folders.iter().flat_map(|folder| entries(folder)).collect();
    assert_eq!(left, mine.iter().cloned().collect());
    names_all(&said, &mine);
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
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    let files: Vec<PathBuf> = tree::files(&place.data()).iter().map(|path| place.data().join(path)).collect();
    assert_eq!(files.iter().collect::<BTreeSet<_>>(), mine.iter().collect());
    names_all(&said, &[&[mine[0].clone(), local.join("photos")], &mine[2..]].concat());
    assert_eq!(find_arena(&a), None, "the test data on the target is gone all the same");
}

#[test]
fn purge_follows_no_link_in_local() {
    let (place, _) = measured();
    let (local, outside) = (place.data().join("local"), place.folder("outside"));
    // Names that longhaul itself gives to files, in a folder that is not its own.
    write(&outside.join(SOURCE).join("Dokument 000001 r0.dat"));
    write(&outside.join("Dokument 000002 r0.dat"));
    write(&outside.join("600/folder 0000/Dokument 000003 r0.dat"));
    let before = tree::contents(&outside);
    let links = [local.join("b"), local.join("a").join(SOURCE).join("Dokument 999999 r0.dat")];
    symlink(&outside, &links[0]).unwrap();
    symlink(outside.join("Dokument 000002 r0.dat"), &links[1]).unwrap();
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    names_all(&said, &links);
    said.complains_of(&["symbolic link"]);
    assert_eq!(tree::contents(&outside), before);
    assert!(links.iter().all(|link| link.is_symlink()));
}

#[test]
fn purge_removes_nothing_through_a_linked_local() {
    let (place, _) = measured();
    let (local, moved) = (place.data().join("local"), place.path("moved"));
    move_behind_a_link(&local, &moved);
    let before = tree::contents(&moved);
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    said.complains_of(&[&local.display().to_string(), "symbolic link"]);
    assert_eq!(tree::contents(&moved), before);
}

#[test]
fn purge_of_a_linked_database_folder_says_how() {
    let (place, a) = measured();
    let moved = place.path("moved");
    move_behind_a_link(&place.data(), &moved);
    let contents = || {
        // SQLite keeps two files beside a database that is read.
        let mut contents = tree::contents(&moved);
        contents.retain(|path, _| {
            !path.ends_with("longhaul.sqlite-shm") && !path.ends_with("longhaul.sqlite-wal")
        });
        contents
    };
    let before = contents();
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    let database = moved.join("longhaul.sqlite").display().to_string();
    said.complains_of(&["symbolic link", &format!("--database {database} uninstall --purge")]);
    assert!(contents() == before);
    assert!(find_arena(&a).is_some(), "the database that knows of it stays");
    place.longhaul("uninstall --purge --yes --database").word(&database).expect(1);
    assert_eq!(entries(&moved), BTreeSet::new());
    assert_eq!(find_arena(&a), None);
}

#[test]
fn purge_removes_a_configuration_elsewhere_and_no_neighbour() {
    let (place, _) = measured();
    let (file, neighbour) = (place.path("elsewhere/my.toml"), place.path("elsewhere/config.toml"));
    write(&neighbour);
    fs::write(&file, TINY_TREES).unwrap();
    place.longhaul("uninstall --purge --yes --config").word(&file).expect(0);
    assert_eq!(entries(&place.path("elsewhere")), BTreeSet::from([neighbour]));
    assert!(!config(&place).exists() && !place.data().exists());
}

#[test]
fn purge_leaves_a_configuration_that_is_a_link() {
    let (place, _) = measured();
    let (link, kept) = (config(&place).join("config.toml"), place.path("kept.toml"));
    move_behind_a_link(&link, &kept);
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    said.complains_of(&[&link.display().to_string(), "symbolic link"]);
    assert_eq!(fs::read_to_string(kept).unwrap(), TINY_TREES);
    assert!(link.is_symlink());
}

#[test]
fn purge_spares_the_users_folders_beside_a_database() {
    let place = Place::with_tiny_trees();
    let (a, beside) = (place.folder("a"), place.folder("beside"));
    let mine = ["local/bin/tool", "local/a/mine.txt", "try/notes.txt", "mine.txt", "results.kept-1.txt"];
    let mine = mine.map(|name| beside.join(name));
    mine.iter().for_each(|path| write(path));
    let database = beside.join("results.sqlite");
    let run = place.run(&["folder-index", "incremental-backup"], &[("a", &a)]);
    assert_all_ok(&run.word("--database").word(&database).expect(0).runs());
    place.longhaul("uninstall --purge --yes --database").word(&database).expect(1);
    let files: Vec<PathBuf> = tree::files(&beside).iter().map(|path| beside.join(path)).collect();
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
    let mut listed = listed(&place.longhaul("uninstall --purge --dry-run").expect(0));
    // What the system's service manager keeps is removed whether it is there or not.
    listed.retain(|path| !path.starts_with(place.path("home/config/systemd")));
    let before = entries(place.root());
    assert!(before.is_superset(&at_first), "a dry run removes nothing");
    place.longhaul("uninstall --purge --yes").expect(1);
    let after = entries(place.root());
    let gone: BTreeSet<&PathBuf> = before.difference(&after).collect();
    let goes = |path: &PathBuf| listed.iter().any(|listed| path.starts_with(listed));
    let wrong: Vec<&PathBuf> = before.iter().filter(|path| gone.contains(path) != goes(path)).collect();
    assert_eq!(wrong, Vec::<&PathBuf>::new(), "listed: {listed:#?}");
    assert!(
        listed.iter().all(|path| before.contains(path)),
        "nothing is listed that is not there: {listed:#?}"
    );
}
