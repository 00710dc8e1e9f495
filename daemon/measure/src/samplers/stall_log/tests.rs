use std::collections::BTreeMap;

use super::*;
use proptest::prelude::*;

/// Returns a time in seconds after 1970.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_us(seconds * 1_000_000)
}

fn smb() -> TargetName {
    "smb".parse().unwrap()
}

fn slow_call(from: i64, to: i64, workload: Option<&str>) -> SlowCall {
    SlowCall {
        operation: Operation::Read,
        at_us: at(from),
        duration_ns: ((to - from) * 1_000_000_000).cast_unsigned(),
        error: None,
        workload: workload.map(str::to_owned),
    }
}

fn slot(seconds: i64, error: Option<&str>) -> ProbeSample {
    ProbeSample {
        kind: ProbeKind::Getattr,
        at_us: at(seconds),
        latency_ns: 1_000_000,
        call_ns: Some(1_000_000),
        error: error.map(str::to_owned),
        during: None,
    }
}

#[test]
fn connection_errors_are_names_known_to_the_system() {
    let name = |number| crate::platform::error_name(&std::io::Error::from_raw_os_error(number));
    let known: Vec<String> = (1..200).filter_map(name).collect();
    let exists_here = |error: &&&str| cfg!(target_os = "linux") || **error != "EREMOTEIO";
    for error in CONNECTION_ERRORS.iter().filter(exists_here) {
        assert!(known.iter().any(|name| name == error), "{error} is not a name of an error");
    }
}

/// Closes finished stalls, and returns the stalls that have changed.
fn updates(log: &mut StallLog, now: Timestamp) -> Vec<Stall> {
    log.close_finished(now);
    log.take_updates()
}

/// Returns the ended stalls of a log, long after the last call.
fn ended(mut log: StallLog) -> Vec<Stall> {
    updates(&mut log, at(1_000_000)).into_iter().filter(|stall| stall.ended_us.is_some()).collect()
}

#[test]
fn adjacent_slow_calls_are_one_stall() {
    let call = PendingCall {
        operation: Operation::Getattr,
        since: at(100),
        source: "probe",
        during: Some("a round"),
    };
    let mut log = StallLog::default();
    log.update_in_flight(&smb(), Some(call), at(108));
    assert_eq!(updates(&mut log, at(108)).len(), 1, "an ongoing stall is reported");
    log.update_in_flight(&smb(), Some(PendingCall { during: None, ..call }), at(118));
    assert_eq!(updates(&mut log, at(118)), [], "the stall has not changed");
    log.record_slow_call(&smb(), &slow_call(100, 131, None));
    log.record_slow_call(&smb(), &slow_call(98, 130, Some("incremental-backup")));
    log.record_slow_call(&smb(), &slow_call(132, 134, Some("incremental-backup")));
    log.update_in_flight(&smb(), None, at(135));
    assert_eq!(updates(&mut log, at(140)), [], "the stall may still continue");
    let stalls = ended(log);
    assert_eq!(stalls.len(), 1);
    let stall = &stalls[0];
    assert_eq!((stall.started_us, stall.ended_us), (at(98), Some(at(134))));
    assert_eq!((stall.opened_us, stall.calls, stall.longest_ns), (at(100), 3, 32_000_000_000));
    assert_eq!(stall.sources, ["probe", "incremental-backup"]);
    assert_eq!(stall.during.as_deref(), Some("a round"));
}

#[test]
fn call_of_a_stopped_worker_is_counted_once() {
    let (operation, source) = (Operation::Getattr, "probe");
    let call = PendingCall { operation, since: at(100), source, during: None };
    let mut log = StallLog::default();
    log.update_in_flight(&smb(), Some(call), at(127));
    log.update_in_flight(&smb(), None, at(128));
    let stalls = updates(&mut log, at(138));
    assert_eq!((stalls[0].calls, stalls[0].longest_ns), (1, 27_000_000_000), "as long as it was seen");
    assert_eq!(stalls[0].operation, "getattr");
    log.record_slow_call(&smb(), &slow_call(100, 128, None));
    let stalls = updates(&mut log, at(200));
    assert_eq!((stalls[0].calls, stalls[0].longest_ns), (1, 28_000_000_000), "as it was reported later");
}

