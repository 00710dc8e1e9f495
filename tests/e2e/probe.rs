//! Tests of the latency probe in a real worker process: during runs, on hung shares, after kills and without its
//! sandbox.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::fuse::slow::{Script, Slow};
use crate::support::probing::{Sampling, plan_every};
use crate::support::{Place, machine, mounts, sandbox};
use longhaul_measure::platform::monotonic_ns;
use longhaul_model::{Operation, Outcome, ProbeKind, ProbeMode, ProbePlan};
use rustix::process::Signal;

const SECOND: u64 = 1_000_000_000;

/// Script that answers every request without a delay.
struct Promptly;

impl Script for Promptly {
    fn answered_ns(&self, now_ns: u64, _: bool) -> u64 {
        now_ns
    }
}

/// Creates a target folder on the local disk, and a worker with a probe on it.
fn on_a_disk(place: &Place, plan: ProbePlan) -> (PathBuf, Sampling) {
    let at = place.folder("target");
    let sampling = Sampling::on(&at, &place.folder("local"), plan);
    (at, sampling)
}

fn pool(target: &Path) -> PathBuf {
    sandbox(target).join("probe/read")
}

fn wait_for_pool(target: &Path, bytes: u64) {
    machine::wait_until("the probe's file to be created", || {
        crate::support::find_sandbox(target).is_some_and(|sandbox| {
            fs::metadata(sandbox.join("probe/read")).is_ok_and(|facts| facts.len() == bytes)
        })
    });
}

#[test]
fn probe_sends_every_kind_and_clean_removes_its_files() {
    let place = Place::new();
    let plan = plan_every(20);
    let bytes = plan.read_file_bytes;
    let (at, mut sampling) = on_a_disk(&place, plan);
    let recorder = sampling.start();
    wait_for_pool(&at, bytes);
    let (read, written) = recorder.total_bytes();
    let (run_calls, calls) = (recorder.finished_run_calls(), recorder.total_calls());
    machine::wait_until("more to be read and written", || {
        let now = recorder.total_bytes();
        now.0 > read + 40_960 && now.1 > written + 40_960
    });
    assert_eq!(
        (recorder.finished_run_calls(), recorder.bytes_written()),
        (run_calls, 0),
        "calls and bytes of the probe are not counted as those of a run"
    );
    assert!(recorder.total_calls() > calls);

    let cleaned = sampling.clean();
    assert!(cleaned.sandbox_removed && cleaned.foreign.is_empty(), "{cleaned:?}");
    let removed: Vec<_> =
        cleaned.folders.iter().map(|(name, files, bytes)| (name.as_str(), *files, *bytes)).collect();
    assert_eq!(removed, [("probe", 2, bytes + 4096)]);
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);

    let recorded = sampling.end();
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "the probe does not recreate removed files");
    let slots = recorded.slots();
    for kind in ProbeKind::ALL {
        let of_kind =
            slots.iter().filter(|slot| slot.kind == kind && slot.error.is_none() && slot.during.is_none());
        assert!(of_kind.count() > 10, "{kind:?}");
    }
    assert!(
        slots.windows(2).all(|two| two[0].at_us < two[1].at_us),
        "samples are in the order of their scheduled times"
    );
}

#[test]
fn probe_in_during_runs_mode_samples_only_in_runs() {
    let place = Place::new();
    let plan = ProbePlan { initial_mode: ProbeMode::DuringRuns, ..plan_every(5) };
    let (at, mut sampling) = on_a_disk(&place, plan);
    sampling.start();
    // A busy machine runs the probe in few of its slots, so the number of runs is not fixed.
    machine::wait_until("samples during runs", || {
        let finished = sampling.run("folder-index");
        assert!(finished.report.failure.is_none(), "{:?}", finished.report.failure);
        let syncs = |phase: &longhaul_model::Phase| {
            let of = phase.operations.iter().find(|stats| stats.operation == Operation::Sync);
            of.map_or(0, |stats| stats.latency.count())
        };
        assert_eq!(
            finished.phases.iter().map(syncs).sum::<u64>(),
            0,
            "the probe's syncs are not counted as those of a run"
        );
        sampling.recorded().slots().len() > 10
    });
    let recorded = sampling.end();
    let slots = recorded.slots();
    assert!(
        slots.len() > 10 && slots.iter().all(|slot| slot.during.as_deref() == Some("folder-index")),
        "{slots:?}"
    );
    assert!(at.exists());
}

