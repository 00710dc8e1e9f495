//! Tests of samples: merging into time steps, retention and export.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    CounterScope, CounterSource, Histogram, LoadContext, MachineStep, PROBE_TIMEOUT_NS, ProbeKind, ProbeStep,
    RequestCounts, RequestKind, Resolution, Stall, Target, Timestamp, Traffic, TrafficStep, UsageStep,
};
use proptest::prelude::*;

use super::{TestDb, at, target};
use crate::{DeliveryStatus, SampleFilter, Samples, Signal, Writer};

/// A time at which a step of every length starts.
const NOON: Timestamp = Timestamp::from_us(20_000 * 86_400_000_000);

fn probe(at: Timestamp, latencies_ns: &[u64]) -> ProbeStep {
    let mut step = ProbeStep::new(target().name, at, ProbeKind::Read, LoadContext::Idle);
    latencies_ns.iter().for_each(|latency| step.latency.record(*latency));
    step.timeouts = latencies_ns.iter().filter(|latency| **latency >= PROBE_TIMEOUT_NS).count() as u64;
    step
}

fn traffic(at: Timestamp, user_read: Option<u64>) -> TrafficStep {
    let traffic = Traffic {
        user_read,
        user_written: Some(u64::MAX),
        longhaul_written: Some(0),
        retransmits: Some(1),
        round_trips: Some((4, 5)),
        tcp_rtt_us: Some(7),
        ..Traffic::new(CounterSource::Interface("eth0".into()), CounterScope::Interface, 10.0)
    };
    TrafficStep::new(None, at, traffic)
}

fn machine(at: Timestamp) -> MachineStep {
    MachineStep {
        at_us: at,
        observations: 3,
        processor_share: Some(0.5),
        processor_share_max: Some(0.9),
        memory_available_min: None,
        load_average_max: Some(2.0),
        signal_dbm_min: Some(-70.0),
        probe_cpu_ns: 7,
    }
}

fn samples(now: Timestamp) -> Samples {
    Samples { targets: vec![target()], now, ..Samples::default() }
}

/// Stores what the machine did on each of the days after the first.
fn add_days(writer: &Writer, days: u32) {
    let machine = (0..=days).map(|day| machine(NOON + day * DAY)).collect();
    writer.add_samples(Samples { machine, ..samples(NOON) }).unwrap();
}

fn filter(step: Resolution, since: Timestamp) -> SampleFilter {
    SampleFilter { target: None, kind: None, step, since, until: Timestamp::MAX }
}

fn stall(ended: Option<Timestamp>) -> Stall {
    Stall {
        ended_us: ended,
        calls: 2,
        longest_ns: 2_000_000_000,
        errors: [("EIO".to_owned(), 1)].into(),
        sources: vec!["probe".into()],
        ..Stall::new(target().name, NOON, "getattr")
    }
}

#[test]
fn late_samples_are_merged_into_their_step() {
    let db = TestDb::new();
    let writer = db.writer();
    for latencies in [&[1_000_000, 2_000_000][..], &[40_000_000_000], &[3_000_000]] {
        let probes = vec![probe(NOON + MICROSECOND, latencies), probe(NOON + Duration::from_secs(400), &[5])];
        writer.add_samples(Samples { probes, ..samples(NOON) }).unwrap();
    }
    let reader = db.reader();
    let five = reader.probe_steps(&filter(Resolution::FiveMinutes, NOON)).unwrap();
    let mut expected = Histogram::new();
    [1_000_000, 2_000_000, 40_000_000_000, 3_000_000].into_iter().for_each(|ns| expected.record(ns));
    assert_eq!((five.len(), five[0].at_us, five[0].timeouts), (2, NOON, 1));
    assert_eq!(five[0].latency, expected);
    for step in [Resolution::Hour, Resolution::HalfDay] {
        let all = reader.probe_steps(&filter(step, NOON)).unwrap();
        assert_eq!((all.len(), all[0].latency.count()), (1, 7), "{step:?}");
    }
}

#[test]
fn stored_samples_are_no_error_if_no_page_can_be_released() {
    let db = TestDb::new();
    drop(db.writer());
    // The number of free pages (sqlite.org/fileformat.html, 1.3.8): a wrong one keeps SQLite from releasing any.
    let file = OpenOptions::new().write(true).open(db.path()).unwrap();
    file.write_all_at(&u32::MAX.to_be_bytes(), 36).unwrap();
    db.writer().add_samples(Samples { machine: vec![machine(NOON)], ..samples(NOON) }).unwrap();
    assert_eq!(db.reader().machine_steps(&filter(Resolution::Hour, NOON)).unwrap(), [machine(NOON)]);
}

