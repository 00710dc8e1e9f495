//! Where a database may be, and whose it may be.

use std::path::Path;
use std::time::Duration;

use longhaul_measure::model::Protocol;
use rusqlite::Connection;

use super::{Place, mount, samples, target};
use crate::migrations::{KNOWN, pragma};
use crate::{Error, Reader, Store};

#[test]
fn the_folder_is_made_and_the_machine_keeps_its_id() {
    let place = Place::new();
    let path = place.folder.path().join("a/b/c.sqlite");
    let first = Store::open(&path, &[]).unwrap().machine_id().to_owned();
    assert!(first.len() == 16 && first.chars().all(|c| c.is_ascii_hexdigit()));
    assert_eq!(Store::open(&path, &[]).unwrap().machine_id(), first);
    assert_eq!(Reader::open(&path).unwrap().machine_id().unwrap(), Some(first));
}

#[test]
fn what_is_acknowledged_is_on_disk_by_these_settings() {
    let store = Place::new().store();
    let settings =
        ["synchronous", "fullfsync", "checkpoint_fullfsync", "foreign_keys", "auto_vacuum", "user_version"]
            .map(|name| pragma(&store.connection, name).unwrap());
    assert_eq!(settings, [2, 1, 1, 1, 2, KNOWN]);
    let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_network_or_user_space_file_system_is_refused_by_name_before_it_is_touched() {
    let place = Place::new();
    let folder = place.folder.path().canonicalize().unwrap();
    let refused =
        [Protocol::Smb(Some("3.1.1".into())), Protocol::Nfs(None), Protocol::Fuse(Some("rclone".into()))];
    for protocol in refused {
        let name = protocol.to_string();
        let mounts = [mount(Path::new("/"), Protocol::Local("ext4".into())), mount(&folder, protocol)];
        let error = Store::open(&folder.join("made/longhaul.sqlite"), &mounts).unwrap_err();
        assert!(matches!(&error, Error::NotLocal { file_system, .. } if *file_system == name), "{error}");
        assert!(error.to_string().contains("--database PATH"), "{error}");
        assert!(!folder.join("made").exists());
    }
    let local = [mount(&folder, Protocol::Local("apfs".into()))];
    Store::open(&folder.join("made/longhaul.sqlite"), &local).unwrap();
}

#[test]
fn a_link_does_not_hide_a_network_file_system() {
    let place = Place::new();
    let folder = place.folder.path().canonicalize().unwrap();
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
fn a_database_from_a_newer_longhaul_is_left_alone() {
    let place = Place::filled(1);
    let raw = Connection::open(place.database()).unwrap();
    raw.pragma_update(None, "user_version", KNOWN + 1).unwrap();
    raw.close().unwrap();
    let before = std::fs::read(place.database()).unwrap();
    let error = Store::open(&place.database(), &[]).unwrap_err();
    assert!(matches!(error, Error::Newer { found, known: KNOWN, .. } if found == KNOWN + 1), "{error}");
    assert!(matches!(Reader::open(&place.database()), Err(Error::Newer { .. })));
    assert_eq!(std::fs::read(place.database()).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let place = Place::new();
    let raw = Connection::open(place.database()).unwrap();
    raw.execute_batch("CREATE TABLE moz_places (url TEXT); INSERT INTO moz_places VALUES ('x')").unwrap();
    raw.close().unwrap();
    let before = std::fs::read(place.database()).unwrap();
    assert!(matches!(Store::open(&place.database(), &[]), Err(Error::Foreign { .. })));
    assert!(matches!(Reader::open(&place.database()), Err(Error::Foreign { .. })));
    assert_eq!(std::fs::read(place.database()).unwrap(), before);
}

#[test]
fn without_a_database_the_reader_says_how_to_get_one_and_makes_none() {
    let place = Place::new();
    let error = Reader::open(&place.database()).unwrap_err();
    assert!(matches!(error, Error::NoDatabase { .. }));
    assert!(error.to_string().contains("`longhaul try`"));
    assert!(!place.database().exists());
    std::fs::write(place.database(), b"").unwrap();
    assert!(matches!(Reader::open(&place.database()), Err(Error::NoDatabase { .. })));
}

#[test]
fn a_schema_that_only_the_service_may_bring_up_to_date_is_named_by_the_reader() {
    let place = Place::filled(0);
    let raw = Connection::open(place.database()).unwrap();
    raw.pragma_update(None, "user_version", KNOWN - 1).unwrap();
    assert!(matches!(Reader::open(&place.database()), Err(Error::Older { .. })));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let place = Place::new();
    let file = place.folder.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let below = file.join("longhaul.sqlite");
    let error = Store::open(&below, &[]).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    let folder = Store::open(place.folder.path(), &[]).unwrap_err();
    assert!(matches!(folder, Error::Denied { .. }), "{folder}");
    let folder = Reader::open(place.folder.path()).unwrap_err();
    assert!(matches!(folder, Error::Denied { .. }), "{folder}");
}

#[test]
fn first_openings_at_once_agree_on_one_database() {
    for _ in 0..10 {
        let place = Place::new();
        let open = || Store::open_with_patience(&place.database(), &[], Duration::from_secs(60)).unwrap();
        let ids: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| open().machine_id().to_owned())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}

#[test]
fn a_name_that_this_program_does_not_know_is_an_error_with_row_and_value() {
    let change = |sql: &str| {
        let place = Place::filled(2);
        Connection::open(place.database()).unwrap().execute_batch(sql).unwrap();
        place.reader().runs(&crate::RunFilter::default()).unwrap_err().to_string()
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
    let place = Place::filled(1);
    let writer = place.writer();
    writer.add_run(&target(), &samples::run(1, 1)).unwrap();
    assert_eq!(place.runs().len(), 2);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let raw = Connection::open_with_flags(place.database(), flags).unwrap();
    assert!(raw.execute("DELETE FROM run", []).is_err());
}