#[test]
fn sampling_worker_still_reports_its_protocol() {
    let place = Place::new();
    let (_, mut sampling) = on_a_disk(&place, plan_every(20));
    let recorder = sampling.start();
    assert!(sampling.worker.protocol.is_none(), "the protocol is not known before a run");
    assert!(sampling.run("folder-index").report.failure.is_none());
    assert!(sampling.worker.protocol.is_some());
    machine::wait_until("requests of the probe", || recorder.total_bytes().0 > 4096);
    // A run lasts only one or two slots, so a few runs may be needed until a sample falls into one.
    machine::wait_until("a sample during a run", || {
        assert!(sampling.run("folder-index").report.failure.is_none());
        sampling.recorded().slots().iter().any(|slot| slot.during.is_some())
    });
    sampling.worker.set_probing(ProbeMode::DuringRuns);
    sampling.end();
}

#[test]
fn interrupted_probe_file_is_resumed_and_correct() {
    let place = Place::new();
    let plan = ProbePlan { kinds: vec![ProbeKind::Read], ..plan_every(2) };
    let bytes = plan.read_file_bytes;
    let (at, mut sampling) = on_a_disk(&place, ProbePlan { interval_ms: 20, ..plan.clone() });
    let at_least = |bytes: u64| {
        crate::support::find_sandbox(&at).is_some_and(|sandbox| {
            fs::metadata(sandbox.join("probe/read")).is_ok_and(|facts| facts.len() >= bytes)
        })
    };
    let mut size = 0;
    for part in 1..=3 {
        sampling.start();
        machine::wait_until("a part of the probe's file", || at_least(bytes / 5 * part));
        let workers = machine::workers_from(&place.path("local"));
        assert_eq!(workers.len(), 1);
        machine::signal(workers[0], Signal::KILL);
        machine::wait_until("the worker to be dead", || {
            machine::workers_from(&place.path("local")).is_empty()
        });
        let now = fs::metadata(pool(&at)).unwrap().len();
        assert!(now >= size && now < bytes, "{now} of {bytes}");
        size = now;
    }
    // After a power cut a file may have its full length but zeros instead of its last bytes.
    fs::File::options().write(true).open(pool(&at)).unwrap().write_all_at(&[0; 4096], size - 4096).unwrap();
    drop(sampling.end());

    let mut sampling = Sampling::on(&at, &place.folder("local"), plan);
    let recorder = sampling.start();
    wait_for_pool(&at, bytes);
    let before = recorder.total_bytes().0;
    machine::wait_until("two passes", || recorder.total_bytes().0 > before + 2 * bytes);
    let slots = sampling.end().slots();
    assert!(
        slots.len() as u64 > bytes / 4096 && slots.iter().all(|slot| slot.error.is_none()),
        "{} slots",
        slots.len()
    );
}

#[test]
fn probe_read_with_wrong_content_is_an_error() {
    let place = Place::new();
    let plan = ProbePlan { kinds: vec![ProbeKind::Read], ..plan_every(5) };
    let bytes = plan.read_file_bytes;
    let (at, mut sampling) = on_a_disk(&place, plan);
    sampling.start();
    wait_for_pool(&at, bytes);
    fs::write(pool(&at), vec![7; bytes as usize]).unwrap();
    machine::wait_until("a mismatch", || {
        sampling.recorded().slots().iter().any(|slot| slot.error.as_deref() == Some("MISMATCH"))
    });
}

#[test]
fn only_changes_by_users_are_reported() {
    let place = Place::new();
    let (at, mut sampling) =
        on_a_disk(&place, ProbePlan { kinds: vec![ProbeKind::WriteSync], ..plan_every(20) });
    let recorder = sampling.start();
    machine::wait_until("some writes", || recorder.total_bytes().1 > 100 * 4096);
    assert!(sampling.recorded().changes().is_empty());
    fs::write(at.join("letter.txt"), "mine").unwrap();
    let written = recorder.total_bytes().1;
    machine::wait_until("some more writes", || recorder.total_bytes().1 > written + 20 * 4096);
    assert_eq!(sampling.end().changes().len(), 1, "changes are reported once per batch");
}

#[test]
fn read_only_folder_is_reported_and_retried() {
    if machine::is_root() && !mounts::in_own_mounts(read_only_folder_is_reported_and_retried) {
        return;
    }
    let place = Place::new();
    let at = place.folder("target");
    // Root ignores permissions, so a read-only mount is needed.
    let memory = machine::is_root().then(|| mounts::Memory::mount(&at, 20_000));
    match &memory {
        Some(memory) => memory.make_read_only(),
        None => fs::set_permissions(&at, fs::Permissions::from_mode(0o555)).unwrap(),
    }
    let mut sampling = Sampling::on(&at, &place.folder("local"), plan_every(20));
    sampling.start();
    machine::wait_until("the reason", || !sampling.recorded().disabled_reasons().is_empty());
    let reason = sampling.recorded().disabled_reasons()[0].clone();
    assert!(reason.contains(at.to_str().unwrap()) && reason.contains("mkdir: E"), "{reason}");
    match &memory {
        Some(memory) => memory.make_writable(),
        None => fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap(),
    }
    wait_for_pool(&at, ProbePlan::read_file_bytes_at(longhaul_model::Scale::Quick));
    let recorded = sampling.end();
    assert_eq!(recorded.disabled_reasons(), [reason], "the same reason is reported once");
    assert!(!recorded.slots().is_empty());
}

