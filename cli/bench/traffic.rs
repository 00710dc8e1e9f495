//! What counters say of a transfer that is known: looks, lets a command do it, looks again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use longhaul_measure::model::{Mount, Reading, TargetName, Unread};
use longhaul_measure::platform;
use longhaul_measure::samplers::{Look, Meter, Metered, Own};
use serde_json::{Value, json};

/// Runs a shell command between two looks at the counters below some folders, and gives a line for each source. What the
/// command moves counts as somebody else's.
pub fn around(paths: &[PathBuf], command: &str) -> anyhow::Result<Vec<Value>> {
    let mounts = platform::mounts().context("cannot read the mount table")?;
    let targets: Vec<(TargetName, Mount)> = paths.iter().filter_map(|path| target(&mounts, path)).collect();
    let own = BTreeMap::from_iter(targets.iter().map(|(name, _)| (name.clone(), Own::default())));
    let mut meter = Meter::default();
    let mut look = || {
        let readings = platform::readings(&targets);
        let look =
            Look { monotonic_ns: platform::monotonic_ns(), asleep_ns: platform::asleep_ns(), own: &own };
        (meter.feed(&readings, &look), readings)
    };
    look();
    let status = Command::new("/bin/sh").args(["-c", command]).status().context("cannot run the command")?;
    anyhow::ensure!(status.success(), "the command failed: {status}");
    let (metered, readings) = look();
    Ok(metered.iter().map(line).chain(readings.iter().flat_map(unread)).collect())
}

/// A folder by the name of its last component, and what is mounted there.
fn target(mounts: &[Mount], path: &Path) -> Option<(TargetName, Mount)> {
    let name = path.file_name()?.to_str()?.parse().ok()?;
    Some((name, Mount::of_path(mounts, path)?.clone()))
}

fn line(metered: &Metered) -> Value {
    json!({ "target": metered.target, "traffic": metered.traffic, "used": metered.used })
}

fn unread(reading: &Reading) -> Vec<Value> {
    let line = |unread: &Unread| json!({ "target": reading.target, "unread": unread });
    reading.counters.iter().filter_map(|counters| counters.as_ref().err().map(line)).collect()
}
