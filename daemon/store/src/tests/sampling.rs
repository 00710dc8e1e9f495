//! Samples: merged into three steps as they come, kept for so long, and small.

use longhaul_measure::model::{
    Beside, Covers, LOST_NS, MachineStep, ProbeKind, ProbeStep, Source, Stall, Step, Target, Traffic,
    TrafficStep,
};
use longhaul_measure::stats::Histogram;
use proptest::prelude::*;

use super::{Place, target};
use crate::{Fate, SampleFilter, Samples, Signal, Writer};

const DAY_US: i64 = 86_400_000_000;
const HOUR_US: i64 = 3_600_000_000;
/// A moment at which every step begins.
const NOON_US: i64 = 20_000 * DAY_US;

fn probe(at_us: i64, latencies_ns: &[u64]) -> ProbeStep {
    let mut step = ProbeStep::new(target().name, at_us, ProbeKind::Read, Beside::Calm);
    latencies_ns.iter().for_each(|latency| step.latency.record(*latency));
    step.lost = latencies_ns.iter().filter(|latency| **latency >= LOST_NS).count() as u64;
    step
}

fn traffic(at_us: i64, user_read: Option<u64>) -> TrafficStep {
    let traffic = Traffic {
        source: Source::Interface("eth0".into()),
        covers: Covers::Interface,
        seconds: 10.0,
        user_read,
        user_written: Some(u64::MAX),
        own_read: None,
        own_written: Some(0),
        requests: None,
        retransmissions: Some(1),
        errors: None,
        reconnects: None,
        round_trips: Some((4, 5)),
        packet_round_trip_us: Some(7),
    };
    TrafficStep::of(None, at_us, traffic)
}

fn machine(at_us: i64) -> MachineStep {
    MachineStep {
        at_us,
        looks: 3,
        processor_share: Some(0.5),
        processor_peak: Some(0.9),
        memory_least: None,
        load_most: Some(2.0),
        signal_least: Some(-70.0),
        probe_ns: 7,
    }
}

fn samples(now_us: i64) -> Samples {
    Samples { targets: vec![target()], now_us, ..Samples::default() }
}

fn filter(step: Step, since_us: i64) -> SampleFilter {
    SampleFilter { target: None, kind: None, step, since_us, until_us: i64::MAX }
}

fn stall(ended_us: Option<i64>) -> Stall {
    Stall {
        target: target().name,
        opened_us: NOON_US,
        started_us: NOON_US,
        ended_us,
        is_cut: false,
        operation: "getattr".into(),
        calls: 2,
        longest_ns: 2_000_000_000,
        errors: [("EIO".to_owned(), 1)].into(),
        who: vec!["probe".into()],
        beside: None,
    }
}

#[test]
fn what_comes_late_is_merged_into_its_step_and_no_value_is_lost() {
    let place = Place::new();
    let writer = place.writer();
    for latencies in [&[1_000_000, 2_000_000][..], &[40_000_000_000], &[3_000_000]] {
        let probes = vec![probe(NOON_US + 1, latencies), probe(NOON_US + 400_000_000, &[5])];
        writer.add_samples(Samples { probes, ..samples(NOON_US) }).unwrap();
    }
    let reader = place.reader();
    let five = reader.probes(&filter(Step::FiveMinutes, NOON_US)).unwrap();
    let mut expected = Histogram::new();
    [1_000_000, 2_000_000, 40_000_000_000, 3_000_000].into_iter().for_each(|ns| expected.record(ns));
    assert_eq!((five.len(), five[0].at_us, five[0].lost), (2, NOON_US, 1));
    assert_eq!(five[0].latency, expected);
    for step in [Step::Hour, Step::HalfDay] {
        let all = reader.probes(&filter(step, NOON_US)).unwrap();
        assert_eq!((all.len(), all[0].latency.count()), (1, 7), "{step:?}");
    }
}

