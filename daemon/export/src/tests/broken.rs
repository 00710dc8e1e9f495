//! What is broken, foreign, newer or edited: an error or a statement, never a panic, never silence.

use longhaul_measure::summary::{History, public};
use proptest::prelude::*;

use super::histories::small;
use super::{FORMATS, archive, lines, read};
use crate::{Error, Format};

/// The archive as CSV, with a text replaced that has to be in it.
fn edited(from: &str, to: &str) -> Vec<u8> {
    edited_in(Format::Csv, from, to)
}

fn edited_in(format: Format, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(archive(&small(), format)).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1).into_bytes()
}

fn left_out(bytes: &[u8]) -> Vec<String> {
    let imported = read(bytes).unwrap_or_else(|error| panic!("{error}"));
    imported.left_out.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_cut_anywhere_is_refused_or_says_what_is_missing() {
    let history =
        History { rounds: small().rounds[..1].to_vec(), runs: small().runs[..10].to_vec(), ..small() };
    for format in FORMATS.iter().copied() {
        let whole = archive(&history, format);
        for length in 0..whole.len() {
            match read(&whole[..length]) {
                Err(Error::Foreign { .. } | Error::Damaged { .. }) => {}
                Err(other) => panic!("{format:?} cut at {length}: {other}"),
                // Of JSON Lines the last line break may be missing.
                Ok(imported) if imported.left_out.is_empty() => {
                    assert_eq!((imported.history, length), (public(history.clone()), whole.len() - 1));
                }
                Ok(imported) => assert!(imported.history.runs.len() < 10),
            }
        }
    }
}

#[test]
fn a_duration_that_is_none_leaves_its_run_out() {
    for bad in ["NaN", "0", "0.0", "-1.5", "inf", "-inf", "1e999", "soon", ""] {
        let said = left_out(&edited(",3.3333333333333335,", &format!(",{bad},")));
        assert_eq!(said, ["1 row with a duration that is not a positive number (line 13)"], "{bad}");
        let said = left_out(&edited(",1.3333333333333333,", &format!(",{bad},")));
        assert_eq!(said.is_empty(), bad.is_empty(), "a time that is not there is not known: {said:?}");
    }
    for bad in ["null", "0", "-1", "\"NaN\"", "[]", "1e400"] {
        let said = left_out(&edited_in(
            Format::Json,
            "\"seconds\":3.3333333333333335",
            &format!("\"seconds\":{bad}"),
        ));
        assert!(!said.is_empty(), "{bad}");
    }
}

#[test]
fn rows_of_one_number_that_differ_are_an_error_that_names_their_lines() {
    let (head, rows) = lines(&archive(&small(), Format::Csv), 1);
    let last = rows.last().unwrap();
    let text = [head.concat(), rows.concat(), last.replace(",ok,", ",void,")].concat();
    let error = read(text.as_bytes()).unwrap_err().to_string();
    for part in ["export", "line 52 and line 53", "run 40", "differ"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let text = [head.concat(), rows.concat(), last.clone()].concat();
    assert_eq!(left_out(text.as_bytes()), ["1 row twice (line 53)"]);
}

#[test]
fn names_of_a_newer_longhaul_are_left_out_by_name() {
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
        (",started,", ",begun,", "48 values in the column `begun`, which this longhaul does not know"),
    ] {
        let said = left_out(&edited(from, to));
        assert!(said.iter().any(|said| said.starts_with(why)), "{why}: {said:?}");
    }
    let said = left_out(&edited_in(Format::Json, "{\"record\":\"run\"", "{\"record\":\"run\",\"mood\":1"));
    assert_eq!(said, ["1 value in the column `mood`, which this longhaul does not know (line 12)"]);
}

#[test]
fn a_newer_schema_and_a_foreign_file_are_told_apart() {
    let newer = read(&edited_in(Format::Json, "\"schema\":1", "\"schema\":2")).unwrap_err();
    assert!(matches!(newer, Error::Newer { found: 2, known: 1, .. }), "{newer}");
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
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("longhaul export runs"), "{error}");
    }
    let damaged: [&[u8]; 2] = [b"PAR1", b"PAR1xxxxxxxxxxxxPAR1"];
    for bytes in damaged {
        let error = read(bytes).unwrap_err();
        let is_without = matches!(error, Error::WithoutParquet) && cfg!(not(feature = "parquet"));
        assert!(matches!(error, Error::Damaged { .. }) || is_without, "{error}");
    }
}

#[test]
fn what_belongs_to_nothing_is_left_out() {
    let (head, rows) = lines(&archive(&small(), Format::Csv), 1);
    let without = |begin: &str| {
        let rows = rows.iter().filter(|row| !row.starts_with(begin)).cloned();
        left_out(head.iter().cloned().chain(rows).collect::<String>().as_bytes()).join("; ")
    };
    assert!(without("round,2,").contains("10 rows of a round that the file does not hold"));
    assert!(without("epoch,2,").contains("20 rows of an epoch that the file does not hold"));
    let said = without("target,1,");
    assert!(said.contains("21 rows of a target that the file does not hold"), "{said}");
    assert!(
        said.contains("1 row that the file announces and does not hold (of the kind `target`)"),
        "{said}"
    );
    assert_eq!(without("run,7,"), "1 row that the file announces and does not hold (of the kind `run`)");
}

#[test]
fn premises_that_make_no_sense_are_an_error() {
    for (from, to) in [
        ("\"threshold\":1.1", "\"threshold\":0.9"),
        ("\"records\":{", "\"records\":7,\"x\":{"),
        ("\"mix\":{}", "\"mix\":{\"a\":-1}"),
    ] {
        assert!(matches!(read(&edited_in(Format::Json, from, to)), Err(Error::Damaged { .. })), "{to}");
    }
}

#[test]
fn a_row_without_end_is_refused_before_it_fills_the_memory() {
    for begin in ["record,\"", "{\"record\":\""] {
        let error = read(&[begin.as_bytes(), &vec![b'x'; 40 << 20]].concat()).unwrap_err();
        assert!(error.to_string().contains("longer than 16 MiB"), "{error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let _ = read(&[b"record,number,seconds\n", &bytes[..]].concat());
        let _ = read(&[b"{\"record\":\"premises\"}\n{", &bytes[..]].concat());
    }

    #[test]
    fn a_changed_byte_ends_without_panic(
        format in proptest::sample::select(FORMATS.to_vec()), place in any::<proptest::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = archive(&small(), format);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = read(&bytes);
    }
}