#[test]
fn distant_slow_calls_are_two_stalls() {
    let mut log = StallLog::default();
    log.record_slow_call(&smb(), &slow_call(100, 102, None));
    log.record_slow_call(&smb(), &slow_call(113, 115, None));
    assert_eq!(ended(log).len(), 2);
}

#[test]
fn failures_are_one_stall_until_the_first_success() {
    let mut log = StallLog::default();
    [100, 105, 130].into_iter().for_each(|at| log.record_probe(&smb(), &slot(at, Some("ESTALE"))));
    assert!(updates(&mut log, at(200)).iter().all(|stall| stall.ended_us.is_none()), "still ongoing");
    log.record_probe(&smb(), &slot(210, None));
    log.record_probe(&smb(), &slot(215, None));
    let stalls = ended(log);
    assert_eq!(stalls.len(), 1);
    assert_eq!(stalls[0].errors, [("ESTALE".to_owned(), 3)].into());
    assert_eq!(
        (stalls[0].started_us, stalls[0].ended_us),
        (at(100), Some(at(210) + Duration::from_millis(1)))
    );
}

#[test]
fn failures_that_go_on_after_their_end_are_ongoing_again() {
    let mut log = StallLog::default();
    log.record_probe(&smb(), &slot(100, Some("ESTALE")));
    log.end_failures(&smb(), at(120));
    assert!(updates(&mut log, at(120))[0].ended_us.is_some());
    // Reported late.
    log.record_probe(&smb(), &slot(105, Some("ESTALE")));
    assert_eq!(updates(&mut log, at(121)).iter().map(|stall| stall.ended_us).collect::<Vec<_>>(), [None]);
}

#[test]
fn permission_and_missing_file_errors_are_no_stalls() {
    let mut log = StallLog::default();
    ["EACCES", "ENOENT", "EROFS"].iter().for_each(|error| log.record_probe(&smb(), &slot(1, Some(error))));
    assert_eq!(ended(log), []);
}

#[test]
fn failures_end_with_the_last_one_if_the_probe_is_off() {
    let mut log = StallLog::default();
    [100, 105].into_iter().for_each(|at| log.record_probe(&smb(), &slot(at, Some("ESTALE"))));
    log.end_failures(&smb(), at(110));
    log.record_probe(&smb(), &slot(130, Some("ESTALE")));
    updates(&mut log, at(135));
    assert_eq!(log.ongoing().count(), 1, "the probe was off for a moment only");
    log.end_failures(&smb(), at(150));
    let stalls = updates(&mut log, at(150));
    assert_eq!(stalls[0].ended_us, Some(at(130) + Duration::from_millis(1)));
    log.record_probe(&smb(), &slot(900, None));
    assert_eq!(updates(&mut log, at(900)), [], "an answer much later does not extend it");
}

#[test]
fn stalls_of_removed_targets_end() {
    let mut log = StallLog::default();
    let nfs: TargetName = "nfs".parse().unwrap();
    let call = PendingCall { operation: Operation::Read, since: at(100), source: "a run", during: None };
    for target in [&smb(), &nfs] {
        log.record_probe(target, &slot(100, Some("EIO")));
        log.update_in_flight(target, Some(call), at(107));
    }
    log.end_removed(|target| *target == nfs);
    let ended: Vec<_> = updates(&mut log, at(200)).into_iter().map(|stall| stall.ended_us).collect();
    assert_eq!(ended, [Some(at(107)), None]);
    assert_eq!(log.ongoing().map(|stall| &stall.target).collect::<Vec<_>>(), [&nfs]);
}

proptest! {
    #[test]
    fn every_slow_call_is_covered_by_an_ended_stall(
        calls in proptest::collection::vec((0i64..500, 2i64..60), 1..20),
    ) {
        let mut log = StallLog::default();
        let mut stored = BTreeMap::new();
        for (from, length) in &calls {
            log.record_slow_call(&smb(), &slow_call(*from, from + length, None));
            for stall in updates(&mut log, at(0)) {
                stored.insert(stall.opened_us, stall);
            }
        }
        for stall in updates(&mut log, Timestamp::MAX) {
            stored.insert(stall.opened_us, stall);
        }
        prop_assert!(stored.values().all(|stall| stall.ended_us.is_some()));
        for (from, length) in calls {
            let covered = stored.values().any(|stall| {
                stall.started_us <= at(from) && stall.ended_us.unwrap() >= at(from + length)
            });
            prop_assert!(covered, "{from} + {length}");
        }
    }
}