#[test]
fn only_the_kind_that_is_asked_for_is_read_and_targets_keep_their_order() {
    let place = Place::new();
    let afp = Target { name: "afp".parse().unwrap(), ..target() };
    let of = |target: &Target, at_us: i64, kind| ProbeStep {
        target: target.name.clone(),
        kind,
        ..probe(at_us, &[1_000_000])
    };
    let hours = [NOON_US, NOON_US + HOUR_US];
    let targets = vec![target(), afp];
    let of_target =
        |target| hours.map(|at_us| [ProbeKind::Getattr, ProbeKind::Read].map(|kind| of(target, at_us, kind)));
    let probes = targets.iter().flat_map(of_target).flatten().collect();
    place.writer().add_samples(Samples { targets, probes, ..samples(NOON_US) }).unwrap();
    let asked = SampleFilter { kind: Some(ProbeKind::Read), ..filter(Step::Hour, NOON_US) };
    let found = place.reader().probes(&asked).unwrap();
    let found: Vec<_> = found.iter().map(|step| (step.at_us, step.target.as_str(), step.kind)).collect();
    let expected = hours.map(|at_us| [(at_us, "smb", ProbeKind::Read), (at_us, "afp", ProbeKind::Read)]);
    assert_eq!(found, expected.concat());
}

#[test]
fn counts_machine_and_ledger_come_back_as_they_went_in() {
    let place = Place::new();
    let writer = place.writer();
    let (counted, looked) = (traffic(NOON_US, None), machine(NOON_US));
    let new = Samples {
        traffic: vec![counted.clone()],
        machine: vec![looked.clone()],
        stalls: vec![stall(None)],
        ..samples(NOON_US)
    };
    writer.add_samples(new).unwrap();
    let reader = place.reader();
    assert_eq!(reader.traffic(&filter(Step::Hour, NOON_US)).unwrap(), [counted]);
    assert_eq!(reader.machine(&filter(Step::HalfDay, NOON_US)).unwrap(), [looked]);
    assert_eq!(reader.stalls(i64::MAX).unwrap(), [stall(None)], "what has not ended belongs to every window");

    let ended = stall(Some(NOON_US + 5));
    writer.add_samples(Samples { stalls: vec![ended.clone()], ..samples(NOON_US) }).unwrap();
    assert_eq!(reader.stalls(NOON_US).unwrap(), [ended], "more is known of the same line");
    assert_eq!(reader.stalls(NOON_US + 6).unwrap(), []);
}

#[test]
fn a_stall_whose_end_nobody_saw_ends_with_the_last_sample() {
    let place = Place::new();
    let writer = place.writer();
    let new = Samples {
        stalls: vec![stall(None)],
        machine: vec![machine(NOON_US + 600_000_000)],
        ..samples(NOON_US)
    };
    writer.add_samples(new).unwrap();
    writer.close_stalls(NOON_US + DAY_US).unwrap();
    let closed = Stall { is_cut: true, ..stall(Some(NOON_US + 900_000_000)) };
    assert_eq!(place.reader().stalls(0).unwrap(), [closed]);
}

const STEP_US: i64 = 300_000_000;

/// Something in so many steps from noon on.
fn sampled(writer: &Writer, steps: i64) {
    let moments = (0..steps).map(|step| NOON_US + step * STEP_US);
    let new = Samples {
        probes: moments.clone().map(|at_us| probe(at_us, &[7])).collect(),
        machine: moments.map(machine).collect(),
        ..samples(NOON_US)
    };
    writer.add_samples(new).unwrap();
}

#[test]
fn five_minutes_wait_for_export_once_another_five_have_passed() {
    let place = Place::new();
    let writer = place.writer();
    sampled(&writer, 4);
    let reader = place.reader();
    assert_eq!(reader.waiting(Signal::Samples, 9).unwrap(), [NOON_US, NOON_US + STEP_US]);
    writer.settle(Signal::Samples, vec![NOON_US], (Fate::Sent, 1)).unwrap();
    assert_eq!(reader.waiting(Signal::Samples, 9).unwrap(), [NOON_US + STEP_US]);
    assert_eq!(writer.expire(Signal::Samples, NOON_US + 2 * STEP_US + 1, 2).unwrap(), 1);
    let outbox = reader.outbox(Signal::Samples).unwrap();
    assert_eq!((outbox.waiting, outbox.sent, outbox.expired), (0, 1, 1));
    let step = reader.sampled_step(NOON_US).unwrap().unwrap();
    assert_eq!((step.probes, step.machine), (vec![probe(NOON_US, &[7])], Some(machine(NOON_US))));
    assert_eq!(reader.sampled_step(NOON_US - STEP_US).unwrap(), None);
}

