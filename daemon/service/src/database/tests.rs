//! Tests of the open database: removed, replaced and damaged files.

use std::collections::BTreeSet;

use super::*;
use longhaul_model::{Event, Scale};
use longhaul_store::NewRound;

fn round() -> NewRound {
    NewRound::new(Timestamp::from_us(1), 1, Scale::Quick)
}

fn opened() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let (database, aside) =
        Database::open(&folder.path().join("longhaul.sqlite"), &[], Timestamp::from_us(1)).unwrap();
    assert_eq!(aside, None);
    database.writer().begin_round(round()).unwrap();
    (folder, database)
}

fn rounds(database: &Database) -> usize {
    database.reader().unwrap().rounds().unwrap().len()
}

#[test]
fn removed_database_is_written_again_with_all_its_data() {
    let (_folder, mut database) = opened();
    let machine = database.machine_id().to_owned();
    for file in wal_files(database.path()).iter().map(PathBuf::as_path).chain([database.path()]) {
        let _ = std::fs::remove_file(file);
    }
    assert_eq!(database.health(), DatabaseHealth::Missing);
    database.writer().begin_round(round()).unwrap();
    database.restore(&[]).unwrap();
    assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 2));
    assert_eq!(database.machine_id(), machine);
}

#[test]
fn replacement_file_is_adopted_and_the_old_data_is_saved() {
    let (folder, mut database) = opened();
    let other = folder.path().join("other.sqlite");
    drop(Database::open(&other, &[], Timestamp::from_us(1)).unwrap());
    remove_wal_files(database.path()).unwrap();
    std::fs::rename(&other, database.path()).unwrap();
    assert_eq!(database.health(), DatabaseHealth::Replaced);
    let saved = database.save_data(Timestamp::from_us(7)).unwrap();
    database.open_replacement(&[]).unwrap();
    assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 0));
    assert_eq!(Reader::open(&saved).unwrap().rounds().unwrap().len(), 1);
}

#[test]
fn log_of_the_old_data_is_not_applied_to_a_restored_backup() {
    let (folder, mut database) = opened();
    let backup = folder.path().join("backup.sqlite");
    database.writer().copy_to(&backup).unwrap();
    for _ in 0..30 {
        database.writer().begin_round(round()).unwrap();
    }
    std::fs::rename(&backup, database.path()).unwrap();
    // As the pages of the dashboard do, with the old log.
    let _reader = database.reader();
    let saved = database.save_data(Timestamp::from_us(7)).unwrap();
    database.open_replacement(&[]).unwrap();
    assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 1));
    assert_eq!(Reader::open(&saved).unwrap().rounds().unwrap().len(), 31);
    database.writer().begin_round(round()).unwrap();
    assert_eq!(rounds(&database), 2, "the end of the old connection takes nothing away");
}

#[test]
fn removed_log_is_written_again_with_all_its_data() {
    let (_folder, mut database) = opened();
    let [log, _] = wal_files(database.path());
    std::fs::remove_file(log).unwrap();
    assert_eq!(database.health(), DatabaseHealth::Missing);
    database.writer().begin_round(round()).unwrap();
    database.restore(&[]).unwrap();
    assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 2));
}

#[test]
fn backup_moved_over_a_linked_database_is_used() {
    let (folder, database) = opened();
    let backup = folder.path().join("backup.sqlite");
    database.writer().copy_to(&backup).unwrap();
    let (path, link) = (database.path().to_owned(), folder.path().join("link.sqlite"));
    drop(database);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let (mut database, _) = Database::open(&link, &[], Timestamp::from_us(1)).unwrap();
    database.writer().begin_round(round()).unwrap();
    std::fs::rename(&backup, &path).unwrap();
    assert_eq!(database.health(), DatabaseHealth::Replaced);
    database.open_replacement(&[]).unwrap();
    assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 1));
}

#[test]
fn log_that_came_with_a_replacement_is_kept() {
    let (folder, mut database) = opened();
    let path = folder.path().join("other.sqlite");
    let (other, _) = Database::open(&path, &[], Timestamp::from_us(1)).unwrap();
    for _ in 0..3 {
        other.writer().begin_round(round()).unwrap();
    }
    for (from, to) in std::iter::zip(
        [path.clone()].iter().chain(&wal_files(&path)),
        [database.path().to_owned()].iter().chain(&wal_files(database.path())),
    ) {
        std::fs::rename(from, to).unwrap();
    }
    database.open_replacement(&[]).unwrap();
    assert_eq!(rounds(&database), 3);
}

