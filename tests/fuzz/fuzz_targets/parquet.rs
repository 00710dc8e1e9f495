//! Fuzzes the reading of Parquet files: the import of an archive and the check of a collection's file. Bytes of a real file are
//! changed, because random bytes are no Parquet.
#![no_main]

use std::fs::File;
use std::path::Path;
use std::sync::LazyLock;

use longhaul_demo::machine::{MachineSpec, fill_machine};
use longhaul_export::fleet::{FileLocation, FleetTable, inspect};
use longhaul_export::{Format, Output, Window, read_bytes};
use longhaul_model::Timestamp;
use longhaul_store::Reader;

/// An archive of two rounds.
static ARCHIVE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("longhaul.sqlite");
    fill_machine(&path, &MachineSpec { days: 1, rounds_per_day: 2, ..MachineSpec::small(1, 0.1) }).unwrap();
    let history = Reader::open(&path).unwrap().history().unwrap();
    let archive = folder.path().join("archive.parquet");
    let writer = Box::new(File::create(&archive).unwrap());
    let output = Output { format: Format::Parquet, writer, name: archive.display().to_string() };
    longhaul_export::runs(history, &Window::default(), output).unwrap();
    let bytes = std::fs::read(&archive).unwrap();
    assert!(bytes.len() <= 1 << 16, "each byte can be changed: {}", bytes.len());
    bytes
});

libfuzzer_sys::fuzz_target!(|changes: Vec<(u16, u8)>| {
    let mut bytes = ARCHIVE.clone();
    let length = bytes.len();
    for (at, byte) in changes {
        bytes[usize::from(at) % length] = byte;
    }
    if let Ok(imported) = read_bytes(&bytes, Path::new("archive")) {
        let _ = imported.skipped.iter().map(ToString::to_string).collect::<Vec<_>>();
    }
    let place = FileLocation {
        table: FleetTable::Runs,
        source: "0123456789abcdef",
        now: Timestamp::from_us(1 << 50),
    };
    let _ = inspect(&bytes, &place);
});
