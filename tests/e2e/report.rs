//! Tests of the report of real runs: its formats, and that `--anonymous` contains no names.

use std::fs;

use crate::support::{Place, assert_all_ok};
use serde_json::Value;

const INDEX: &[&str] = &["folder-index"];

/// Creates a test environment with one round on two folders.
fn measured() -> Place {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("annas-media"), place.folder("annas-photos"));
    assert_all_ok(&place.run(INDEX, &[("a", &a), ("b", &b)]).expect(0).runs());
    place
}

#[test]
fn report_in_the_warm_up_says_so_in_every_format() {
    let place = measured();
    let (page, file) = (place.path("page.html"), place.path("week.json"));
    let output = place.longhaul("report --format md --anonymous").expect(5);
    assert!(output.out.starts_with("# longhaul, week "), "{}", output.out);
    assert!(output.out.contains("2 runs in the warm-up"), "{}", output.out);
    for (format, path) in [("html", &page), ("json", &file)] {
        let written =
            place.longhaul("report --anonymous --format").arg(format).arg("--output").arg(path).expect(5);
        written.assert_stderr(&[path.file_name().unwrap().to_str().unwrap()]);
    }
    let (page, file) = (fs::read_to_string(page).unwrap(), fs::read_to_string(file).unwrap());
    for text in [&output.out, &page, &file] {
        assert!(!text.contains("annas") && !text.contains(place.root().to_str().unwrap()), "{text}");
    }
    let value: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(value["targets"].as_array().unwrap().len(), 2);
    place.longhaul("report 2999-W10").expect(2).assert_stderr(&["there is no week 2999-W10 yet"]);
}

#[test]
fn report_in_a_file_has_no_colours_and_its_format() {
    let place = measured();
    for name in ["week.txt", "week.html", "week.md"] {
        place.longhaul("report --verbose --output").arg(place.path(name)).expect(5);
    }
    let [text, page, markdown] =
        ["week.txt", "week.html", "week.md"].map(|name| fs::read_to_string(place.path(name)).unwrap());
    assert!(text.starts_with("longhaul, week ") && !text.contains('\u{1b}'), "{text}");
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert!(markdown.starts_with("# longhaul, week "), "{markdown}");
}

#[test]
fn report_as_a_picture_is_a_png_file() {
    let place = measured();
    let picture = place.path("week.png");
    place.longhaul("report --format png").expect(2).assert_stderr(&["--output FILE"]);
    place.longhaul("report --format png --output").arg(&picture).expect(5);
    let bytes = fs::read(picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n") && bytes.len() > 5_000, "{} bytes", bytes.len());
}

#[test]
fn report_does_not_overwrite_a_database() {
    let place = measured();
    let before = fs::read(place.database()).unwrap();
    for format in ["md", "png"] {
        let over = place.longhaul("report --format").arg(format).arg("--output").arg(place.database());
        over.expect(2).assert_stderr(&["is a database", "--output FILE"]);
        assert!(fs::read(place.database()).unwrap() == before, "{format}: the file is unchanged");
    }
}

#[test]
fn report_without_a_database_exits_with_code_5() {
    let place = Place::new();
    place.longhaul("report --format html --output").arg(place.path("page.html")).expect(5);
    assert!(!place.path("page.html").exists());
    place.longhaul("report yesterday").expect(2).assert_stderr(&["2026-W46"]);
}
