//! Tests of the latency probe's files in a real folder.

use std::collections::BTreeSet;

use super::*;
use crate::recorder::{PROBE_THREAD_SLOT, Recorder};
use crate::timed_fs::StopSwitch;
use longhaul_model::{FreeSpaceReserve, ProbeMode, Scale};

const BLOCKS: u64 = 2 * GROWTH_BYTES / REQUEST_BYTES as u64;

fn plan() -> ProbePlan {
    ProbePlan {
        interval_ms: 5000,
        kinds: ProbeKind::ALL.to_vec(),
        seed: 3,
        initial_mode: ProbeMode::On,
        read_file_bytes: 2 * GROWTH_BYTES,
        reserve: FreeSpaceReserve::NONE,
    }
}

/// Creates a sandbox in a new folder, and passes a function that opens the probe's files to a check.
fn with_sandbox(
    check: impl FnOnce(&dyn Fn(&ProbePlan, Option<u64>) -> Result<Option<ProbeFiles>, RunError>, &TimedFs<'_>),
) {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
    let context = TimedFs::new(&recorder, PROBE_THREAD_SLOT, &stop);
    let target = "nas".parse().unwrap();
    let location = || SandboxLocation { target_path: folder.path(), target: &target, machine: "m" };
    let open = |plan: &ProbePlan, device| {
        ProbeFiles::open(&ProbeSite { location: location(), device, plan, salt: 1 }, &context)
    };
    assert!(open(&plan(), None).unwrap().is_none(), "it must not create a sandbox");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    drop(Sandbox::open(&location(), &context).ok().unwrap());
    check(&open, &context);
}

/// Reads all remaining blocks of the current pass, and returns their offsets.
fn read_all(files: &mut ProbeFiles, context: &TimedFs<'_>) -> Vec<u64> {
    let requests = std::iter::from_fn(|| files.prepare(ProbeKind::Read, context).unwrap());
    let requests: Vec<PreparedProbe> = requests.collect();
    let read = |mut request: PreparedProbe| {
        request.execute(context).unwrap();
        files.verify(&request).unwrap();
        request.offset
    };
    requests.into_iter().map(read).collect()
}

#[test]
fn only_the_two_probe_files_are_recognized() {
    assert_eq!(FOLDER_NAME.to_str(), Ok(FOLDER));
    assert!(owns(FOLDER, Path::new("read")) && owns(FOLDER, Path::new("write")));
    for path in ["foreign.txt", "read/foreign.txt", "../read", "", "/etc/passwd", "._read"] {
        assert!(!owns(FOLDER, Path::new(path)), "{path}");
    }
    assert!(!owns("photo-batch", Path::new("read")));
}

#[test]
fn each_pass_reads_every_block_once_in_a_new_order() {
    with_sandbox(|open, context| {
        let mut files = open(&plan(), None).unwrap().unwrap();
        assert!(files.prepare(ProbeKind::Read, context).unwrap().is_none(), "the read file is empty");
        while !files.is_complete() {
            assert_eq!(files.grow(context).unwrap(), GrowthOutcome::Grown);
        }
        files.start_pass_if_done(context).unwrap();
        let first = read_all(&mut files, context);
        assert_eq!(
            first.iter().collect::<BTreeSet<_>>().len() as u64,
            BLOCKS * REQUEST_BYTES as u64 / files.stride
        );
        files.start_pass_if_done(context).unwrap();
        let second = read_all(&mut files, context);
        assert_ne!(first, second);
        assert_eq!(first.into_iter().collect::<BTreeSet<_>>(), second.into_iter().collect());
    });
}

#[test]
fn read_file_does_not_grow_into_the_minimum_free_space() {
    with_sandbox(|open, context| {
        let mut files =
            open(&ProbePlan { reserve: FreeSpaceReserve::share(1.0), ..plan() }, None).unwrap().unwrap();
        let GrowthOutcome::NoSpace(reason) = files.grow(context).unwrap() else { panic!("the file grew") };
        assert!(reason.contains("have to stay free") && reason.contains("Free space"), "{reason}");
        assert!(
            files.prepare(ProbeKind::Getattr, context).unwrap().is_some(),
            "`getattr` needs no free space"
        );
    });
}

#[test]
fn hard_linked_file_of_the_probe_is_recreated() {
    with_sandbox(|open, context| {
        let mut files = open(&plan(), None).unwrap().unwrap();
        files.grow(context).unwrap();
        let folder = files.target.join(files.sandbox.to_str().unwrap()).join(FOLDER);
        let backup = |name: &str| link_backup(&folder, name);
        let backups = [backup("read"), backup("write")];
        let before = backups.each_ref().map(|path| std::fs::read(path).unwrap());
        files.grow(context).unwrap();
        assert_eq!(files.built_bytes, GROWTH_BYTES, "the read file was recreated");
        let mut request = files.prepare(ProbeKind::WriteSync, context).unwrap().unwrap();
        request.execute(context).unwrap();
        let warning = files.take_warning().unwrap();
        assert!(warning.contains("2 hard links") && warning.contains("write"), "{warning}");
        assert_eq!(backups.map(|path| std::fs::read(path).unwrap()), before);
    });
}

/// Creates a second hard link of a file, as a snapshot tool does.
fn link_backup(folder: &Path, name: &str) -> PathBuf {
    let backup = folder.with_file_name(format!("backup-{name}"));
    std::fs::hard_link(folder.join(name), &backup).unwrap();
    backup
}

#[test]
fn different_file_system_at_the_same_path_is_refused() {
    with_sandbox(|open, _| {
        let device = open(&plan(), None).unwrap().unwrap().device();
        assert!(open(&plan(), Some(device)).unwrap().is_some());
        let refused = open(&plan(), Some(device + 1)).err().unwrap().to_string();
        assert!(refused.contains("a different file system"), "{refused}");
    });
}

#[test]
fn larger_plan_reuses_the_existing_read_file() {
    with_sandbox(|open, context| {
        let mut files = open(&plan(), None).unwrap().unwrap();
        while !files.is_complete() {
            files.grow(context).unwrap();
        }
        let larger = ProbePlan { read_file_bytes: ProbePlan::read_file_bytes_at(Scale::Quick), ..plan() };
        let mut files = open(&larger, None).unwrap().unwrap();
        assert!(!files.is_complete());
        files.start_pass_if_done(context).unwrap();
        assert_eq!(
            read_all(&mut files, context).len() as u64,
            GROWTH_BYTES / files.stride,
            "everything except the last growth step"
        );
    });
}
