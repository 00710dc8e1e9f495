//! The file for somebody else: it reads back as itself, and what it is not is said.

use longhaul_measure::model::Role;
use longhaul_report::exchange::{KIND, LARGEST, SCHEMA};
use longhaul_report::{Environment, Exchange, ExchangeError, beside, exchange, read};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{self, World, steady};

fn file() -> String {
    exchange(&world::last_week(), &world::environment()).to_json()
}

fn changed(change: impl Fn(&mut Value)) -> Result<Exchange, ExchangeError> {
    let mut value: Value = serde_json::from_str(&file()).unwrap();
    change(&mut value);
    read(&value.to_string())
}

#[test]
fn a_file_reads_back_as_itself() {
    let weekly = world::last_week();
    let own = exchange(&weekly, &world::environment());
    assert_eq!(read(&own.to_json()).unwrap(), own);
    assert_eq!((own.pairs.len(), own.targets.len(), own.schema), (3, 4, SCHEMA));
    assert_eq!(
        own.pairs[0].headline.as_ref().unwrap().ratio,
        weekly.pairs[0].headline.as_ref().unwrap().ratio
    );
}

#[test]
fn the_form_is_as_it_was_agreed() {
    let value: Value =
        serde_json::from_str(&exchange(&world::a_fifth(), &world::environment()).to_json()).unwrap();
    let keys = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let shape = [
        keys(&value),
        keys(&value["environment"]),
        keys(&value["targets"][0]),
        keys(&value["pairs"][0]),
        keys(&value["pairs"][0]["tasks"][0]),
        keys(&value["pairs"][0]["tasks"][0]["ratio"]),
        keys(&value["times"][0]),
        keys(&value["scores"][0]),
    ];
    insta::assert_debug_snapshot!(shape);
}

#[test]
fn what_is_no_such_file_is_refused_in_words() {
    let said = |result: Result<Exchange, ExchangeError>| result.unwrap_err().to_string();
    assert!(said(read("")).contains("not JSON"));
    assert!(said(read(&file()[..2000])).contains("its end is missing"));
    assert!(said(read("{\"schema\": 1}")).contains("its `kind` is missing"));
    assert!(said(read("[1, 2]")).contains("not from `longhaul report --json`"));
    assert!(said(changed(|value| value["kind"] = json!("speedtest"))).contains("\"speedtest\""));
    let newer = said(changed(|value| value["schema"] = json!(SCHEMA + 1)));
    assert!(
        newer.contains("a newer longhaul reads it") && newer.contains(&(SCHEMA + 1).to_string()),
        "{newer}"
    );
    assert!(said(changed(|value| value["pairs"] = json!({}))).contains("damaged"));
    assert!(said(changed(|value| value["week"] = json!("2026-W99"))).contains("2026-W46"));
    assert!(matches!(read(&" ".repeat(LARGEST + 1)), Err(ExchangeError::TooLarge(_))));
}

#[test]
fn a_newer_form_is_called_newer_even_if_nothing_else_is_known_of_it() {
    let text = json!({ "kind": KIND, "schema": 9, "all": "different" }).to_string();
    assert!(matches!(read(&text), Err(ExchangeError::Newer { found: 9 })));
}

#[test]
fn a_figure_that_cannot_be_is_refused() {
    let ratio =
        |low: f64, high: f64, days: u32| json!({ "value": 1.2, "low": low, "high": high, "days": days });
    for bad in [ratio(1.3, 1.4, 20), ratio(-0.1, 1.4, 20), ratio(1.1, 1.15, 20), ratio(1.1, 1.3, 0)] {
        let found = changed(|value| value["pairs"][0]["headline"]["ratio"] = bad.clone());
        assert!(matches!(found, Err(ExchangeError::Impossible(_))), "{bad}");
    }
    let bare = changed(|value| value["pairs"][0]["headline"]["ratio"] = Value::Null);
    assert!(matches!(bare, Err(ExchangeError::Impossible(_))), "no winner without its interval");
    assert!(changed(|value| value["threshold"] = json!(0.5)).is_err());
    assert!(changed(|value| value["times"][0]["median"] = json!(-3.0)).is_err());
    assert!(changed(|value| value["targets"][0]["name"] = json!("x".repeat(5000))).is_err());
}

#[test]
fn a_file_may_hold_more_than_is_known_here() {
    assert!(changed(|value| value["pairs"][0]["mood"] = json!("good")).is_ok());
}

#[test]
fn hosts_stand_side_by_side_and_are_never_pooled() {
    let own = world::a_fifth();
    let mut other = exchange(&own, &world::environment());
    other.environment.system = Some("macOS 26.1".to_owned());
    let text = beside::markdown(&own, &[other]);
    assert!(text.contains("nothing is pooled") && text.contains("macOS 26.1"), "{text}");
    assert!(text.contains("**NFS in times of SMB**"), "{text}");
    let lines = |word: &str| text.lines().filter(|line| line.contains(&format!("| {word} |"))).count();
    assert_eq!((lines("here"), lines("there")), (14, 14), "{text}");
}

#[test]
fn a_pair_that_stands_the_other_way_round_is_turned() {
    let story = |moment: world::Moment| steady(if moment.target == 1 { 8.0 } else { 10.0 }, moment);
    let turned = World::new(&[("mac-nfs", Role::Share, "NFS 4.1"), ("mac-smb", Role::Share, "SMB 3.0.2")]);
    let turned = turned.live(0..28, &story).after_days(28);
    let text = beside::markdown(&world::a_fifth(), &[exchange(&turned, &Environment::default())]);
    let ratios: Vec<&str> = text.lines().filter(|line| line.contains("all tasks together")).collect();
    assert_eq!(ratios.len(), 2, "{text}");
    assert!(ratios.iter().all(|line| line.contains("| 1.2")), "NFS takes longer on both: {ratios:?}");
    assert!(ratios[1].contains("NFS 4.1 and SMB 3.0.2"));
}

#[test]
fn other_protocols_do_not_meet() {
    let others = World::new(&[("a", Role::Share, "AFP"), ("b", Role::Share, "WebDAV")]);
    let others = others.live(0..20, &|moment| steady(5.0, moment)).after_days(20);
    let text = beside::markdown(&world::a_fifth(), &[exchange(&others, &Environment::default())]);
    assert!(text.contains("No two protocols are compared on more than one host."), "{text}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn a_file_with_a_hole_is_read_or_refused_without_panic(place: prop::sample::Index, with in "[0-9eE\\-\"{},null]{0,4}") {
        let mut text = file();
        let at = place.index(text.len());
        text.replace_range(at..at + 1, &with);
        let _ = read(&text);
    }
}
