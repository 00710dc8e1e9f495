//! Tests of settings that change a task: runs before and after a change of them are in different epochs.

use serde_json::Value;

use crate::support::Place;

#[test]
fn operation_limit_is_respected_and_opens_an_epoch() {
    let (place, most) = (Place::new(), 400.0);
    let trees = "[folder-index]\nfiles = 400\n";
    place.configure(trees);
    let target = place.folder("share");
    let run = || place.run(&["folder-index"], &[("share", &target)]).expect(0).run_on("share");
    let free = run();
    place.configure(&format!("{trees}[limits]\noperations-per-second = {most}\n"));
    let limited = run();
    let phases = limited["phases"].as_array().unwrap();
    let busy = phases.iter().filter(|phase| operations(phase) > 100.0);
    let rates: Vec<f64> = busy.map(|phase| operations(phase) / phase["seconds"].as_f64().unwrap()).collect();
    // The first call may start without a delay, so the rate may exceed the limit slightly.
    assert!(!rates.is_empty() && rates.iter().all(|rate| *rate < most * 1.05), "{rates:?}");
    assert!(rates.iter().any(|rate| *rate > most / 4.0), "the limit is what slows the run: {rates:?}");
    let paced = |run: &Value| run["conditions"]["negotiated"]["longhaul-operations-per-second"].clone();
    assert_eq!((paced(&free), paced(&limited)), (Value::Null, "400".into()));
    assert_ne!(free["epoch"], limited["epoch"], "limited runs are never pooled with others");
}

#[test]
fn other_test_data_open_an_epoch() {
    let place = Place::new();
    let target = place.folder("share");
    let epoch = |settings: &str| {
        place.configure(settings);
        place.run(&["folder-index"], &[("share", &target)]).expect(0).run_on("share")["epoch"]
            .as_u64()
            .unwrap()
    };
    let settings = [
        "[folder-index]\nfiles = 200\n",
        "[folder-index]\nfiles = 201\n",
        "[folder-index]\nfiles = 201\n[time-machine]\nband-mebibytes = 8\n",
        "[folder-index]\nfiles = 201\n[time-machine]\nband-mebibytes = 16\n",
    ];
    // 8 MiB are the default.
    assert_eq!(settings.map(epoch), [1, 2, 2, 3]);
}

fn operations(phase: &Value) -> f64 {
    let all = phase["ops"].as_array().unwrap().iter();
    all.filter(|op| op["op"] != "decode").map(|op| op["count"].as_f64().unwrap()).sum()
}
