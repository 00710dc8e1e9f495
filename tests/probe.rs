//! The light probe in a real worker process: beside runs, on shares that hang, after kills, and when its arena goes.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod slow;
mod support;

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use longhaul_measure::model::{Operation, Outcome, ProbeKind, ProbePlan, Probing};
use longhaul_measure::platform::monotonic_ns;
use rustix::process::Signal;
use slow::{Script, Slow};
use support::probing::{Sampling, plan_every};
use support::{Place, arena, machine, mounts};

const SECOND: u64 = 1_000_000_000;

/// Answers at once.
struct Promptly;

impl Script for Promptly {
    fn answered_ns(&self, now_ns: u64, _: bool) -> u64 {
        now_ns
    }
}

/// A local folder, and a worker with a probe on it.
fn on_a_disk(place: &Place, plan: ProbePlan) -> (PathBuf, Sampling) {
    let at = place.folder("target");
    let sampling = Sampling::on(&at, &place.folder("local"), plan);
    (at, sampling)
}

fn pool(target: &Path) -> PathBuf {
    arena(target).join("probe/pool")
}

fn wait_for_pool(target: &Path, bytes: u64) {
    machine::wait_until("the pool to be built", || {
        support::find_arena(target).is_some_and(|arena| {
            fs::metadata(arena.join("probe/pool")).is_ok_and(|facts| facts.len() == bytes)
        })
    });
}

#[test]
fn every_kind_is_asked_and_clean_gives_everything_back() {
    let place = Place::new();
    let plan = plan_every(20);
    let bytes = plan.pool_bytes;
    let (at, mut sampling) = on_a_disk(&place, plan);
    let recorder = sampling.start();
    wait_for_pool(&at, bytes);
    let (read, written) = recorder.total_bytes();
    machine::wait_until("more to be read and written", || {
        let now = recorder.total_bytes();
        now.0 > read + 40_960 && now.1 > written + 40_960
    });
    assert_eq!(
        (recorder.finished(), recorder.bytes_written()),
        (recorder.finished(), 0),
        "no run has written"
    );

    let cleaned = sampling.clean();
    assert!(cleaned.arena_removed && cleaned.foreign.is_empty(), "{cleaned:?}");
    let held: Vec<_> =
        cleaned.holdings.iter().map(|(name, files, bytes)| (name.as_str(), *files, *bytes)).collect();
    assert_eq!(held, [("probe", 2, bytes + 4096)]);
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);

    let heard = sampling.end();
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "what was given back is not made again without a word");
    let slots = heard.slots();
    for kind in ProbeKind::ALL {
        let of_kind =
            slots.iter().filter(|slot| slot.kind == kind && slot.error.is_none() && slot.beside.is_none());
        assert!(of_kind.count() > 10, "{kind:?}");
    }
    assert!(slots.windows(2).all(|two| two[0].at_us < two[1].at_us), "in the order of their instants");
}

#[test]
fn during_runs_it_asks_beside_a_run_and_only_then() {
    let place = Place::new();
    let plan = ProbePlan { begins: Probing::DuringRuns, ..plan_every(5) };
    let (at, mut sampling) = on_a_disk(&place, plan);
    sampling.start();
    for _ in 0..20 {
        let finished = sampling.run("folder-index");
        assert!(finished.report.failed.is_none(), "{:?}", finished.report.failed);
        let getattrs = |phase: &longhaul_measure::model::Phase| {
            let of = phase.operations.iter().find(|stats| stats.operation == Operation::Sync);
            of.map_or(0, |stats| stats.latency.count())
        };
        assert_eq!(
            finished.phases.iter().map(getattrs).sum::<u64>(),
            0,
            "the probe's syncs are no part of a run"
        );
    }
    let heard = sampling.end();
    let slots = heard.slots();
    assert!(
        slots.len() > 10 && slots.iter().all(|slot| slot.beside.as_deref() == Some("folder-index")),
        "{slots:?}"
    );
    assert!(at.exists());
}

