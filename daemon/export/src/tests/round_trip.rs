//! Tests that an exported history is imported unchanged.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{Week, WeeklyQuery, anonymize, summarize_week};
use longhaul_model::Timestamp;
use longhaul_model::time::{DAY, HOUR};
use proptest::prelude::*;

use super::histories::{any_history, small};
use super::{FORMATS, TEXTS, archive, bytes_of, lines, read};
use crate::{Format, Skipped, SkippedUnit, Window};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn exported_history_is_imported_unchanged(history in any_history()) {
        let public = anonymize(history.clone());
        for format in FORMATS.iter().copied() {
            let imported = read(&archive(&history, format)).unwrap();
            prop_assert_eq!(&imported.skipped, &[] as &[Skipped], "{:?}", format);
            prop_assert_eq!(&imported.history, &public, "{:?}", format);
            prop_assert_eq!(archive(&imported.history, format), archive(&history, format));
        }
    }

    #[test]
    fn order_of_rows_does_not_matter(order in Just((0..53).collect::<Vec<usize>>()).prop_shuffle()) {
        for (format, heads) in [(Format::Csv, 1), (Format::Json, 0)] {
            let (head, rows) = lines(&archive(&small(), format), heads);
            let shuffled = order.iter().filter_map(|index| rows.get(*index));
            let text: String = head.iter().chain(shuffled).cloned().collect();
            let imported = read(text.as_bytes()).unwrap();
            prop_assert_eq!(imported.history, anonymize(small()));
            prop_assert_eq!(imported.skipped, []);
        }
    }
}

#[test]
fn caveat_of_a_stale_share_survives_an_export() {
    let query = WeeklyQuery {
        week: Week::of_day(small().rounds[0].day()),
        scale: None,
        since: None,
        zone: TimeZone::UTC,
    };
    let summary = summarize_week(&anonymize(small()), &query);
    assert!(summary.freshness.iter().any(|target| target.stalest().is_some()), "smb shows stale data");
    for format in FORMATS.iter().copied() {
        let imported = read(&archive(&small(), format)).unwrap().history;
        assert_eq!(summarize_week(&imported, &query), summary);
    }
}

#[test]
fn impossible_counts_of_freshness_are_skipped() {
    let json = String::from_utf8(archive(&small(), Format::Json)).unwrap();
    let imported = read(json.replace("\"not_seen\":25", "\"not_seen\":26").as_bytes()).unwrap();
    assert_eq!(imported.history.freshness.len(), 1);
    assert_eq!(imported.skipped[0].reason, "with more changes not seen or slow than changes");
}

#[test]
fn duplicate_rows_are_skipped_and_counted() {
    for format in TEXTS {
        let once = archive(&small(), format);
        let imported = read(&[once.clone(), once.clone()].concat()).unwrap();
        assert_eq!(imported.history, anonymize(small()));
        let rows = 1 + 2 + 2 + 4 + 2 + 2 + 40;
        let repeated = imported.skipped.iter().find(|skipped| skipped.reason == "repeated").unwrap();
        assert_eq!((repeated.count, repeated.unit), (rows, SkippedUnit::Row));
        assert!(repeated.to_string().starts_with("53 rows repeated (the first in line "), "{repeated}");
    }
}

#[test]
fn adjacent_windows_split_the_rounds_without_overlap() {
    let history = small();
    let middle = history.rounds[2].started_us;
    let sides = [Window { to: Some(middle), ..Window::default() }, Window { from: Some(middle), to: None }];
    for format in FORMATS.iter().copied() {
        let read_side = |side: &Window| {
            read(&bytes_of(format, |output| crate::runs(small(), side, output))).unwrap().history
        };
        let [before, after] = [read_side(&sides[0]), read_side(&sides[1])];
        assert_eq!((before.runs.len(), after.runs.len()), (20, 20));
        assert_eq!([before.runs, after.runs].concat(), history.runs);
        assert_eq!([before.rounds, after.rounds].concat(), history.rounds);
        assert_eq!((before.events.len(), after.events.len()), (2, 0));
        assert_eq!((before.freshness.len(), after.freshness.len()), (2, 0));
        assert_eq!((&before.targets, &before.epochs), (&after.targets, &after.epochs));
    }
}

#[test]
fn window_from_local_midnight_has_that_day_of_freshness() {
    let mut history = small();
    history.rounds.iter_mut().for_each(|round| round.utc_offset_seconds = -8 * 3600);
    let day = history.rounds[0].day();
    history.freshness.iter_mut().for_each(|changes| changes.day = day);
    let midnight = Timestamp::UNIX_EPOCH + u32::try_from(day).unwrap() * DAY + 8 * HOUR;
    let exported = |from| {
        let window = Window { from: Some(from), to: None };
        let bytes = bytes_of(Format::Csv, |output| crate::runs(history.clone(), &window, output));
        read(&bytes).unwrap().history.freshness.len()
    };
    assert_eq!((exported(midnight), exported(midnight + HOUR)), (2, 0));
}

#[test]
fn legend_explains_exactly_the_columns() {
    let (head, rows) = lines(&archive(&small(), Format::Csv), 1);
    let header: serde_json::Value =
        serde_json::from_str(&lines(&archive(&small(), Format::Json), 0).1[0]).unwrap();
    let legend = header["detail"]["columns"].as_object().unwrap();
    let columns: Vec<&str> = head[0].trim().split(',').collect();
    assert!(columns.iter().all(|column| legend.contains_key(*column)) && columns.len() == legend.len());
    assert!(rows.iter().any(|row| row.contains(",2026-11-02T07:00:00+01:00,1793599200000000,")), "{rows:?}");
}

#[test]
fn file_saved_by_a_spreadsheet_is_imported() {
    let csv = String::from_utf8(archive(&small(), Format::Csv)).unwrap();
    let saved = format!("\u{feff}{}", csv.replace('\n', "\r\n"));
    assert_eq!(read(saved.as_bytes()).unwrap().history, anonymize(small()));
}
