//! Tests of the screen that says where time goes.

use longhaul_analysis::attribution::{Attribution, Layer, Part};
use longhaul_analysis::summary::{Verdict, WeeklySummary};
use longhaul_view::render::terminal;
use longhaul_view::screens::why;

use crate::world;

/// Returns an attribution of opening a large folder with these seconds for each layer, from this computer to the disk.
fn opening(target: &str, protocol: &str, parts: [Option<f64>; 5]) -> Attribution {
    let part = |layer: Layer| {
        let seconds = parts[layer as usize];
        let within = |factor: f64| seconds.map(|seconds| seconds * factor);
        Part { layer, seconds, low: within(0.9), high: within(1.1) }
    };
    Attribution {
        target: target.parse().unwrap(),
        protocol: Some(protocol.to_owned()),
        task: "folder-index",
        metric: "folder-cold",
        rounds: 12,
        seconds: 1.2,
        parts: Layer::ALL.map(part).to_vec(),
        largest: None,
        round_trips: None,
    }
}

fn nfs() -> Attribution {
    let parts = [Some(0.12), Some(0.0), Some(0.24), Some(0.84), None];
    Attribution { largest: Some(Layer::Server), round_trips: Some(9.0), ..opening("nfs", "NFS 4.2", parts) }
}

#[test]
fn what_stands_out_is_named_with_its_time() {
    assert_eq!(why::statement(&nfs()), "the NAS stands out: 840 ms of 1.20 s (70 %).");
    assert_eq!(why::statement(&Attribution { largest: None, ..nfs() }), "1.20 s; nothing stands out.");
    let unknown = opening("nfs", "NFS 4.2", [None; 5]);
    assert_eq!(why::statement(&unknown), "1.20 s; no request times are known.");
}

#[test]
fn smaller_part_that_stands_out_is_not_called_most_of_the_time() {
    let parts = [Some(0.5), Some(0.0), Some(0.312), Some(0.388), None];
    let network = Attribution { largest: Some(Layer::Wire), ..opening("nfs", "NFS 4.2", parts) };
    assert_eq!(why::statement(&network), "the network stands out: 312 ms of 1.20 s (26 %).");
}

#[test]
fn round_trips_of_shares_are_compared_in_one_sentence() {
    let smb = Attribution { round_trips: Some(27.0), ..opening("smb", "SMB 3.1.1", [None; 5]) };
    let sentence = why::round_trips("opening a large folder, cold", &[&nfs(), &smb]);
    let expected = "Opening a large folder, cold: 9 round trips over nfs (NFS 4.2), 27 over smb (SMB 3.1.1).";
    assert_eq!(sentence.as_deref(), Some(expected));
    assert_eq!(why::round_trips("x", &[&opening("smb", "SMB 3.1.1", [None; 5])]), None);
}

#[test]
fn a_bar_has_a_letter_for_each_twentieth() {
    assert_eq!(why::bar(&nfs()), "ccwwwwssssssssssssss");
    let with_disk = [Some(0.12), None, Some(0.24), Some(0.24), Some(0.6)];
    assert_eq!(why::bar(&opening("nfs", "NFS 4.2", with_disk)), "ccwwwwssssdddddddddd");
}

#[test]
fn unknown_time_is_marked_and_never_left_out() {
    let only_client = [Some(0.3), None, None, None, None];
    assert_eq!(why::bar(&opening("nfs", "NFS 4.2", only_client)), "ccccc???????????????");
}

#[test]
fn a_screen_without_runs_says_what_is_missing() {
    let screen = terminal::render(&why::why(&[]));
    assert!(screen.contains("No request times are known. longhaul reads them"), "{screen}");
}

#[test]
fn the_screen_lists_each_task_once_with_all_shares() {
    let smb = opening("smb", "SMB 3.1.1", [Some(0.5), None, Some(0.2), Some(0.5), None]);
    let lines = terminal::lines(&why::why(&[nfs(), smb]));
    let screen: String = lines.iter().map(|line| line.content() + "\n").collect();
    assert_eq!(screen.matches("Opening a large folder, cold\n").count(), 1, "{screen}");
    for line in ["nfs: the NAS stands out: 840 ms of 1.20 s (70 %).", "smb: 1.20 s; nothing stands out."] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    for bar in ["ccwwwwssssssssssssss", "ccccccccwwwwssssssss"] {
        assert!(screen.contains(bar), "{bar}: {screen}");
    }
}

