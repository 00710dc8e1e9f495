//! Tests of the report about a pair.

use longhaul_view::render::markdown;
use longhaul_view::screens::pair::{PairReport, pair};

use crate::world::{World, steady};

#[test]
fn rounds_won_are_shown_from_the_first_round_that_counts() {
    let shown = |days: i64| {
        let weekly = World::pair().simulate(0..days, &|run| steady(5.0, run)).after_days(days);
        let report = PairReport { weekly: &weekly, pair: &weekly.pairs[0], since: None, around: None };
        markdown::render(&pair(&report))
    };
    let (warm_up, later) = (shown(2), shown(3));
    assert!(warm_up.contains("Typical time: smb ") && !warm_up.contains("Rounds won"), "{warm_up}");
    assert!(later.contains("Rounds won: smb "), "{later}");
}
