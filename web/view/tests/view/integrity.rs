//! Tests the screen about integrity.

use jiff::tz::TimeZone;
use longhaul_analysis::checks::integrity_lines;
use longhaul_model::{
    CacheState, DamagePattern, DataAge, MismatchReread, OtherReread, Protocol, StoredMismatch, Timestamp,
    VerifiedData, VerifiedTotal,
};
use longhaul_view::render;
use longhaul_view::screens::checks::{integrity, read_back_now};

const START: Timestamp = Timestamp::from_us(1_764_061_200_000_000);

fn total(target: &str, age: DataAge, gigabytes: u64) -> VerifiedTotal {
    let smb = Some(Protocol::Smb(Some("3.1.1".to_owned())));
    VerifiedTotal {
        target: target.parse().unwrap(),
        protocol: smb.filter(|_| target == "smb"),
        age,
        bytes: gigabytes * 1_000_000_000,
        files: gigabytes * 100,
        wire_bytes: if target == "smb" { gigabytes * 900_000_000 } else { 0 },
        first: START,
        last: START + 65 * longhaul_model::time::DAY,
    }
}

#[test]
fn one_check_tells_what_it_read_back() {
    let part = |files| VerifiedData { age: DataAge::ALL[0], bytes: files * 500_000_000, files };
    let text = read_back_now(&[part(2), part(1)], 0);
    assert_eq!(text.as_deref(), Some("3 files, 1.50 GB read back just now, 0 wrong."));
    assert!(read_back_now(&[part(1)], 2).unwrap().ends_with(", 2 wrong ranges."));
    assert_eq!(read_back_now(&[], 0), None);
}

fn mismatch() -> StoredMismatch {
    StoredMismatch {
        number: 1,
        target: "nas".parse().unwrap(),
        protocol: None,
        run: 172,
        file: "photo-batch/155-3/IMG_0042.JPG".to_owned(),
        offset: 1_048_576,
        length: 4096,
        pattern: DamagePattern::OtherFile { name: "IMG_0007.JPG".to_owned() },
        found_us: START + longhaul_model::time::DAY,
        last_found_us: START + 2 * longhaul_model::time::DAY,
        times_found: 3,
        written_us: Some(START),
        last_good_us: None,
        phase: Some("browse".to_owned()),
        cache: Some(CacheState::Cold),
        reread: MismatchReread::SameDamage,
        elsewhere: vec![OtherReread {
            target: "smb".parse().unwrap(),
            protocol: Some("SMB 3.1.1".to_owned()),
            result: MismatchReread::Correct,
        }],
    }
}

#[test]
fn ledger_is_written_out() {
    let totals = [
        total("smb", DataAge::Hours, 120),
        total("smb", DataAge::Months, 3400),
        total("nas", DataAge::Unknown, 7),
    ];
    let document = integrity(&integrity_lines(&totals, &[mismatch()]), &TimeZone::UTC);
    insta::assert_snapshot!(render::markdown::render(&document));
}

#[test]
fn empty_integrity_names_the_next_step() {
    let text = render::markdown::render(&integrity(&[], &TimeZone::UTC));
    assert!(text.contains("longhaul integrity --check"), "{text}");
}