#[test]
fn ejected_share_leaves_nothing_in_its_mount_point() {
    mounts::only_in_own_mounts!(ejected_share_leaves_nothing_in_its_mount_point);
    let place = Place::new();
    let at = place.folder("target");
    let share = mounts::Memory::mount(&at, 20_000);
    let mut sampling = Sampling::on(&at, &place.folder("local"), plan_every(20));
    sampling.start();
    machine::wait_until("the first answers", || {
        crate::support::find_sandbox(&at).is_some_and(|sandbox| sandbox.join("probe/read").exists())
    });
    machine::wait_until("a moment in which the share can be ejected", || share.eject());
    machine::wait_until("the probe to notice", || !sampling.recorded().disabled_reasons().is_empty());
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
    drop(sampling.end());
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
}

#[test]
fn hung_probe_blocks_no_run_and_reports_every_slot() {
    mounts::only_in_own_mounts!(hung_probe_blocks_no_run_and_reports_every_slot);
    let place = Place::new();
    let at = place.folder("mount");
    let slow = Slow::mount(&at, 4, Promptly);
    let mut sampling = Sampling::on(&at, &place.folder("local"), plan_every(50));
    let recorder = sampling.start();
    machine::wait_until("reads", || recorder.total_bytes().0 > 10 * 4096);
    slow.controls.block_reads.store(true, Ordering::SeqCst);
    machine::wait_until("the probe to hang", || {
        recorder.probe_in_flight().is_some_and(|flight| {
            flight.operation == Operation::Read && flight.since_ns + 2 * SECOND < monotonic_ns()
        })
    });
    let finished = sampling.run("folder-index");
    assert!(finished.report.failure.is_none(), "{:?}", finished.report.failure);
    assert!(recorder.probe_in_flight().is_some(), "the probe still hangs");
    assert_eq!(recorder.in_flight(), None);
    let before = sampling.recorded().slots().len();
    slow.controls.block_reads.store(false, Ordering::SeqCst);
    machine::wait_until("the late response", || sampling.recorded().slots().len() > before + 40);

    let recorded = sampling.end();
    let slots = recorded.slots();
    let late = slots
        .iter()
        .position(|slot| slot.call_ns.is_some_and(|call| call > SECOND))
        .expect("one late response");
    assert_eq!(slots[late].kind, ProbeKind::Read);
    let passed: Vec<_> = slots[late + 1..].iter().take_while(|slot| slot.call_ns.is_none()).collect();
    assert!(passed.len() >= 40, "{} slots passed", passed.len());
    let latencies: Vec<u64> = slots[late..=late + passed.len()].iter().map(|slot| slot.latency_ns).collect();
    assert!(
        latencies.windows(2).skip(1).all(|two| two[0] - two[1] == 50_000_000),
        "each latency lasts from the scheduled time to the response"
    );
    assert!(latencies[1] < latencies[0], "{latencies:?}");
    let waits = recorded.slow_calls();
    assert!(
        waits.iter().any(|wait| wait.operation == Operation::Read && wait.workload.is_none()),
        "{waits:?}"
    );
}

#[test]
fn slow_call_of_a_workload_is_reported_with_its_name() {
    mounts::only_in_own_mounts!(slow_call_of_a_workload_is_reported_with_its_name);
    let place = Place::new();
    let at = place.folder("mount");
    let _slow = Slow::mount(&at, 1, OneSlow::default());
    let mut sampling = Sampling::on(
        &at,
        &place.folder("local"),
        ProbePlan { initial_mode: ProbeMode::DuringRuns, ..plan_every(3_600_000) },
    );
    let finished = sampling.run("folder-index");
    assert_eq!(finished.report.failure.map(|ending| ending.outcome), None::<Outcome>);
    // The probe creates its file at the same time, and may wait behind the same request; such a call has no workload.
    let named: Vec<_> =
        sampling.end().slow_calls().into_iter().filter(|wait| wait.workload.is_some()).collect();
    assert!((1..=8).contains(&named.len()), "each thread of the run waits at most once: {named:?}");
    for wait in named {
        assert_eq!((wait.workload.as_deref(), wait.error.as_deref()), (Some("folder-index"), None));
        assert!((SECOND..10 * SECOND).contains(&wait.duration_ns), "{wait:?}");
    }
}

/// Script that delays request number 2000 by 1.5 seconds.
#[derive(Default)]
struct OneSlow(std::sync::atomic::AtomicU64);

impl Script for OneSlow {
    fn answered_ns(&self, now_ns: u64, _: bool) -> u64 {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            2000 => now_ns + 3 * SECOND / 2,
            _ => now_ns,
        }
    }
}