#[test]
fn sampled_target_without_a_run_can_be_read() {
    let db = TestDb::new();
    db.writer().add_samples(Samples { probes: vec![probe(NOON, &[5])], ..samples(NOON) }).unwrap();
    let found = db.reader().targets().unwrap();
    assert_eq!(found.iter().map(|stored| stored.runs).collect::<Vec<_>>(), [0]);
}

#[test]
fn kind_filter_works_and_targets_stay_in_order() {
    let db = TestDb::new();
    let afp = Target { name: "afp".parse().unwrap(), ..target() };
    let of = |target: &Target, at: Timestamp, kind| ProbeStep {
        target: target.name.clone(),
        kind,
        ..probe(at, &[1_000_000])
    };
    let hours = [NOON, NOON + HOUR];
    let targets = vec![target(), afp];
    let of_target =
        |target| hours.map(|at| [ProbeKind::Getattr, ProbeKind::Read].map(|kind| of(target, at, kind)));
    let probes = targets.iter().flat_map(of_target).flatten().collect();
    db.writer().add_samples(Samples { targets, probes, ..samples(NOON) }).unwrap();
    let filter = SampleFilter { kind: Some(ProbeKind::Read), ..filter(Resolution::Hour, NOON) };
    let found = db.reader().probe_steps(&filter).unwrap();
    let found: Vec<_> = found.iter().map(|step| (step.at_us, step.target.as_str(), step.kind)).collect();
    let expected = hours.map(|at| [(at, "smb", ProbeKind::Read), (at, "afp", ProbeKind::Read)]);
    assert_eq!(found, expected.concat());
}

#[test]
fn traffic_machine_and_stalls_are_read_back_unchanged() {
    let db = TestDb::new();
    let writer = db.writer();
    let (traffic_step, machine_step) = (traffic(NOON, None), machine(NOON));
    let new = Samples {
        traffic: vec![traffic_step.clone()],
        machine: vec![machine_step.clone()],
        stalls: vec![stall(None)],
        ..samples(NOON)
    };
    writer.add_samples(new).unwrap();
    let reader = db.reader();
    assert_eq!(reader.traffic_steps(&filter(Resolution::Hour, NOON)).unwrap(), [traffic_step]);
    assert_eq!(reader.machine_steps(&filter(Resolution::HalfDay, NOON)).unwrap(), [machine_step]);
    assert_eq!(
        reader.stalls(Timestamp::MAX).unwrap(),
        [stall(None)],
        "an open stall belongs to every window"
    );

    let ended = stall(Some(NOON + 5 * MICROSECOND));
    writer.add_samples(Samples { stalls: vec![ended.clone()], ..samples(NOON) }).unwrap();
    assert_eq!(reader.stalls(NOON).unwrap(), [ended], "the end is added to the same stall");
    assert_eq!(reader.stalls(NOON + 6 * MICROSECOND).unwrap(), []);
}

#[test]
fn open_stall_is_closed_at_the_last_sample() {
    let db = TestDb::new();
    let writer = db.writer();
    let new = Samples { stalls: vec![stall(None)], machine: vec![machine(NOON + 2 * STEP)], ..samples(NOON) };
    writer.add_samples(new).unwrap();
    writer.close_stalls(NOON + DAY).unwrap();
    let closed = Stall { is_truncated: true, ..stall(Some(NOON + 3 * STEP)) };
    assert_eq!(db.reader().stalls(Timestamp::UNIX_EPOCH).unwrap(), [closed]);
}

const STEP: Duration = Duration::from_mins(5);
const MICROSECOND: Duration = Duration::from_micros(1);

/// Stores samples in `steps` consecutive five-minute steps, starting at [`NOON`].
fn add_steps(writer: &Writer, steps: u32) {
    let moments = (0..steps).map(|step| NOON + step * STEP);
    let new = Samples {
        probes: moments.clone().map(|at| probe(at, &[7])).collect(),
        machine: moments.map(machine).collect(),
        ..samples(NOON)
    };
    writer.add_samples(new).unwrap();
}

