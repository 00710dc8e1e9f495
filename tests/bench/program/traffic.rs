//! Reads traffic counters before and after a shell command, to compare them with a transfer of known size.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_measure::samplers::{MeteredTraffic, Observation, SelfTraffic, TrafficMeter};
use longhaul_model::{CounterReading, CounterUnavailable, Mount, TargetName};
use serde_json::{Value, json};

/// Runs a shell command between two readings of the counters for the mounts of some folders. Returns a JSON object
/// for each counter source. The traffic of the command counts as that of a user.
pub fn measure_traffic(paths: &[PathBuf], command: &str) -> anyhow::Result<Vec<Value>> {
    let mounts = platform::mounts().context("cannot read the mount table")?;
    let targets: Vec<(TargetName, Mount)> =
        paths.iter().filter_map(|path| measured_mount(&mounts, path)).collect();
    let own = BTreeMap::from_iter(targets.iter().map(|(name, _)| (name.clone(), SelfTraffic::default())));
    let mut meter = TrafficMeter::default();
    let mut look = || {
        let readings = platform::read_counters(&targets);
        let look = Observation {
            monotonic_ns: platform::monotonic_ns(),
            asleep_ns: platform::asleep_ns(),
            self_traffic: &own,
        };
        (meter.update(&readings, &look), readings)
    };
    look();
    let status = Command::new("/bin/sh").args(["-c", command]).status().context("cannot run the command")?;
    anyhow::ensure!(status.success(), "the command failed: {status}");
    let (metered, readings) = look();
    Ok(metered.iter().map(traffic_json).chain(readings.iter().flat_map(unavailable_json)).collect())
}

/// Returns the last component of a path as target name, and the mount of the path.
fn measured_mount(mounts: &[Mount], path: &Path) -> Option<(TargetName, Mount)> {
    let name = path.file_name()?.to_str()?.parse().ok()?;
    Some((name, Mount::for_path(mounts, path)?.clone()))
}

fn traffic_json(metered: &MeteredTraffic) -> Value {
    json!({ "target": metered.target, "traffic": metered.traffic, "used": metered.is_used })
}

fn unavailable_json(reading: &CounterReading) -> Vec<Value> {
    let line = |unread: &CounterUnavailable| json!({ "target": reading.target, "unread": unread });
    reading.counters.iter().filter_map(|counters| counters.as_ref().err().map(line)).collect()
}
