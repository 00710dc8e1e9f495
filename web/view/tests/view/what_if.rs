//! Tests of the screen that predicts times.

use std::time::Duration;

use longhaul_analysis::prediction::{
    Answer, AssumedChange, Dimension, NoPrediction, Prediction, TargetMetric,
};
use longhaul_view::render::markdown;
use longhaul_view::screens::what_if::what_if;

const CHANGE: AssumedChange =
    AssumedChange { round_trip: Some(Duration::from_millis(20)), bits_per_second: Some(50e6), disk: None };

fn prediction(seconds: f64) -> Prediction {
    Prediction { seconds, low: seconds * 0.9, high: seconds * 1.1, is_extrapolated: seconds > 100.0 }
}

fn answer(target: &str, metric: &str, changed: Result<f64, NoPrediction>) -> Answer {
    let key = TargetMetric {
        target: target.parse().unwrap(),
        workload: "folder-index".to_owned(),
        metric: metric.to_owned(),
    };
    Answer { key, runs: 30, usual: Some(prediction(0.5)), changed: changed.map(prediction) }
}

#[test]
fn fastest_target_is_named_only_beyond_the_ranges() {
    let answers = [
        answer("nfs", "folder-cold", Ok(20.0)),
        answer("smb", "folder-cold", Ok(30.0)),
        answer("nfs", "walk-cold", Ok(105.0)),
        answer("smb", "walk-cold", Ok(100.0)),
    ];
    insta::assert_snapshot!(markdown::render(&what_if(CHANGE, &answers)));
}

#[test]
fn fastest_of_those_that_can_be_predicted_is_called_so() {
    let answers = [
        answer("afp", "folder-cold", Err(NoPrediction::TooFewRuns)),
        answer("nfs", "folder-cold", Ok(20.0)),
        answer("smb", "folder-cold", Ok(30.0)),
    ];
    let shown = markdown::render(&what_if(CHANGE, &answers));
    assert!(shown.contains("would be the fastest of those that can be predicted: about 20.0 s"), "{shown}");
    assert!(shown.contains("too few rounds with known round trip, bandwidth and traffic"), "{shown}");
}

#[test]
fn without_any_prediction_the_reason_and_the_next_step_are_shown() {
    let reason = NoPrediction::NeverVaried(Dimension::RoundTrip);
    let answers = [answer("nfs", "folder-cold", Err(reason)), answer("smb", "folder-cold", Err(reason))];
    insta::assert_snapshot!(markdown::render(&what_if(CHANGE, &answers)));
    let nothing = markdown::render(&what_if(CHANGE, &[]));
    assert!(nothing.contains("at least 12 rounds") && !nothing.contains("Predicted"), "{nothing}");
}

#[test]
fn too_few_runs_are_a_reason_only_if_no_task_has_enough() {
    let disk = NoPrediction::NeverVaried(Dimension::Disk);
    let answers = [
        answer("afp", "folder-cold", Err(NoPrediction::TooFewRuns)),
        answer("afp", "walk-cold", Err(NoPrediction::TooFewRuns)),
        answer("nfs", "folder-cold", Err(disk)),
        answer("nfs", "walk-cold", Err(NoPrediction::TooFewRuns)),
        answer("smb", "folder-cold", Err(disk)),
    ];
    let shown = markdown::render(&what_if(CHANGE, &answers));
    assert!(shown.contains("No prediction yet for afp: at least 12 rounds"), "{shown}");
    assert!(shown.contains("No prediction yet for nfs, smb: the disk of the NAS"), "{shown}");
}