#[test]
fn step_is_pending_after_another_five_minutes() {
    let db = TestDb::new();
    let writer = db.writer();
    add_steps(&writer, 4);
    let reader = db.reader();
    assert_eq!(reader.pending_items(Signal::Samples, 9).unwrap(), [NOON, NOON + STEP].map(Timestamp::as_us));
    writer.record_delivery(Signal::Samples, vec![NOON.as_us()], DeliveryStatus::Sent, at(1)).unwrap();
    assert_eq!(reader.pending_items(Signal::Samples, 9).unwrap(), [(NOON + STEP).as_us()]);
    assert_eq!(writer.expire(Signal::Samples, NOON + 2 * STEP + MICROSECOND, at(2)).unwrap(), 1);
    let outbox = reader.outbox_status(Signal::Samples).unwrap();
    assert_eq!((outbox.pending, outbox.sent, outbox.expired), (0, 1, 1));
    let step = reader.sampled_step(NOON).unwrap().unwrap();
    assert_eq!((step.probes, step.machine), (vec![probe(NOON, &[7])], Some(machine(NOON))));
    assert_eq!(reader.sampled_step(NOON - STEP).unwrap(), None);
}

#[test]
fn step_in_a_stall_is_exported_after_it_or_after_1_hour() {
    let db = TestDb::new();
    let writer = db.writer();
    let open_stall = Stall { started_us: NOON + STEP + MICROSECOND, ..stall(None) };
    writer.add_samples(Samples { stalls: vec![open_stall.clone()], ..samples(NOON) }).unwrap();
    add_steps(&writer, 6);
    let pending = || db.reader().pending_items(Signal::Samples, 99).unwrap();
    assert_eq!(pending(), [NOON.as_us()], "the step before the stall is complete");
    add_steps(&writer, 14);
    assert_eq!(
        pending(),
        [NOON, NOON + STEP].map(Timestamp::as_us),
        "after an hour a step is exported in spite of the stall"
    );
    let ended = Stall { ended_us: Some(NOON + 13 * STEP), ..open_stall };
    writer.add_samples(Samples { stalls: vec![ended], ..samples(NOON) }).unwrap();
    assert_eq!(pending().len(), 2, "late answers can still arrive just after the stall");
    add_steps(&writer, 15);
    assert_eq!(pending().len(), 13);
}

#[test]
fn steps_of_the_future_complete_no_other_step() {
    let db = TestDb::new();
    let writer = db.writer();
    add_steps(&writer, 3);
    let ahead = NOON + 200 * 365 * DAY;
    let machine = [ahead, ahead + STEP, ahead + 3 * STEP].map(machine).into();
    writer.add_samples(Samples { machine, ..samples(NOON) }).unwrap();
    let reader = db.reader();
    assert_eq!(reader.pending_items(Signal::Samples, 9).unwrap(), [NOON.as_us()]);
    let items = reader.items_between(Signal::Samples, Timestamp::MIN, Timestamp::MAX).unwrap();
    assert_eq!(items, [NOON.as_us()]);
}

#[test]
fn each_time_step_has_its_retention_period() {
    let db = TestDb::new();
    let writer = db.writer();
    let add = |now| {
        let probes = vec![probe(now, &[7])];
        let new = Samples {
            probes,
            traffic: vec![traffic(now, Some(1))],
            machine: vec![machine(now)],
            ..samples(now)
        };
        writer.add_samples(new).unwrap();
    };
    add_days(&writer, 1201);
    [0, 99, 101, 401, 1201].into_iter().for_each(|days| add(NOON + days * DAY));
    let reader = db.reader();
    let days_of = |step: Resolution| {
        let filter = filter(step, Timestamp::UNIX_EPOCH);
        let days = |step: &ProbeStep| step.at_us.since(NOON).as_secs() / DAY.as_secs();
        let probes: Vec<u64> = reader.probe_steps(&filter).unwrap().iter().map(days).collect();
        assert_eq!(reader.traffic_steps(&filter).unwrap().len(), probes.len());
        assert_eq!(reader.machine_steps(&filter).unwrap().len(), step.days_kept() as usize + 1);
        probes
    };
    assert_eq!(days_of(Resolution::FiveMinutes), [1201]);
    assert_eq!(days_of(Resolution::Hour), [1201]);
    assert_eq!(days_of(Resolution::HalfDay), [99, 101, 401, 1201]);
}

