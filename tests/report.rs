//! The report of real runs: what is printed and written, and that it names nobody.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use serde_json::Value;
use support::{Place, assert_all_ok};

const INDEX: &[&str] = &["folder-index"];

/// A place with one round on two folders.
fn measured() -> Place {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("annas-media"), place.folder("annas-photos"));
    assert_all_ok(&place.run(INDEX, &[("a", &a), ("b", &b)]).expect(0).runs());
    place
}

#[test]
fn a_report_before_the_first_day_counts_says_so_in_every_form() {
    let place = measured();
    let (page, file) = (place.path("page.html"), place.path("week.json"));
    let said = place.longhaul("report").expect(5);
    assert!(said.out.starts_with("# longhaul, week "), "{}", said.out);
    assert!(said.out.contains("2 runs of the first days"), "{}", said.out);
    place
        .longhaul("report --html")
        .word(&page)
        .word("--json")
        .word(&file)
        .expect(5)
        .complains_of(&["page.html", "week.json"]);
    let (page, file) = (fs::read_to_string(page).unwrap(), fs::read_to_string(file).unwrap());
    for text in [&said.out, &page, &file] {
        assert!(!text.contains("annas") && !text.contains(place.root().to_str().unwrap()), "{text}");
    }
    let value: Value = serde_json::from_str(&file).unwrap();
    assert_eq!((&value["kind"], &value["schema"]), (&"longhaul-exchange".into(), &1.into()));
    assert_eq!(value["targets"].as_array().unwrap().len(), 2);
}

#[test]
fn somebody_elses_file_is_shown_and_anything_else_is_refused_in_words() {
    let place = measured();
    let file = place.path("week.json");
    place.longhaul("report --json").word(&file).expect(5);
    let said = place.longhaul("report --beside").word(&file).expect(5);
    assert!(said.out.contains("## Beside others") && said.out.contains("nothing is pooled"), "{}", said.out);
    let database = place.database();
    let foreign = place.longhaul("report --beside").word(&database).expect(1);
    foreign.complains_of(&[database.to_str().unwrap(), "not JSON"]);
    let newer = place.path("newer.json");
    fs::write(&newer, r#"{"kind": "longhaul-exchange", "schema": 99}"#).unwrap();
    place
        .longhaul("report --beside")
        .word(&newer)
        .expect(1)
        .complains_of(&["newer.json", "a newer longhaul reads it"]);
    place.longhaul("report --beside").word(place.path("missing")).expect(1).complains_of(&["missing"]);
}

#[test]
fn without_a_database_there_is_nothing_to_report() {
    let place = Place::new();
    place.longhaul("report --html").word(place.path("page.html")).expect(5);
    assert!(!place.path("page.html").exists());
    place.longhaul("report --week yesterday").expect(2).complains_of(&["2026-W46"]);
}
