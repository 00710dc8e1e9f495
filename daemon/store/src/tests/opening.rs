//! Tests of opening a database: allowed paths, file origins, settings and schema versions.

use std::path::Path;
use std::time::Duration;

use longhaul_model::{Hint, Protocol};
use rusqlite::Connection;

use super::{TestDb, mount, samples, target};
use crate::migrations::{SCHEMA_VERSION, pragma};
use crate::{Error, Reader, Store};

#[test]
fn open_creates_folders_and_keeps_the_machine_id() {
    let db = TestDb::new();
    let path = db.folder.path().join("a/b/c.sqlite");
    let first = Store::open(&path, &[]).unwrap().machine_id().to_owned();
    assert!(first.len() == 16 && first.chars().all(|c| c.is_ascii_hexdigit()));
    assert_eq!(Store::open(&path, &[]).unwrap().machine_id(), first);
    assert_eq!(Reader::open(&path).unwrap().machine_id().unwrap(), Some(first));
}

#[test]
fn store_uses_durable_sqlite_settings() {
    let store = TestDb::new().store();
    let settings =
        ["synchronous", "fullfsync", "checkpoint_fullfsync", "foreign_keys", "auto_vacuum", "user_version"]
            .map(|name| pragma(&store.connection, name).unwrap());
    assert_eq!(settings, [2, 1, 1, 1, 2, SCHEMA_VERSION]);
    let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn network_and_fuse_paths_are_refused_untouched() {
    let db = TestDb::new();
    let folder = db.folder.path().canonicalize().unwrap();
    let refused = [
        Protocol::Smb(Some("3.1.1".into())),
        Protocol::Nfs(None),
        Protocol::Fuse(Some("rclone".into())),
        Protocol::Other("ceph".into()),
        Protocol::Other("autofs".into()),
    ];
    for protocol in refused {
        let name = protocol.to_string();
        let mounts = [mount(Path::new("/"), Protocol::Local("ext4".into())), mount(&folder, protocol)];
        let error = Store::open(&folder.join("new/longhaul.sqlite"), &mounts).unwrap_err();
        assert!(matches!(&error, Error::NotLocal { file_system, .. } if *file_system == name), "{error}");
        assert!(error.one_line().contains("--database PATH"), "{error}");
        assert!(!folder.join("new").exists());
    }
    let local = [mount(&folder, Protocol::Local("apfs".into()))];
    Store::open(&folder.join("new/longhaul.sqlite"), &local).unwrap();
}

#[test]
fn symlink_to_a_network_file_system_is_refused() {
    let db = TestDb::new();
    let folder = db.folder.path().canonicalize().unwrap();
    std::fs::create_dir(folder.join("share")).unwrap();
    std::os::unix::fs::symlink(folder.join("share"), folder.join("link")).unwrap();
    let mounts = [mount(&folder.join("share"), Protocol::Afp)];
    for path in ["link/longhaul.sqlite", "link/not/yet/longhaul.sqlite"] {
        let error = Store::open(&folder.join(path), &mounts).unwrap_err();
        assert!(matches!(error, Error::NotLocal { .. }), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.join("share")).unwrap().count(), 0);
}

#[test]
fn database_of_a_newer_version_is_not_changed() {
    let db = TestDb::filled(1);
    let raw = Connection::open(db.path()).unwrap();
    raw.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    raw.close().unwrap();
    let before = std::fs::read(db.path()).unwrap();
    let error = Store::open(&db.path(), &[]).unwrap_err();
    assert!(
        matches!(error, Error::SchemaTooNew { found, known: SCHEMA_VERSION, .. } if found == SCHEMA_VERSION + 1),
        "{error}"
    );
    assert!(matches!(Reader::open(&db.path()), Err(Error::SchemaTooNew { .. })));
    assert_eq!(std::fs::read(db.path()).unwrap(), before);
}

#[test]
fn database_of_another_program_is_not_changed() {
    let db = TestDb::new();
    let raw = Connection::open(db.path()).unwrap();
    raw.execute_batch("CREATE TABLE moz_places (url TEXT); INSERT INTO moz_places VALUES ('x')").unwrap();
    raw.close().unwrap();
    let before = std::fs::read(db.path()).unwrap();
    assert!(matches!(Store::open(&db.path(), &[]), Err(Error::Foreign { .. })));
    assert!(matches!(Reader::open(&db.path()), Err(Error::Foreign { .. })));
    assert_eq!(std::fs::read(db.path()).unwrap(), before);
}

#[test]
fn reader_of_a_missing_database_names_the_next_step() {
    let db = TestDb::new();
    let error = Reader::open(&db.path()).unwrap_err();
    assert!(matches!(error, Error::NoDatabase { .. }));
    assert!(error.one_line().contains("`longhaul try`"));
    assert!(!db.path().exists());
    std::fs::write(db.path(), b"").unwrap();
    assert!(matches!(Reader::open(&db.path()), Err(Error::NoDatabase { .. })));
}

#[test]
fn copy_without_its_log_is_told_from_a_missing_database() {
    let db = TestDb::new();
    let _writer = db.writer();
    let copy = db.path().with_file_name("copy.sqlite");
    std::fs::copy(db.path(), &copy).unwrap();
    let error = Reader::open(&copy).map(drop).unwrap_err();
    assert!(error.one_line().contains("copy without the file `copy.sqlite-wal`"), "{}", error.one_line());
}

#[test]
fn reader_refuses_an_older_schema() {
    let db = TestDb::filled(0);
    let raw = Connection::open(db.path()).unwrap();
    raw.pragma_update(None, "user_version", SCHEMA_VERSION - 1).unwrap();
    assert!(matches!(Reader::open(&db.path()), Err(Error::SchemaTooOld { .. })));
}

#[test]
fn unwritable_path_is_named_in_the_error() {
    let db = TestDb::new();
    let file = db.folder.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let below = file.join("longhaul.sqlite");
    let error = Store::open(&below, &[]).unwrap_err();
    assert!(matches!(error, Error::PermissionDenied { .. }), "{error}");
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    let folder =
        [Store::open(db.folder.path(), &[]).unwrap_err(), Reader::open(db.folder.path()).unwrap_err()];
    for folder in folder {
        assert!(matches!(folder, Error::PermissionDenied { .. }), "{folder}");
        assert_eq!(folder.hint().as_deref(), Some("give a file, not a folder"), "{folder}");
    }
}

#[test]
fn concurrent_first_opens_create_one_database() {
    for _ in 0..10 {
        let db = TestDb::new();
        let open = || Store::open_with_busy_timeout(&db.path(), &[], Duration::from_secs(60)).unwrap();
        let ids: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| open().machine_id().to_owned())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}

#[test]
fn unknown_value_error_names_row_and_value() {
    let change = |sql: &str| {
        let db = TestDb::filled(2);
        Connection::open(db.path()).unwrap().execute_batch(sql).unwrap();
        db.reader().runs(&crate::RunFilter::default()).unwrap_err().to_string()
    };
    let outcome = change("UPDATE run SET outcome = 'splendid' WHERE number = 2");
    for part in ["`outcome`", "row 2", "`run`", "`splendid`"] {
        assert!(outcome.contains(part), "{outcome}");
    }
    assert!(change("UPDATE figure SET unit = 'furlong'").contains("`furlong`"));
    assert!(change("UPDATE operation SET latency = x'09'").contains("`latency`"));
    assert!(change("UPDATE run SET conditions = '['").contains("`conditions`"));
    assert!(change("UPDATE run SET protocol = '{\"family\":\"gopher\"}'").contains("gopher"));
}

#[test]
fn a_reader_cannot_write() {
    let db = TestDb::filled(1);
    let writer = db.writer();
    writer.add_run(&target(), &samples::run(1, 1), &[]).unwrap();
    assert_eq!(db.runs().len(), 2);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let raw = Connection::open_with_flags(db.path(), flags).unwrap();
    assert!(raw.execute("DELETE FROM run", []).is_err());
}

#[test]
fn failed_migration_is_reported_without_its_statements() {
    let db = TestDb::new();
    drop(db.store());
    let connection = Connection::open(db.path()).unwrap();
    // The last step but one removes columns, which can be done once.
    connection.pragma_update(None, "user_version", SCHEMA_VERSION - 2).unwrap();
    let error = Store::open(&db.path(), &[]).unwrap_err().one_line();
    assert!(error.contains("no such column") && !error.contains("ALTER TABLE"), "{error}");
}
