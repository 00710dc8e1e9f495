//! Tests of an upgrade: this version uses the files of each released version.
//!
//! `fixtures/upgrade/v<version>` has the configuration, the database and the sandbox of that version, written by
//! `fixtures/upgrade/record.sh` and never edited afterwards. `database.rs` tests that a newer database is refused.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use longhaul_store::Store;

use crate::support::{Call, Place, assert_all_ok, assert_failure, find_sandbox, sandbox, tree};

/// Number of runs in each recorded database.
const RUNS: usize = 4;

/// Returns the folder with one folder for each version.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/fixtures/upgrade")
}

/// Returns the versions in the headings of the change log, such as `## [0.1.0] - 2026-12-01`, and those with fixtures.
fn versions() -> (Vec<String>, Vec<String>) {
    let changelog = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CHANGELOG.md")).unwrap();
    let headings = changelog.lines().filter_map(|line| line.strip_prefix("## [")?.split_once(']'));
    let released = headings.map(|(name, _)| name.to_owned()).filter(|name| name != "Unreleased");
    let names = fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().file_name());
    let kept = names.filter_map(|name| name.to_str()?.strip_prefix('v').map(str::to_owned));
    (released.collect(), kept.collect())
}

/// The files of one earlier version, copied into a test environment.
struct EarlierVersion {
    version: String,
    place: Place,
    target: PathBuf,
}

impl EarlierVersion {
    /// Copies the fixtures of a version. The target is another folder now, as after a move of the share.
    fn copy(version: String) -> Self {
        let place = Place::new();
        let (folder, target) = (fixtures().join(format!("v{version}")), place.folder("smb"));
        place.folder("nfs");
        let config = fs::read_to_string(folder.join("config.toml")).unwrap();
        place.configure(&config.replace("@ROOT@", place.root().to_str().unwrap()));
        fs::create_dir_all(place.data()).unwrap();
        let mut packed = GzDecoder::new(File::open(folder.join("longhaul.sqlite.gz")).unwrap());
        io::copy(&mut packed, &mut File::create(place.database()).unwrap()).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(folder.join("sandbox.tar.gz")).arg("-C").arg(&target);
        assert!(tar.status().unwrap().success(), "{tar:?}");
        Self { version, place, target }
    }

    /// Prepares rounds of the workload that was recorded, on the target that was recorded.
    fn run(&self) -> Call<'_> {
        self.place.longhaul("run --json --workload folder-index").target("smb", &self.target)
    }

    /// Copies the fixtures of every version.
    fn all() -> Vec<Self> {
        let (_, kept) = versions();
        assert!(kept.contains(&"0.1.0".to_owned()), "{kept:?}");
        kept.into_iter().map(Self::copy).collect()
    }
}

#[test]
fn each_released_version_has_fixtures() {
    let (released, kept) = versions();
    let missing: Vec<_> = released.iter().filter(|version| !kept.contains(version)).collect();
    assert!(missing.is_empty(), "tests/e2e/fixtures/upgrade/record.sh was not run for {missing:?}");
    assert!(kept.contains(&"0.1.0".to_owned()), "{kept:?}");
}

#[test]
fn runs_of_earlier_versions_are_shown() {
    for EarlierVersion { version, place, .. } in EarlierVersion::all() {
        // As the service does at its start: readers never change a database.
        drop(Store::open(&place.database(), &[]).unwrap());
        let runs = place.stored_runs();
        assert_eq!(runs.len(), RUNS, "{version}");
        assert_all_ok(&runs);
        let summary = place.longhaul("runs --summary").expect(0);
        assert!(summary.out.contains("folder-index"), "{version}: {summary}");
        let archive = place.longhaul("export runs --format json").expect(0);
        let exported = archive.lines().iter().filter(|row| row["record"] == "run").count();
        assert_eq!(exported, RUNS, "{version}: {archive}");
    }
}

#[test]
fn sandbox_of_earlier_versions_is_used_without_new_data() {
    for earlier in EarlierVersion::all() {
        let EarlierVersion { version, place, target } = &earlier;
        let data = sandbox(target).join("folder-index");
        let before = tree::identities(&data);
        assert_eq!(before.len(), 4, "{version}: {before:?}");
        let runs = earlier.run().arg("--rounds").arg("4").expect(0).runs();
        assert_eq!(runs.len(), 4, "{version}");
        assert_all_ok(&runs);
        assert_eq!(tree::identities(&data), before, "{version}: no file is written again");
        let stored = place.stored_runs();
        assert_eq!(stored.len(), 2 * RUNS, "{version}: the new runs follow those of the earlier version");
        assert_eq!(fs::read_dir(target).unwrap().count(), 1, "{version}: there is one sandbox");
    }
}

#[test]
fn sandbox_of_earlier_versions_is_removed_completely() {
    for EarlierVersion { version, place, target } in EarlierVersion::all() {
        assert!(find_sandbox(&target).is_some(), "{version}");
        let output = place.longhaul("targets clean smb --yes").expect(0);
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{version}: {output}");
    }
}

#[test]
fn purge_finds_the_sandbox_of_earlier_versions() {
    for EarlierVersion { version, place, target } in EarlierVersion::all() {
        // The fixture was first measured in a folder that is not on this machine.
        let output = place.longhaul("service uninstall --purge --yes").expect(1);
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{version}: {output}");
        assert_eq!(output.err.matches("left behind").count(), 2, "{version}: {output}");
    }
}

#[test]
fn every_setting_of_earlier_versions_is_accepted() {
    for EarlierVersion { version, place, .. } in EarlierVersion::all() {
        let path = place.path("home/config/longhaul/config.toml");
        let sample = fs::read_to_string(&path).unwrap();
        let every: Vec<_> = sample.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line)).collect();
        assert!(every.contains(&"cap-seconds = 900"), "{version}: {sample}");
        place.configure(&every.join("\n"));
        // The file is accepted; what it names (recordings, files with secrets) is not there.
        let shown = place.longhaul("config").expect(3);
        for part in [place.root().to_str().unwrap(), "your-day", "notify mail", "nas"] {
            assert!(shown.out.contains(part), "{version}: {shown}");
        }
        assert_eq!(shown.err, "", "{version}");
    }
}

#[test]
fn sandbox_of_a_newer_version_is_not_changed() {
    for earlier in EarlierVersion::all() {
        let EarlierVersion { version, target, .. } = &earlier;
        let marker = sandbox(target).join("sandbox.json");
        let text = fs::read_to_string(&marker).unwrap();
        let newer = text.replace("\"longhaul_sandbox\": 1,", "\"longhaul_sandbox\": 999,");
        assert_ne!(newer, text, "{version}");
        fs::write(&marker, newer).unwrap();
        let before = tree::identities(target);
        let run = earlier.run().expect(3).run_on("smb");
        assert_failure(&run, "unavailable", &["newer version of longhaul", "Update longhaul"]);
        assert_eq!(tree::identities(target), before, "{version}");
    }
}
