//! Fuzzes the marker and the manifest of a sandbox, as another client of the share may plant them: opening and cleaning the
//! sandbox removes nothing but what longhaul created.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use longhaul_measure::recorder::Recorder;
use longhaul_measure::sandbox::{CleanMode, Sandbox, SandboxLocation};
use longhaul_measure::timed_fs::{StopSwitch, TimedFs};
use longhaul_measure::workloads::WORKLOADS;
use longhaul_model::TargetName;
use tempfile::TempDir;

/// A share, with the user's files around and inside the sandbox.
static SHARE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
/// Names of folders that a manifest may claim.
const FOLDERS: [&str; 3] = ["folder-index", "photo-batch", "letters"];

libfuzzer_sys::fuzz_target!(|planted: (&[u8], &[u8])| {
    let (marker, manifest) = planted;
    let name = "smb".parse::<TargetName>().unwrap();
    let location = SandboxLocation { target_path: SHARE.path(), target: &name, machine: "0123456789abcdef" };
    let sandbox = SHARE.path().join(location.folder_name());
    plant(&sandbox, marker, manifest);
    let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
    let context = TimedFs::new(&recorder, 0, &stop);
    if let Ok(Some(opened)) = Sandbox::open_existing(&location, &context) {
        let owns =
            |folder: &str, path: &Path| WORKLOADS.iter().any(|one| one.folder() == folder && one.owns(path));
        let _ = opened.clean(CleanMode::Remove, &context, &owns);
    }
    assert_eq!(std::fs::read(SHARE.path().join("diary.txt")).unwrap(), b"dear diary");
    for folder in FOLDERS {
        assert_eq!(std::fs::read(sandbox.join(folder).join("diary.txt")).unwrap(), b"dear diary");
    }
});

/// Puts a marker, a manifest and a user's files into the sandbox.
fn plant(sandbox: &Path, marker: &[u8], manifest: &[u8]) {
    std::fs::write(SHARE.path().join("diary.txt"), "dear diary").unwrap();
    for folder in FOLDERS {
        std::fs::create_dir_all(sandbox.join(folder)).unwrap();
        std::fs::write(sandbox.join(folder).join("diary.txt"), "dear diary").unwrap();
    }
    std::fs::write(sandbox.join("sandbox.json"), marker).unwrap();
    std::fs::write(sandbox.join("manifest.json"), manifest).unwrap();
}
