//! Tests with damaged, foreign, newer or edited files: every problem is an error or is reported as skipped, and
//! nothing panics.

use longhaul_model::{Hint, History};

use longhaul_analysis::summary::anonymize;
use proptest::prelude::*;

use super::histories::small;
use super::{FORMATS, archive, lines, read};
use crate::{Error, Format};

/// Returns the archive as CSV with the first occurrence of `from` replaced by `to`. Panics if `from` is not in
/// it.
fn edited(from: &str, to: &str) -> Vec<u8> {
    edited_in(Format::Csv, from, to)
}

fn edited_in(format: Format, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(archive(&small(), format)).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1).into_bytes()
}

fn skipped(bytes: &[u8]) -> Vec<String> {
    let imported = read(bytes).unwrap_or_else(|error| panic!("{error}"));
    imported.skipped.iter().map(ToString::to_string).collect()
}

#[test]
fn truncated_file_is_refused_or_reports_missing_rows() {
    let history =
        History { rounds: small().rounds[..1].to_vec(), runs: small().runs[..10].to_vec(), ..small() };
    for format in FORMATS.iter().copied() {
        let whole = archive(&history, format);
        for length in 0..whole.len() {
            match read(&whole[..length]) {
                Err(Error::NotAnArchive { .. } | Error::Damaged { .. }) => {}
                Err(other) => panic!("{format:?} cut at {length}: {other}"),
                // Complete except for the last line break, which JSON Lines does not need.
                Ok(imported) if imported.skipped.is_empty() => {
                    assert_eq!((imported.history, length), (anonymize(history.clone()), whole.len() - 1));
                }
                Ok(imported) => assert!(imported.history.runs.len() < 10),
            }
        }
    }
}

#[test]
fn run_with_an_invalid_duration_is_skipped() {
    for bad in ["NaN", "0", "0.0", "-1.5", "inf", "-inf", "1e999", "soon", ""] {
        let reasons = skipped(&edited(",3.3333333333333335,", &format!(",{bad},")));
        assert_eq!(reasons, ["1 row with a duration that is not a positive number (line 15)"], "{bad}");
        let reasons = skipped(&edited(",1.3333333333333333,", &format!(",{bad},")));
        assert_eq!(reasons.is_empty(), bad.is_empty(), "an empty time means unknown: {reasons:?}");
    }
    for bad in ["null", "0", "-1", "\"NaN\"", "[]", "1e400"] {
        let reasons = skipped(&edited_in(
            Format::Json,
            "\"seconds\":3.3333333333333335",
            &format!("\"seconds\":{bad}"),
        ));
        assert!(!reasons.is_empty(), "{bad}");
    }
}

#[test]
fn conflicting_rows_are_an_error_that_names_both_lines() {
    let (head, rows) = lines(&archive(&small(), Format::Csv), 1);
    let last = rows.last().unwrap();
    let text = [head.concat(), rows.concat(), last.replace(",ok,", ",void,")].concat();
    let error = read(text.as_bytes()).unwrap_err().one_line();
    for part in ["export", "line 54 and line 55", "run 40", "differ"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let text = [head.concat(), rows.concat(), last.clone()].concat();
    assert_eq!(skipped(text.as_bytes()), ["1 row repeated (line 55)"]);
}

#[test]
fn unknown_names_are_skipped_and_reported() {
    for (from, to, why) in [
        (
            ",photo-batch,",
            ",video-scrub,",
            "1 row with the workload `video-scrub`, which this longhaul does not know",
        ),
        (
            ",quick,ok,",
            ",quick,melted,",
            "1 row with the outcome `melted`, which this longhaul does not know",
        ),
        ("\nevent,", "\nsample,", "1 row of the kind `sample`, which this longhaul does not know"),
        (",started,", ",begun,", "50 values in the column `begun`, which this longhaul does not know"),
    ] {
        let reasons = skipped(&edited(from, to));
        assert!(reasons.iter().any(|reason| reason.starts_with(why)), "{why}: {reasons:?}");
    }
    let reasons = skipped(&edited_in(Format::Json, "{\"record\":\"run\"", "{\"record\":\"run\",\"mood\":1"));
    assert_eq!(reasons, ["1 value in the column `mood`, which this longhaul does not know (line 14)"]);
}

#[test]
fn newer_schema_and_foreign_file_are_different_errors() {
    let newer = read(&edited_in(Format::Json, "\"schema\":1", "\"schema\":2")).unwrap_err();
    assert!(matches!(newer, Error::UnsupportedSchema { found: 2, known: 1, .. }), "{newer}");
    let foreign: [&[u8]; 8] = [
        b"",
        b"  \n",
        b"a,b\n1,2\n",
        b"{\"a\":1}\n",
        b"SQLite format 3\0",
        b"record\n",
        b"\xff\xfe\0\0",
        b"[{\"record\":1}]",
    ];
    for bytes in foreign {
        let error = read(bytes).unwrap_err();
        assert!(matches!(error, Error::NotAnArchive { .. }), "{error}");
        assert!(error.to_string().contains("longhaul export runs"), "{error}");
    }
    let damaged: [&[u8]; 2] = [b"PAR1", b"PAR1xxxxxxxxxxxxPAR1"];
    for bytes in damaged {
        let error = read(bytes).unwrap_err();
        let is_disabled = matches!(error, Error::ParquetDisabled) && cfg!(not(feature = "parquet"));
        assert!(matches!(error, Error::Damaged { .. }) || is_disabled, "{error}");
    }
}

#[test]
fn rows_with_missing_references_are_skipped() {
    let (head, rows) = lines(&archive(&small(), Format::Csv), 1);
    let without = |prefix: &str| {
        let rows = rows.iter().filter(|row| !row.starts_with(prefix)).cloned();
        skipped(head.iter().cloned().chain(rows).collect::<String>().as_bytes()).join("; ")
    };
    assert!(without("round,2,").contains("10 rows of a round that is missing from the file"));
    assert!(without("epoch,2,").contains("21 rows of an epoch that is missing from the file"));
    let reasons = without("target,1,");
    assert!(reasons.contains("21 rows of a target that is missing from the file"), "{reasons}");
    assert!(reasons.contains("1 row missing, although the header counts them (kind `target`)"), "{reasons}");
    assert_eq!(without("run,7,"), "1 row missing, although the header counts them (kind `run`)");
}

#[test]
fn invalid_header_is_an_error() {
    for (from, to) in [
        ("\"threshold\":1.1", "\"threshold\":0.9"),
        ("\"records\":{", "\"records\":7,\"x\":{"),
        ("\"mix\":{}", "\"mix\":{\"a\":-1}"),
    ] {
        assert!(matches!(read(&edited_in(Format::Json, from, to)), Err(Error::Damaged { .. })), "{to}");
    }
}

#[test]
fn endless_row_is_refused_at_16_mib() {
    for begin in ["record,\"", "{\"record\":\""] {
        let error = read(&[begin.as_bytes(), &vec![b'x'; 40 << 20]].concat()).unwrap_err();
        assert!(error.to_string().contains("longer than 16 MiB"), "{error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let _ = read(&[b"record,number,seconds\n", &bytes[..]].concat());
        let _ = read(&[b"{\"record\":\"header\"}\n{", &bytes[..]].concat());
    }

    #[test]
    fn changed_byte_is_read_without_panic(
        format in proptest::sample::select(FORMATS.to_vec()), position in any::<proptest::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = archive(&small(), format);
        let position = position.index(bytes.len());
        bytes[position] = byte;
        let _ = read(&bytes);
    }
}