#[test]
fn a_worker_that_samples_still_says_what_it_is_when_it_is_asked() {
    let place = Place::new();
    let (_, mut sampling) = on_a_disk(&place, plan_every(20));
    let recorder = sampling.start();
    assert!(sampling.worker.protocol.is_none(), "nobody waited for it");
    assert!(sampling.run("folder-index").report.failed.is_none());
    assert!(sampling.worker.protocol.is_some());
    machine::wait_until("the probe to ask", || recorder.total_bytes().0 > 4096);
    // A run is over within a slot or two.
    machine::wait_until("an answer beside a run", || {
        assert!(sampling.run("folder-index").report.failed.is_none());
        sampling.heard().slots().iter().any(|slot| slot.beside.is_some())
    });
    sampling.worker.set_probing(Probing::DuringRuns);
    sampling.end();
}

#[test]
fn a_pool_whose_making_was_killed_is_resumed_and_every_byte_of_it_is_right() {
    let place = Place::new();
    let plan = ProbePlan { kinds: vec![ProbeKind::Read], ..plan_every(2) };
    let bytes = plan.pool_bytes;
    let (at, mut sampling) = on_a_disk(&place, ProbePlan { interval_ms: 20, ..plan.clone() });
    let at_least = |bytes: u64| {
        support::find_arena(&at).is_some_and(|arena| {
            fs::metadata(arena.join("probe/pool")).is_ok_and(|facts| facts.len() >= bytes)
        })
    };
    let mut size = 0;
    for part in 1..=3 {
        sampling.start();
        machine::wait_until("a part of the pool", || at_least(bytes / 5 * part));
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
    // As after a power cut: the last piece has its length and not its bytes.
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
fn an_answer_that_is_not_what_was_written_is_an_error() {
    let place = Place::new();
    let plan = ProbePlan { kinds: vec![ProbeKind::Read], ..plan_every(5) };
    let bytes = plan.pool_bytes;
    let (at, mut sampling) = on_a_disk(&place, plan);
    sampling.start();
    wait_for_pool(&at, bytes);
    fs::write(pool(&at), vec![7; bytes as usize]).unwrap();
    machine::wait_until("a mismatch", || {
        sampling.heard().slots().iter().any(|slot| slot.error.as_deref() == Some("MISMATCH"))
    });
}

#[test]
fn what_somebody_changes_is_seen_and_what_longhaul_does_is_not() {
    let place = Place::new();
    let (at, mut sampling) =
        on_a_disk(&place, ProbePlan { kinds: vec![ProbeKind::WriteSync], ..plan_every(20) });
    let recorder = sampling.start();
    machine::wait_until("some writes", || recorder.total_bytes().1 > 100 * 4096);
    assert!(sampling.heard().changes().is_empty());
    fs::write(at.join("letter.txt"), "mine").unwrap();
    let written = recorder.total_bytes().1;
    machine::wait_until("some more writes", || recorder.total_bytes().1 > written + 20 * 4096);
    assert_eq!(sampling.end().changes().len(), 1, "once a batch");
}

#[test]
fn a_folder_that_may_not_be_written_is_said_and_tried_again() {
    if machine::is_root() && !mounts::are_our_own("a_folder_that_may_not_be_written_is_said_and_tried_again")
    {
        return;
    }
    let place = Place::new();
    let at = place.folder("target");
    // Root may write everywhere but on what nobody may write.
    let memory = machine::is_root().then(|| mounts::Memory::mount(&at, 20_000));
    match &memory {
        Some(memory) => memory.make_read_only(),
        None => fs::set_permissions(&at, fs::Permissions::from_mode(0o555)).unwrap(),
    }
    let mut sampling = Sampling::on(&at, &place.folder("local"), plan_every(20));
    sampling.start();
    machine::wait_until("the reason", || !sampling.heard().lame().is_empty());
    let said = sampling.heard().lame()[0].clone();
    assert!(said.contains(at.to_str().unwrap()) && said.contains("mkdir: E"), "{said}");
    match &memory {
        Some(memory) => memory.make_writable(),
        None => fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap(),
    }
    wait_for_pool(&at, ProbePlan::pool_bytes_at(longhaul_measure::model::Scale::Quick));
    let heard = sampling.end();
    assert_eq!(heard.lame(), [said], "the same reason is said once");
    assert!(!heard.slots().is_empty());
}

#[test]
fn a_share_that_goes_leaves_nothing_in_the_folder_below_it() {
    let test = "a_share_that_goes_leaves_nothing_in_the_folder_below_it";
    if !mounts::are_our_own(test) {
        return;
    }
    let place = Place::new();
    let at = place.folder("target");
    let share = mounts::Memory::mount(&at, 20_000);
    let mut sampling = Sampling::on(&at, &place.folder("local"), plan_every(20));
    sampling.start();
    machine::wait_until("the first answers", || {
        support::find_arena(&at).is_some_and(|arena| arena.join("probe/pool").exists())
    });
    machine::wait_until("nothing to be held open for so long that it cannot be ejected", || share.eject());
    machine::wait_until("the probe to notice", || !sampling.heard().lame().is_empty());
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
    drop(sampling.end());
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
}

#[test]
fn a_probe_that_hangs_holds_no_run_up_and_answers_for_every_slot_when_it_is_back() {
    let test = "a_probe_that_hangs_holds_no_run_up_and_answers_for_every_slot_when_it_is_back";
    if !mounts::are_our_own(test) {
        return;
    }
    let place = Place::new();
    let at = place.folder("mount");
    let slow = match Slow::mount(&at, 4, Promptly) {
        Ok(slow) => slow,
        Err(why) => {
            return machine::skip(test, &format!("no file system in user space can be mounted ({why})"));
        }
    };
    let mut sampling = Sampling::on(&at, &place.folder("local"), plan_every(50));
    let recorder = sampling.start();
    machine::wait_until("reads", || recorder.total_bytes().0 > 10 * 4096);
    slow.levers.holds_reads.store(true, Ordering::SeqCst);
    machine::wait_until("the probe to hang", || {
        recorder.probe_in_flight().is_some_and(|flight| {
            flight.operation == Operation::Read && flight.since_ns + 2 * SECOND < monotonic_ns()
        })
    });
    let finished = sampling.run("folder-index");
    assert!(finished.report.failed.is_none(), "{:?}", finished.report.failed);
    assert!(recorder.probe_in_flight().is_some(), "it still hangs");
    assert_eq!(recorder.in_flight(), None);
    let before = sampling.heard().slots().len();
    slow.levers.holds_reads.store(false, Ordering::SeqCst);
    machine::wait_until("the late answer", || sampling.heard().slots().len() > before + 40);

    let heard = sampling.end();
    let slots = heard.slots();
    let late = slots
        .iter()
        .position(|slot| slot.call_ns.is_some_and(|call| call > SECOND))
        .expect("one late answer");
    assert_eq!(slots[late].kind, ProbeKind::Read);
    let passed: Vec<_> = slots[late + 1..].iter().take_while(|slot| slot.call_ns.is_none()).collect();
    assert!(passed.len() >= 40, "{} slots passed", passed.len());
    let felt: Vec<u64> = slots[late..=late + passed.len()].iter().map(|slot| slot.latency_ns).collect();
    assert!(felt.windows(2).skip(1).all(|two| two[0] - two[1] == 50_000_000), "from each until the answer");
    assert!(felt[1] < felt[0], "{felt:?}");
    let waits = heard.waits();
    assert!(
        waits.iter().any(|wait| wait.operation == Operation::Read && wait.workload.is_none()),
        "{waits:?}"
    );
}

#[test]
fn a_long_wait_of_a_workload_is_told_with_its_name() {
    let test = "a_long_wait_of_a_workload_is_told_with_its_name";
    if !mounts::are_our_own(test) {
        return;
    }
    let place = Place::new();
    let at = place.folder("mount");
    let _slow = match Slow::mount(&at, 1, OneSlow::default()) {
        Ok(slow) => slow,
        Err(why) => {
            return machine::skip(test, &format!("no file system in user space can be mounted ({why})"));
        }
    };
    let mut sampling = Sampling::on(
        &at,
        &place.folder("local"),
        ProbePlan { begins: Probing::DuringRuns, ..plan_every(3_600_000) },
    );
    let finished = sampling.run("folder-index");
    assert_eq!(finished.report.failed.map(|ending| ending.outcome), None::<Outcome>);
    // The probe makes its pool meanwhile, and may have waited behind the same request: such a wait has no name.
    let named: Vec<_> = sampling.end().waits().into_iter().filter(|wait| wait.workload.is_some()).collect();
    assert!((1..=8).contains(&named.len()), "each thread of the run has waited once at most: {named:?}");
    for wait in named {
        assert_eq!((wait.workload.as_deref(), wait.error.as_deref()), (Some("folder-index"), None));
        assert!((SECOND..10 * SECOND).contains(&wait.nanoseconds), "{wait:?}");
    }
}

/// One request in the middle takes over a second.
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
