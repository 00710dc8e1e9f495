//! Error rates of the names of stalls, on simulated hours. The constants were chosen with other seeds.

use longhaul_analysis::simulation::{Injection, simulated_observations};
use longhaul_analysis::stalls::{StallCause, name_stalls};

/// Returns a number from the environment, or `default`.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// First seed; the constants were chosen with those below 1,000.
fn first_seed() -> u64 {
    number("STALLS_SEED", 1_000_000)
}

/// Returns the causes that are named in a simulated window.
fn causes(seed: u64, hours: u32, injection: Injection) -> Vec<StallCause> {
    let causes = name_stalls(&simulated_observations(seed, hours, injection));
    causes.named.into_iter().map(|named| named.cause).collect()
}

fn false_names(windows: u64, hours: u32) -> Vec<(u64, Vec<StallCause>)> {
    let named = |seed| (seed, causes(seed, hours, Injection::None));
    (first_seed()..first_seed() + windows).map(named).filter(|(_, causes)| !causes.is_empty()).collect()
}

/// Asserts that a cause is named in at least 95 % of windows, and prints how often other ones are.
fn assert_recall(injection: Injection, hours: u32) {
    let windows = number("STALLS_WINDOWS", 40);
    let (mut named, mut other) = (0, vec![]);
    for seed in first_seed()..first_seed() + windows {
        let causes = causes(seed, hours, injection);
        named += u64::from(causes.iter().any(|cause| Some(*cause) == injection.cause()));
        other.extend(causes.into_iter().filter(|cause| Some(*cause) != injection.cause()));
    }
    println!("{injection:?} in {hours} h: {named} of {windows} named; others {other:?}");
    assert!(named * 100 >= windows * 95, "{injection:?}: {named} of {windows}");
    assert!(other.len() as u64 * 100 <= windows * 5, "{injection:?}: also {other:?}");
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn a_thousand_quiet_hours_have_at_most_ten_false_names() {
    let found = false_names(1000, 1);
    println!("false names in 1,000 windows of an hour: {} {found:?}", found.len());
    assert!(found.len() <= 10, "{found:?}");
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn quiet_days_have_false_names_in_at_most_one_percent() {
    let found = false_names(100, 24);
    println!("false names in 100 windows of a day: {} {found:?}", found.len());
    assert!(found.len() <= 1, "{found:?}");
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn pulses_are_named_within_three_hours() {
    assert_recall(Injection::Pulses, 3);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn short_commits_are_named_within_eight_hours() {
    assert_recall(Injection::ShortCommit, 8);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn long_commits_are_named_within_three_days() {
    assert_recall(Injection::LongCommit, 72);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn retransmission_timeouts_are_named_within_an_hour() {
    assert_recall(Injection::Loss, 1);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn delayed_acks_are_named_within_an_hour() {
    assert_recall(Injection::DelayedAck, 1);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn spinning_up_is_named_within_a_day() {
    assert_recall(Injection::SpinUp, 24);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn hourly_backup_is_named_within_a_day() {
    assert_recall(Injection::Backup, 24);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn stalls_with_an_event_are_named_within_an_hour() {
    for cause in [StallCause::Reconnect, StallCause::Wake, StallCause::LinkChange] {
        assert_recall(Injection::Event(cause), 1);
    }
}