#[test]
fn damaged_database_is_moved_aside_and_machine_id_stays() {
    let (_folder, mut database) = opened();
    let machine = database.machine_id().to_owned();
    std::fs::write(database.path(), vec![7; 9000]).unwrap();
    assert_eq!(database.health(), DatabaseHealth::Damaged);
    let aside = database.start_new(&[], Timestamp::from_us(7)).unwrap();
    assert!(aside.ends_with("longhaul.damaged-7.sqlite") && aside.exists());
    assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 0));
    assert_eq!(database.machine_id(), machine);
}

#[test]
fn file_that_was_never_a_database_stays_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let letter = folder.path().join("letter.txt");
    std::fs::write(&letter, "Dear all,").unwrap();
    assert!(matches!(Database::open(&letter, &[], Timestamp::from_us(1)), Err(Error::Damaged { .. })));
    assert_eq!(std::fs::read_to_string(&letter).unwrap(), "Dear all,");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn database_damaged_before_the_start_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("longhaul.sqlite");
    std::fs::write(&path, vec![7; 9000]).unwrap();
    let (database, aside) = Database::open(&path, &[], Timestamp::from_us(3)).unwrap();
    assert!(aside.unwrap().exists());
    assert_eq!(database.health(), DatabaseHealth::Healthy);
}

#[test]
fn damaged_database_that_was_moved_away_is_replaced_by_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("longhaul.sqlite");
    let (whole, machine) = filled(&path);
    let (mut database, _) = Database::open(&path, &[], Timestamp::from_us(3)).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 4..].fill(0xA5);
    std::fs::write(&path, &damaged).unwrap();
    std::fs::rename(&path, folder.path().join("old.sqlite")).unwrap();
    assert!(matches!(database.restore(&[]), Err(Error::Damaged { .. })));
    database.open_replacement(&[]).unwrap();
    assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 0));
    assert_eq!(database.machine_id(), machine, "the sandboxes are found again");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("restored")), "{left:?}");
}

/// Size of a page of a new database in bytes.
const PAGE: usize = 4096;

fn event(detail: &str) -> Event {
    Event {
        target: None,
        kind: "note".to_owned(),
        detail: serde_json::json!({ "what": detail }),
        at_us: Timestamp::from_us(1),
    }
}

/// Writes a database with tables and indexes of several levels, and long values, and returns its bytes and machine id.
fn filled(path: &Path) -> (Vec<u8>, String) {
    let (database, _) = Database::open(path, &[], Timestamp::from_us(1)).unwrap();
    for number in 0..600 {
        database.writer().begin_round(round()).unwrap();
        database.writer().add_event(event(&format!("{number} {}", "long ".repeat(60)))).unwrap();
    }
    database.writer().add_event(event(&"x".repeat(3 * PAGE))).unwrap();
    let machine = database.machine_id().to_owned();
    drop(database);
    (std::fs::read(path).unwrap(), machine)
}

/// Uses a database as the service does: what writes find damaged is set aside. Returns the error of reading.
fn use_database(database: &mut Database) -> Option<Error> {
    let write = |database: &Database| {
        database.writer().begin_round(round()).and(database.writer().add_event(event("new")).map(drop))
    };
    if write(database).is_err() {
        assert_eq!(database.health(), DatabaseHealth::Damaged);
        database.start_new(&[], Timestamp::from_us(7)).unwrap();
        write(database).unwrap();
    }
    let reader = database.reader().unwrap();
    reader.rounds().err().or_else(|| reader.events(None).err())
}

#[test]
fn database_with_any_damaged_page_is_used_or_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("longhaul.sqlite");
    let (whole, machine) = filled(&path);
    let kinds: BTreeSet<u8> = whole.chunks(PAGE).skip(1).map(|page| page[0]).collect();
    assert!([0x02, 0x05, 0x0a, 0x0d].iter().all(|kind| kinds.contains(kind)), "{kinds:x?}");
    let (mut set_aside, mut kept) = (0, 0);
    for page in 0..whole.len() / PAGE {
        let mut damaged = whole.clone();
        damaged[page * PAGE..][..PAGE].fill(0xA5);
        std::fs::write(&path, &damaged).unwrap();
        let (mut database, mut aside) = Database::open(&path, &[], Timestamp::from_us(3)).unwrap();
        kept += usize::from(database.machine_id() == machine);
        let error = use_database(&mut database);
        let found_later = sibling_path(&path, "damaged-7");
        aside = aside.or_else(|| found_later.exists().then_some(found_later));
        assert!(matches!(error, None | Some(Error::Damaged { .. })), "page {page}: {error:?}");
        assert!(aside.is_none() || error.is_none(), "page {page}: the new database is whole");
        set_aside += usize::from(aside.is_some());
        drop(database);
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
    assert!(set_aside > 0, "pages that are written to are set aside");
    assert!(
        whole.len() / PAGE - kept < 10,
        "only damage of the schema and the id itself costs the machine id"
    );
}