#[test]
fn what_a_stall_may_still_add_to_is_exported_after_it_or_after_an_hour() {
    let place = Place::new();
    let writer = place.writer();
    let hanging = Stall { started_us: NOON_US + STEP_US + 1, ..stall(None) };
    writer.add_samples(Samples { stalls: vec![hanging.clone()], ..samples(NOON_US) }).unwrap();
    sampled(&writer, 6);
    let waiting = || place.reader().waiting(Signal::Samples, 99).unwrap();
    assert_eq!(waiting(), [NOON_US], "before it began everything was answered");
    sampled(&writer, 14);
    assert_eq!(waiting(), [NOON_US, NOON_US + STEP_US], "after an hour it is said without what still hangs");
    let ended = Stall { ended_us: Some(NOON_US + 13 * STEP_US), ..hanging };
    writer.add_samples(Samples { stalls: vec![ended], ..samples(NOON_US) }).unwrap();
    assert_eq!(waiting().len(), 2, "its late answers are on their way");
    sampled(&writer, 15);
    assert_eq!(waiting().len(), 13);
}

#[test]
fn each_step_is_kept_for_as_long_as_it_says() {
    let place = Place::new();
    let writer = place.writer();
    let add = |now_us| {
        let probes = vec![probe(now_us, &[7])];
        let new = Samples {
            probes,
            traffic: vec![traffic(now_us, Some(1))],
            machine: vec![machine(now_us)],
            ..samples(now_us)
        };
        writer.add_samples(new).unwrap();
    };
    [0, 99, 101, 401, 1201].into_iter().for_each(|days| add(NOON_US + days * DAY_US));
    let reader = place.reader();
    let kept = |step| {
        let filter = filter(step, 0);
        let probes: Vec<i64> =
            reader.probes(&filter).unwrap().iter().map(|step| (step.at_us - NOON_US) / DAY_US).collect();
        assert_eq!(reader.traffic(&filter).unwrap().len(), probes.len());
        assert_eq!(reader.machine(&filter).unwrap().len(), probes.len());
        probes
    };
    assert_eq!(kept(Step::FiveMinutes), [1201]);
    assert_eq!(kept(Step::Hour), [1201]);
    assert_eq!(kept(Step::HalfDay), [99, 101, 401, 1201]);
}

#[test]
fn samples_of_an_unknown_target_are_refused_as_a_whole() {
    let place = Place::new();
    let writer = place.writer();
    let new = Samples {
        targets: vec![],
        machine: vec![machine(NOON_US)],
        probes: vec![probe(NOON_US, &[1])],
        ..samples(NOON_US)
    };
    assert!(writer.add_samples(new).is_err());
    assert_eq!(place.reader().machine(&filter(Step::Hour, 0)).unwrap(), []);
}

#[test]
fn what_the_surroundings_were_like_is_remembered() {
    let place = Place::new();
    let writer = place.writer();
    let facts = [("mtu".to_owned(), "1500".to_owned())].into();
    assert_eq!(place.reader().surroundings("").unwrap(), None);
    writer.keep_surroundings("", &facts, 1).unwrap();
    assert_eq!(place.reader().surroundings("").unwrap(), Some(facts));
    assert_eq!(place.reader().surroundings("smb").unwrap(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_percentile_of_long_steps_is_that_of_all_values(
        values in proptest::collection::vec((0i64..86_400, 1u64..100_000_000_000), 1..60),
    ) {
        let place = Place::new();
        let writer = place.writer();
        let mut all = Histogram::new();
        for (second, latency) in &values {
            all.record(*latency);
            let probes = vec![probe(NOON_US + second * 1_000_000, &[*latency])];
            writer.add_samples(Samples { probes, ..samples(NOON_US) }).unwrap();
        }
        for step in Step::ALL {
            let mut merged = Histogram::new();
            place.reader().probes(&filter(step, NOON_US)).unwrap().iter().for_each(|step| merged.merge(&step.latency));
            prop_assert_eq!(&merged, &all);
        }
    }
}
