//! Tests the exchange file: it round-trips, invalid files are rejected with a clear message, and hosts are never
//! pooled.

use longhaul_analysis::summary::WeeklySummary;
use longhaul_model::Role;
use longhaul_view::exchange::{KIND, MAX_FILE_BYTES, SCHEMA};
use longhaul_view::{Environment, Exchange, ExchangeError, exchange, read, render, screens};
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

/// Returns the comparison of hosts as Markdown.
fn hosts(own: &WeeklySummary, others: &[Exchange]) -> String {
    render::markdown::render(&screens::hosts::hosts(own, others))
}

#[test]
fn exchange_file_round_trips() {
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
fn exchange_file_has_the_documented_keys() {
    let value: Value =
        serde_json::from_str(&exchange(&world::twenty_percent_faster(), &world::environment()).to_json())
            .unwrap();
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
fn foreign_file_is_rejected_with_a_clear_message() {
    let message = |result: Result<Exchange, ExchangeError>| result.unwrap_err().to_string();
    assert!(message(read("")).contains("not JSON"));
    assert!(message(read(&file()[..2000])).contains("its end is missing"));
    assert!(message(read("{\"schema\": 1}")).contains("its `kind` is missing"));
    assert!(message(read("[1, 2]")).contains("not from `longhaul report --json`"));
    assert!(message(changed(|value| value["kind"] = json!("speedtest"))).contains("\"speedtest\""));
    let newer = message(changed(|value| value["schema"] = json!(SCHEMA + 1)));
    assert!(
        newer.contains("a newer longhaul reads it") && newer.contains(&(SCHEMA + 1).to_string()),
        "{newer}"
    );
    assert!(message(changed(|value| value["pairs"] = json!({}))).contains("damaged"));
    assert!(message(changed(|value| value["week"] = json!("2026-W99"))).contains("2026-W46"));
    assert!(matches!(read(&" ".repeat(MAX_FILE_BYTES + 1)), Err(ExchangeError::TooLarge(_))));
}

#[test]
fn newer_version_is_detected_before_other_errors() {
    let text = json!({ "kind": KIND, "schema": 9, "all": "different" }).to_string();
    assert!(matches!(read(&text), Err(ExchangeError::UnsupportedSchema { found: 9 })));
}

#[test]
fn impossible_value_is_rejected() {
    let ratio =
        |low: f64, high: f64, days: u32| json!({ "value": 1.2, "low": low, "high": high, "days": days });
    for bad in [ratio(1.3, 1.4, 20), ratio(-0.1, 1.4, 20), ratio(1.1, 1.15, 20), ratio(1.1, 1.3, 0)] {
        let found = changed(|value| value["pairs"][0]["headline"]["ratio"] = bad.clone());
        assert!(matches!(found, Err(ExchangeError::InvalidValue(_))), "{bad}");
    }
    let without_ratio = changed(|value| value["pairs"][0]["headline"]["ratio"] = Value::Null);
    assert!(matches!(without_ratio, Err(ExchangeError::InvalidValue(_))), "a winner needs an interval");
    assert!(changed(|value| value["threshold"] = json!(0.5)).is_err());
    assert!(changed(|value| value["times"][0]["median"] = json!(-3.0)).is_err());
    assert!(changed(|value| value["targets"][0]["name"] = json!("x".repeat(5000))).is_err());
}

#[test]
fn unknown_fields_are_ignored() {
    assert!(changed(|value| value["pairs"][0]["mood"] = json!("good")).is_ok());
}

#[test]
fn hosts_are_listed_separately_and_never_pooled() {
    let own = world::twenty_percent_faster();
    let mut other = exchange(&own, &world::environment());
    other.environment.system = Some("macOS 26.1".to_owned());
    let text = hosts(&own, &[other]);
    assert!(text.contains("nothing is pooled") && text.contains("macOS 26.1"), "{text}");
    assert!(text.contains("**NFS in times of SMB**"), "{text}");
    let lines = |word: &str| text.lines().filter(|line| line.contains(&format!("| {word} |"))).count();
    assert_eq!((lines("here"), lines("there")), (14, 14), "{text}");
}

#[test]
fn pair_in_reverse_order_is_swapped() {
    let scenario = |run: world::SimulatedRun| steady(if run.target == 1 { 8.0 } else { 10.0 }, run);
    let reversed = World::new(&[("mac-nfs", Role::Share, "NFS 4.1"), ("mac-smb", Role::Share, "SMB 3.0.2")]);
    let reversed = reversed.simulate(0..28, &scenario).after_days(28);
    let text = hosts(&world::twenty_percent_faster(), &[exchange(&reversed, &Environment::default())]);
    let ratios: Vec<&str> = text.lines().filter(|line| line.contains("all tasks together")).collect();
    assert_eq!(ratios.len(), 2, "{text}");
    assert!(
        ratios.iter().all(|line| line.contains("| 1.2")),
        "NFS must take longer on both hosts: {ratios:?}"
    );
    assert!(ratios[1].contains("NFS 4.1 and SMB 3.0.2"));
}

#[test]
fn hosts_with_other_protocols_are_not_compared() {
    let others = World::new(&[("a", Role::Share, "AFP"), ("b", Role::Share, "WebDAV")]);
    let others = others.simulate(0..20, &|run| steady(5.0, run)).after_days(20);
    let text = hosts(&world::twenty_percent_faster(), &[exchange(&others, &Environment::default())]);
    assert!(text.contains("No two protocols are compared on more than one host."), "{text}");
}

proptest! {
    #[test]
    fn reading_any_text_does_not_panic(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn reading_a_damaged_file_does_not_panic(place: prop::sample::Index, with in "[0-9eE\\-\"{},null]{0,4}") {
        let mut text = file();
        let at = place.index(text.len());
        text.replace_range(at..at + 1, &with);
        let _ = read(&text);
    }
}
