//! The probe's files, on a real folder.

use std::collections::BTreeSet;

use super::*;
use crate::context::StopSwitch;
use crate::model::{Probing, Scale};
use crate::recorder::{PROBE_LANE, Recorder};

const PLACES: u64 = 2 * PIECE_BYTES / ASKED_BYTES as u64;

fn plan() -> ProbePlan {
    ProbePlan {
        interval_ms: 5000,
        kinds: ProbeKind::ALL.to_vec(),
        seed: 3,
        begins: Probing::On,
        pool_bytes: 2 * PIECE_BYTES,
        free_floor: 0.0,
    }
}

/// A new folder with an arena, handed to a check with the way to its pool.
fn with_arena(
    check: impl FnOnce(&dyn Fn(&ProbePlan, Option<u64>) -> Result<Option<Pool>, RunError>, &Context<'_>),
) {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
    let context = Context::new(&recorder, PROBE_LANE, &stop);
    let target = "nas".parse().unwrap();
    let claim = || Claim { target_path: folder.path(), target: &target, machine: "m" };
    let open =
        |plan: &ProbePlan, device| Pool::open(&Site { claim: claim(), device, plan, salt: 1 }, &context);
    assert!(open(&plan(), None).unwrap().is_none(), "it makes no arena");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    drop(Arena::open(&claim(), &context).ok().unwrap());
    check(&open, &context);
}

/// The places that are read until there is none.
fn read_all(pool: &mut Pool, context: &Context<'_>) -> Vec<u64> {
    let visits = std::iter::from_fn(|| pool.visit(ProbeKind::Read, context).unwrap());
    let visits: Vec<Visit> = visits.collect();
    let read = |mut visit: Visit| {
        visit.ask(context).unwrap();
        pool.check(&visit).unwrap();
        visit.offset
    };
    visits.into_iter().map(read).collect()
}

#[test]
fn only_its_two_files_are_the_probes() {
    assert_eq!(FOLDER_NAME.to_str(), Ok(FOLDER));
    assert!(owns(FOLDER, Path::new("pool")) && owns(FOLDER, Path::new("small")));
    for path in ["diary.txt", "pool/diary.txt", "../pool", "", "/etc/passwd", "._pool"] {
        assert!(!owns(FOLDER, Path::new(path)), "{path}");
    }
    assert!(!owns("photo-batch", Path::new("pool")));
}

#[test]
fn a_pass_reads_every_place_once_and_the_next_one_in_another_order() {
    with_arena(|open, context| {
        let mut pool = open(&plan(), None).unwrap().unwrap();
        assert!(pool.visit(ProbeKind::Read, context).unwrap().is_none(), "nothing is built");
        while !pool.is_complete() {
            assert_eq!(pool.grow(context).unwrap(), Grown::Yes);
        }
        pool.renew(context).unwrap();
        let first = read_all(&mut pool, context);
        assert_eq!(
            first.iter().collect::<BTreeSet<_>>().len() as u64,
            PLACES * ASKED_BYTES as u64 / pool.stride
        );
        pool.renew(context).unwrap();
        let second = read_all(&mut pool, context);
        assert_ne!(first, second);
        assert_eq!(first.into_iter().collect::<BTreeSet<_>>(), second.into_iter().collect());
    });
}

#[test]
fn it_takes_nothing_of_what_has_to_stay_free() {
    with_arena(|open, context| {
        let mut pool = open(&ProbePlan { free_floor: 1.0, ..plan() }, None).unwrap().unwrap();
        let Grown::Short(reason) = pool.grow(context).unwrap() else { panic!("it grew") };
        assert!(reason.contains("have to stay free") && reason.contains("Free space"), "{reason}");
        assert!(pool.visit(ProbeKind::Getattr, context).unwrap().is_some(), "attributes can be asked for");
    });
}

#[test]
fn a_linked_file_of_the_probe_is_made_anew() {
    with_arena(|open, context| {
        let mut pool = open(&plan(), None).unwrap().unwrap();
        pool.grow(context).unwrap();
        let place = pool.target.join(pool.arena.to_str().unwrap()).join(FOLDER);
        let backup = |name: &str| pool_backup(&place, name);
        let victims = [backup("pool"), backup("small")];
        let before = victims.each_ref().map(|path| std::fs::read(path).unwrap());
        pool.grow(context).unwrap();
        assert_eq!(pool.built, PIECE_BYTES, "it began anew");
        let mut visit = pool.visit(ProbeKind::WriteSync, context).unwrap().unwrap();
        visit.ask(context).unwrap();
        let note = pool.take_note().unwrap();
        assert!(note.contains("2 hard links") && note.contains("small"), "{note}");
        assert_eq!(victims.map(|path| std::fs::read(path).unwrap()), before);
    });
}

/// A second name of a file, as a tool that makes snapshots gives it.
fn pool_backup(place: &Path, name: &str) -> PathBuf {
    let backup = place.with_file_name(format!("backup-{name}"));
    std::fs::hard_link(place.join(name), &backup).unwrap();
    backup
}

#[test]
fn another_file_system_in_its_place_is_left_alone() {
    with_arena(|open, _| {
        let device = open(&plan(), None).unwrap().unwrap().device();
        assert!(open(&plan(), Some(device)).unwrap().is_some());
        let refused = open(&plan(), Some(device + 1)).err().unwrap().to_string();
        assert!(refused.contains("another file system"), "{refused}");
    });
}

#[test]
fn a_larger_plan_finds_what_a_smaller_one_built() {
    with_arena(|open, context| {
        let mut pool = open(&plan(), None).unwrap().unwrap();
        while !pool.is_complete() {
            pool.grow(context).unwrap();
        }
        let larger = ProbePlan { pool_bytes: ProbePlan::pool_bytes_at(Scale::Quick), ..plan() };
        let mut pool = open(&larger, None).unwrap().unwrap();
        assert!(!pool.is_complete());
        pool.renew(context).unwrap();
        assert_eq!(
            read_all(&mut pool, context).len() as u64,
            PIECE_BYTES / pool.stride,
            "all but the last piece"
        );
    });
}
