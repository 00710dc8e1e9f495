//! Tests what the screens of a week say about changes made elsewhere.

use std::time::Duration;

use longhaul_analysis::summary::{KindFreshness, WeeklySummary};
use longhaul_model::{ChangeKind, FreshnessDay};
use longhaul_view::json;
use longhaul_view::page::first_screen::first_screen;
use longhaul_view::render::markdown;
use longhaul_view::screens::checks::statements;
use longhaul_view::screens::{brief, recommendation};

use crate::world::{World, steady};

/// Returns four weeks in which smb is faster, with this many of 25 new files not seen through each target.
fn weekly(not_seen: [u64; 2]) -> WeeklySummary {
    let mut world =
        World::pair().simulate(0..28, &|run| steady(if run.target == 0 { 8.0 } else { 10.0 }, run));
    let day = world.history.rounds[0].day();
    for (place, not_seen) in not_seen.into_iter().enumerate() {
        world.history.freshness.push(FreshnessDay {
            target: world.history.targets[place].name.clone(),
            epoch: place as i64 + 1,
            kind: ChangeKind::NewFile,
            day,
            changes: 25,
            not_seen,
            slow: 0,
            limit: (not_seen > 0).then_some(Duration::from_secs(60)),
        });
    }
    world.after_days(28)
}

#[test]
fn stale_share_is_recommended_only_with_its_caveat() {
    assert_eq!(
        recommendation::heading(&weekly([25, 0])),
        "Use smb: it saves about 5.4 minutes of waiting a week compared with nfs (4.9 to 5.9), in an ordinary week. But it shows stale \
         data: 0 of 25 new files became visible; all stayed invisible for at least 1 min (nfs: 25 of 25). Part of its speed may \
         come from that."
    );
    for fresh in [[0, 0], [0, 25], [2, 0]] {
        assert!(!recommendation::heading(&weekly(fresh)).contains("stale data"), "{fresh:?}");
    }
}

#[test]
fn other_kinds_of_change_that_are_stale_are_counted() {
    let mut weekly = weekly([25, 0]);
    let freshness = &mut weekly.freshness[0];
    let kinds = [
        (ChangeKind::Deletion, "1 other kind of change is"),
        (ChangeKind::Rename, "2 other kinds of change are"),
    ];
    for (kind, more) in kinds {
        let other = KindFreshness { kind, ..freshness.kinds[0] };
        freshness.kinds.push(other);
        let sentence = statements::staleness(freshness).unwrap();
        assert!(sentence.ends_with(&format!("; {more} affected, too.")), "{sentence}");
    }
}

#[test]
fn json_has_the_recommendation_with_its_caveat() {
    let weekly = weekly([25, 0]);
    let form = json::week(&weekly, &[]);
    let text = form["recommendation"]["text"].as_str().unwrap();
    assert_eq!(text, recommendation::heading(&weekly));
    assert!(text.contains("But it shows stale data"), "{text}");
}

#[test]
fn every_screen_of_a_week_counts_the_changes_that_were_seen() {
    let weekly = weekly([2, 0]);
    let counts = "Changes made elsewhere that became visible: smb 23 of 25, nfs 25 of 25.";
    let brief = markdown::render(&brief::brief(&weekly));
    let page = first_screen(&weekly, &longhaul_view::charts::SeriesStyles::for_targets(&weekly.targets));
    for screen in [brief, page.into_string()] {
        assert!(screen.contains(counts), "{screen}");
    }
}