#[test]
fn a_share_is_said_to_wait_for_the_layer_of_most_of_its_times() {
    let wire = Attribution {
        seconds: 2.0,
        largest: Some(Layer::Wire),
        ..opening("smb", "SMB 3.1.1", [None, None, Some(1.5), None, None])
    };
    let server = Attribution {
        largest: Some(Layer::Server),
        ..opening("smb", "SMB 3.1.1", [None, None, None, Some(1.1), None])
    };
    let quiet = opening("local-smb", "SMB 3.1.1", [Some(0.5), None, Some(0.2), Some(0.5), None]);
    let weekly = world::twenty_percent_faster();
    let shorter = opening("smb", "SMB 3.1.1", [None, None, Some(1.0), None, None]);
    let shorter = Attribution { largest: Some(Layer::Wire), ..shorter };
    let found = why::bottlenecks(&weekly, &[nfs(), quiet.clone(), shorter, server, wire]);
    let found: Vec<String> = found.iter().map(|text| text.content()).collect();
    assert_eq!(
        found,
        [
            "nfs: the NAS stands out in 1 of 1 metric; opening a large folder, cold: 840 ms of 1.20 s (median of 12 rounds).",
            "smb: the network stands out in 2 of 3 metrics; opening a large folder, cold: 1.50 s of 2.00 s (median of 12 rounds)."
        ]
    );
    let line = why::bottlenecks_in_brief(&weekly, &[nfs(), quiet]).map(|text| text.content());
    let expected =
        "Stands out on nfs: the NAS in 1 of 1 metric (medians of up to 12 rounds). Each task: why.";
    assert_eq!(line.as_deref(), Some(expected));
    assert_eq!(why::bottlenecks_in_brief(&weekly, &[]), None);
}

#[test]
fn round_trips_of_a_decided_difference_are_counted() {
    let mut weekly = world::twenty_percent_faster();
    let trips = |target: &str, trips: f64| Attribution {
        round_trips: Some(trips),
        ..opening(target, "NFS 4.2", [Some(0.1), None, Some(0.9), None, None])
    };
    let found = |weekly: &WeeklySummary, of_nfs: f64| {
        why::counted_round_trips(weekly, &[trips("nfs", of_nfs), trips("smb", 9.0)])
    };
    let expected = "opening a large folder, cold, needs 3,008 round trips over nfs, 9 over smb (medians of up to 12 rounds).";
    assert_eq!(found(&weekly, 3008.0).as_deref(), Some(expected));
    assert_eq!(found(&weekly, 10.0), None, "about the same number explains nothing");
    assert_eq!(found(&weekly, 1.0), None, "the faster share needs more");
    weekly.pairs[0].tasks[0].verdict = Verdict::NoRealDifference;
    assert_eq!(found(&weekly, 3008.0), None, "no difference to explain");
}

#[test]
fn counted_round_trips_hide_nothing_that_stands_out() {
    let weekly = world::twenty_percent_faster();
    let smb = Attribution { round_trips: Some(3.0), ..opening("smb", "SMB 3.1.1", [None; 5]) };
    let attributions = [nfs(), smb];
    assert_eq!(why::bottlenecks(&weekly, &attributions).len(), 1);
    let line = why::bottlenecks_in_brief(&weekly, &attributions).map(|text| text.content());
    let expected = "Opening a large folder, cold, needs 9 round trips over nfs, 3 over smb (medians of up to 12 rounds). Stands out on \
                    nfs: the NAS in 1 of 1 metric (medians of up to 12 rounds). Each task: why.";
    assert_eq!(line.as_deref(), Some(expected));
}

#[test]
fn example_is_a_task_whose_times_differ() {
    let mut weekly = world::twenty_percent_faster();
    let waiting = |metric: &'static str, seconds: f64| Attribution {
        metric,
        seconds: 2.0,
        largest: Some(Layer::Wire),
        ..opening("smb", "SMB 3.1.1", [None, None, Some(seconds), None, None])
    };
    let found = |weekly: &WeeklySummary| {
        let all = [waiting("folder-cold", 1.5), waiting("walk-cold", 1.0)];
        why::bottlenecks(weekly, &all)[0].content()
    };
    assert!(
        found(&weekly).contains("; opening a large folder, cold: 1.50 s of 2.00 s"),
        "{}",
        found(&weekly)
    );
    weekly.pairs[0].tasks[0].verdict = Verdict::NoRealDifference;
    assert!(found(&weekly).contains("; walking a large tree, cold: 1.00 s of 2.00 s"), "{}", found(&weekly));
}
