//! Cuts the power of the disk below the database and checks that no acknowledged run is lost.
//!
//! The disk is dm-flakey in a virtual machine (tests/lab/power_loss.sh), which runs this test program for its two parts: the child
//! process of `kill.rs` stores runs until the cut, and the child here checks the database afterwards.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use super::CHILD;
use super::kill::{acknowledged, stored_runs};

/// Number of power cuts. `LONGHAUL_POWER_CUTS` replaces it.
const CUTS: u32 = 200;

/// The child process that checks the database. Its input is the output of the writers; each line begins with `before` or
/// `later`, for before or after the power cut. It prints how many runs of either kind are lost.
#[test]
#[ignore = "not a test: the child process of another test"]
fn child_that_checks() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let found = stored_runs(Path::new(&path));
    let count = |when: &str| {
        let lines: String = input.split_inclusive('\n').filter(|line| line.starts_with(when)).collect();
        let runs: Vec<_> = acknowledged(&lines).collect();
        let lost: Vec<_> =
            runs.iter().filter(|(number, trace_id)| found.get(number) != Some(trace_id)).collect();
        println!("{when}: {} runs, of which are lost: {lost:?}", runs.len());
        (runs.len(), lost.len())
    };
    let ((_, lost), (later, later_lost)) = (count("before "), count("later "));
    println!("lost={lost} later={later} later_lost={later_lost}");
}

/// Number of power cuts with less than the store's own `PRAGMA synchronous`.
const CONTROL_CUTS: u32 = 5;

/// Runs the script in the virtual machine and returns its totals. `synchronous` replaces the store's own setting.
fn totals(cuts: u32, synchronous: Option<&str>) -> HashMap<String, u64> {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab").canonicalize().unwrap();
    let program = std::env::current_exe().unwrap();
    let output = Command::new("bash")
        .arg(lab.join("simulated.sh"))
        .args(["run", "env", &format!("STORE_TESTS=/host{}", program.display())])
        .args(["bash", &format!("/host{}", lab.join("power_loss.sh").display())])
        .args([&cuts.to_string(), "1"])
        .args(synchronous)
        .env("SIMULATED_MOUNTS", "local")
        .env("SIMULATED_TIMEOUT", "7200")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the machine ended with {}", output.status);
    let line = printed.lines().find_map(|line| line.strip_prefix("total ")).unwrap();
    let pairs = line.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.parse().unwrap())).collect()
}

#[test]
#[ignore = "boots a virtual machine; run with --ignored"]
fn power_cuts_lose_no_acknowledged_run() {
    let cuts = std::env::var("LONGHAUL_POWER_CUTS").map_or(CUTS, |text| text.parse().unwrap());
    let totals = totals(cuts, None);
    assert_eq!(totals["cuts"], u64::from(cuts));
    assert_eq!((totals["lost"], totals["damaged"], totals["kernel_errors"]), (0, 0, 0));
    assert!(totals["acknowledged"] >= 5 * u64::from(cuts), "too few runs to show anything");
    assert!(totals["checkpoint"] >= u64::from(cuts) / 10, "too few cuts during a checkpoint");
    // Writes after a cut must be gone, or it was none. The run in progress may have been on the disk but not yet acknowledged.
    assert!(totals["later_lost"] > 0, "writes after a cut reached the disk");
    assert!(totals["later"] - totals["later_lost"] <= u64::from(cuts), "writes after a cut reached the disk");
}

#[test]
#[ignore = "boots a virtual machine; run with --ignored"]
fn power_cuts_without_syncs_lose_runs() {
    let totals = totals(CONTROL_CUTS, Some("OFF"));
    assert_eq!(totals["cuts"], u64::from(CONTROL_CUTS));
    assert!(totals["lost"] > 0, "the check reports no loss");
}

/// Without a sync of each commit, the database stays intact and lacks only its last runs.
#[test]
#[ignore = "boots a virtual machine; run with --ignored"]
fn power_cuts_with_syncs_of_checkpoints_only_lose_runs() {
    let totals = totals(CONTROL_CUTS, Some("NORMAL"));
    assert_eq!(totals["cuts"], u64::from(CONTROL_CUTS));
    assert_eq!(totals["damaged"], 0);
    assert!(totals["lost"] > 0, "the check reports no loss");
}