#[test]
fn clock_that_is_years_ahead_deletes_nothing() {
    let db = TestDb::new();
    let writer = db.writer();
    add_days(&writer, 30);
    for now in [NOON, NOON + 15 * 365 * DAY, NOON + 15 * 365 * DAY + STEP] {
        let new = Samples {
            probes: vec![probe(now, &[7])],
            traffic: vec![traffic(now, Some(1))],
            machine: vec![machine(now)],
            usage: vec![usage(now, Some(1))],
            ..samples(now)
        };
        writer.add_samples(new).unwrap();
    }
    let reader = db.reader();
    for step in Resolution::ALL {
        let filter = filter(step, Timestamp::UNIX_EPOCH);
        let days = reader.machine_steps(&filter).unwrap().len();
        assert!(days > 31, "{days} steps of {}", step.name());
        assert_eq!(reader.probe_steps(&filter).unwrap()[0].at_us, NOON, "{}", step.name());
        assert_eq!(reader.traffic_steps(&filter).unwrap()[0].at_us, NOON, "{}", step.name());
    }
    assert_eq!(reader.usage_by_day(Timestamp::MIN..Timestamp::MAX).unwrap()[0].at, NOON);
}

#[test]
fn samples_of_an_unknown_target_are_refused() {
    let db = TestDb::new();
    let writer = db.writer();
    let new = Samples {
        targets: vec![],
        machine: vec![machine(NOON)],
        probes: vec![probe(NOON, &[1])],
        ..samples(NOON)
    };
    assert!(writer.add_samples(new).is_err());
    assert_eq!(db.reader().machine_steps(&filter(Resolution::Hour, Timestamp::UNIX_EPOCH)).unwrap(), []);
}

#[test]
fn environment_facts_are_stored_per_subject() {
    let db = TestDb::new();
    let writer = db.writer();
    let facts = [("mtu".to_owned(), "1500".to_owned())].into();
    assert_eq!(db.reader().environment_facts("").unwrap(), None);
    writer.save_environment_facts("", &facts, at(1)).unwrap();
    assert_eq!(db.reader().environment_facts("").unwrap(), Some(facts));
    assert_eq!(db.reader().environment_facts("smb").unwrap(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn merged_histograms_equal_the_histogram_of_all_values(
        values in proptest::collection::vec((0u64..86_400, 1u64..100_000_000_000), 1..60),
    ) {
        let db = TestDb::new();
        let writer = db.writer();
        let mut all = Histogram::new();
        for (second, latency) in &values {
            all.record(*latency);
            let probes = vec![probe(NOON + Duration::from_secs(*second), &[*latency])];
            writer.add_samples(Samples { probes, ..samples(NOON) }).unwrap();
        }
        for step in Resolution::ALL {
            let mut merged = Histogram::new();
            db.reader().probe_steps(&filter(step, NOON)).unwrap().iter().for_each(|step| merged.merge(&step.latency));
            prop_assert_eq!(&merged, &all);
        }
    }
}

fn usage(at: Timestamp, reads: Option<u64>) -> UsageStep {
    UsageStep {
        counted_seconds: 10.0,
        left_out_seconds: 5.0,
        requests: RequestCounts::default().with(RequestKind::Read, reads),
        files_read: reads,
        written_bytes: Some(7),
        ..UsageStep::new(target().name, CounterSource::Mountstats, at)
    }
}

#[test]
fn usage_is_added_up_by_day_and_unknown_counts_stay_unknown() {
    let db = TestDb::new();
    let writer = db.writer();
    for (at, reads) in
        [(NOON, Some(3)), (NOON + MICROSECOND, None), (NOON + HOUR, Some(4)), (NOON + DAY, None)]
    {
        writer.add_samples(Samples { usage: vec![usage(at, reads)], ..samples(NOON) }).unwrap();
    }
    let found = db.reader().usage_by_day(NOON..NOON + 2 * DAY).unwrap();
    let day = UsageStep {
        counted_seconds: 30.0,
        left_out_seconds: 15.0,
        written_bytes: Some(21),
        ..usage(NOON, Some(7))
    };
    assert_eq!(found, [day, usage(NOON + DAY, None)]);
    assert_eq!(db.reader().task_requests().unwrap(), crate::TaskRequests::default());
}

#[test]
fn usage_is_deleted_after_400_days() {
    let db = TestDb::new();
    add_days(&db.writer(), 402);
    for at in [NOON, NOON + 402 * DAY] {
        db.writer().add_samples(Samples { usage: vec![usage(at, Some(1))], ..samples(at) }).unwrap();
    }
    assert_eq!(db.reader().usage_by_day(Timestamp::MIN..Timestamp::MAX).unwrap().len(), 1);
}
