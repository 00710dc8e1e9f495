//! Tests of the report about a pair.

use longhaul_view::render::markdown;
use longhaul_view::screens::pair::{PairReport, pair};

use crate::world::{World, steady};

/// Returns the report after this many days.
fn shown(days: i64) -> String {
    let weekly = World::pair().simulate(0..days, &|run| steady(5.0, run)).after_days(days);
    let report = PairReport { weekly: &weekly, pair: &weekly.pairs[0], since: None, around: None };
    markdown::render(&pair(&report))
}

#[test]
fn missing_days_are_stated_once_for_the_pair() {
    let text = shown(2);
    assert_eq!(text.matches("A verdict needs ").count(), 1, "{text}");
}

#[test]
fn no_heading_of_the_first_days_is_without_content() {
    let text = shown(1);
    assert!(text.contains("**\n\n-") && !text.contains("**\n\n**"), "{text}");
}

#[test]
fn rounds_won_are_shown_from_the_first_round_that_counts() {
    let (warm_up, later) = (shown(2), shown(3));
    assert!(warm_up.contains("Typical time: smb ") && !warm_up.contains("Rounds won"), "{warm_up}");
    assert!(later.contains("Rounds won: smb "), "{later}");
}
