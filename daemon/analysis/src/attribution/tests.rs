//! Tests of attribution with phases as kernels report them.

use std::collections::BTreeMap;

use longhaul_model::{
    CacheState, CallTotals, MetricSeconds, PhaseTimes, Protocol, RequestTimes, RequestTotals, TcpCounters,
};
use proptest::prelude::*;

use super::{Attribution, Layer, attribute};

/// Opening a folder over NFS in 1.2 s, with 9 round trips of 1 ms, and 0.05 s of processor time.
pub(super) fn nfs() -> PhaseTimes {
    let requests = RequestTotals {
        answered: Some(9),
        queue_us: Some(0),
        answer_us: Some(20_000),
        execute_us: Some(20_000),
    };
    let tcp = TcpCounters { min_rtt_us: Some(1_000), ..TcpCounters::default() };
    PhaseTimes {
        run: 1,
        round: 1,
        target: "nfs".parse().unwrap(),
        protocol: Some(Protocol::Nfs(Some("4.2".to_owned()))),
        workload: "folder-index".to_owned(),
        metrics: vec![MetricSeconds { metric: "folder-cold".to_owned(), seconds: 1.2 }],
        round_trip_us: Some(1_100),
        send_rate: None,
        phase: "open-folder".to_owned(),
        cache: CacheState::Cold,
        seconds: 1.2,
        calls: CallTotals { calls: 100, data_calls: 0, seconds: 1.1, decode_seconds: 0.0 },
        wire_read: Some(200_000),
        wire_written: Some(0),
        wire_requests: Some(9),
        times: Some(RequestTimes {
            requests,
            tcp,
            retransmits: Some(0),
            processor_us: Some(50_000),
            processor_wait_us: Some(0),
            kernel_us: Some(0),
            ..RequestTimes::default()
        }),
    }
}

/// Returns the phase with other times.
pub(super) fn with_times(phase: PhaseTimes, change: impl FnOnce(&mut RequestTimes)) -> PhaseTimes {
    let mut phase = phase;
    change(phase.times.as_mut().unwrap());
    phase
}

/// Returns the phase as SMB reports it: no times of requests, but segments.
pub(super) fn smb(phase: PhaseTimes) -> PhaseTimes {
    let phase = with_times(phase, |times| {
        times.tcp.segments_sent = times.requests.answered;
        times.requests = RequestTotals::default();
    });
    PhaseTimes {
        target: "smb".parse().unwrap(),
        protocol: Some(Protocol::Smb(Some("3.1.1".to_owned()))),
        ..phase
    }
}

fn answered_in(milliseconds: u64) -> PhaseTimes {
    with_times(nfs(), |times| times.requests.answer_us = Some(milliseconds * 1000))
}

fn one(phases: &[PhaseTimes], disk_seconds: &BTreeMap<i64, f64>) -> Attribution {
    let mut found = attribute(phases, disk_seconds);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn alone(phase: PhaseTimes) -> Attribution {
    one(&[phase], &BTreeMap::new())
}

fn near(found: Option<f64>, expected: f64) {
    assert!(found.is_some_and(|found| (found - expected).abs() < 0.002), "{found:?}, expected {expected}");
}

#[test]
fn a_slow_server_takes_what_the_wire_does_not() {
    let found = alone(answered_in(1_100));
    near(found.seconds_of(Layer::Wire), 0.009);
    near(found.seconds_of(Layer::Server), 1.091);
    near(found.seconds_of(Layer::Client), 0.1);
    assert_eq!((found.largest, found.round_trips), (Some(Layer::Server), Some(9.0)));
    assert_eq!(found.seconds_of(Layer::ServerDisk), None, "no NAS was asked");
}

#[test]
fn a_long_wire_is_named_over_nfs_and_smb() {
    let slow = with_times(answered_in(1_100), |times| times.tcp.min_rtt_us = Some(120_000));
    let slow = PhaseTimes { round_trip_us: Some(121_000), ..slow };
    for found in [alone(slow.clone()), alone(smb(slow))] {
        near(found.seconds_of(Layer::Wire), 1.08);
        assert_eq!(found.largest, Some(Layer::Wire), "{found:?}");
    }
}

#[test]
fn a_busy_computer_is_the_client() {
    let busy = with_times(nfs(), |times| times.processor_wait_us = Some(1_000_000));
    let found = alone(busy);
    assert_eq!(found.largest, Some(Layer::Client), "{found:?}");
    near(found.seconds_of(Layer::Client), 1.18);
}

#[test]
fn requests_that_wait_before_they_are_sent_are_the_queue() {
    let queued = with_times(answered_in(50), |times| times.requests.queue_us = Some(1_000_000));
    let found = alone(queued);
    near(found.seconds_of(Layer::Queue), 1.0);
    assert_eq!(found.largest, Some(Layer::Queue));
}

#[test]
fn a_queue_behind_own_requests_is_not_blamed() {
    let overlapping = with_times(answered_in(9_000), |times| times.requests.queue_us = Some(5_000_000));
    let found = alone(overlapping);
    near(found.seconds_of(Layer::Queue), 0.0);
    assert_eq!(found.largest, Some(Layer::Server));
    assert!(found.parts[Layer::Queue as usize].high > Some(0.3), "it may be part of the time");
}

#[test]
fn retransmissions_belong_to_the_wire() {
    let lossy = with_times(answered_in(1_100), |times| {
        times.retransmits = Some(2);
        times.tcp.timeout_us = Some(200_000);
    });
    let found = alone(lossy.clone());
    near(found.seconds_of(Layer::Wire), 2.0 * 1.6 * 0.2 + 0.009);
    assert_eq!(found.largest, Some(Layer::Wire));
    let in_long_messages = with_times(lossy, |times| times.tcp.segments_sent = Some(90));
    let found = alone(in_long_messages.clone());
    near(found.seconds_of(Layer::Wire), 0.2 * 1.6 * 0.2 + 1.8 * 0.001 + 0.009);
    assert!(found.parts[Layer::Wire as usize].high > Some(0.9), "all may have been messages of their own");
    let mut at_once = with_times(in_long_messages, |times| times.requests.answer_us = Some(2_300_000));
    near(alone(at_once.clone()).seconds_of(Layer::Wire), 0.2 * 1.6 * 0.2 + 1.8 * 0.001 + 0.009);
    at_once.calls.data_calls = 9;
    near(alone(at_once).seconds_of(Layer::Wire), (2.0 * 0.001 + 0.009) / 2.0);
}

#[test]
fn bytes_take_time_only_if_the_bandwidth_is_known() {
    let large = PhaseTimes { wire_read: Some(1_000_000), ..answered_in(1_100) };
    let found = alone(large.clone());
    near(found.seconds_of(Layer::Wire), 0.009);
    assert!(found.parts[Layer::Wire as usize].high > Some(1.0), "the network may limit it: {found:?}");
    let found = alone(with_times(large, |times| times.tcp.delivery_rate = Some(1_000_000)));
    near(found.seconds_of(Layer::Wire), 1.009);
}

#[test]
fn bytes_of_listings_count_at_the_rate_that_was_measured_before_the_run() {
    let listed = with_times(smb(answered_in(1_100)), |times| times.received_bytes = Some(900_000));
    near(alone(listed.clone()).seconds_of(Layer::Wire), 0.009);
    let slow = PhaseTimes { send_rate: Some(1_000_000), ..listed };
    near(alone(slow.clone()).seconds_of(Layer::Wire), 0.909);
    // The phase itself was faster than what was measured before.
    let slower = alone(PhaseTimes { send_rate: Some(100_000), ..slow });
    near(slower.seconds_of(Layer::Wire), 1.15);
}

#[test]
fn a_disk_is_named_only_if_the_nas_reports_it() {
    let found = one(&[answered_in(1_100)], &BTreeMap::from([(1, 1.0)]));
    near(found.seconds_of(Layer::ServerDisk), 1.0);
    near(found.seconds_of(Layer::Server), 0.091);
    assert_eq!(found.largest, Some(Layer::ServerDisk));
    let found = one(&[answered_in(1_100)], &BTreeMap::from([(1, 0.0)]));
    assert_eq!((found.seconds_of(Layer::ServerDisk), found.largest), (Some(0.0), Some(Layer::Server)));
}

#[test]
fn without_times_everything_is_unknown() {
    let found = alone(PhaseTimes { times: None, ..nfs() });
    assert!(found.parts.iter().all(|part| part.seconds.is_none()));
    assert_eq!((found.largest, found.round_trips, found.seconds), (None, None, 1.2));
}

#[test]
fn without_a_round_trip_time_wire_and_server_are_unknown() {
    let unknown = with_times(answered_in(1_100), |times| times.tcp.min_rtt_us = None);
    let found = alone(PhaseTimes { round_trip_us: None, ..unknown });
    assert_eq!((found.seconds_of(Layer::Wire), found.seconds_of(Layer::Server)), (None, None));
    near(found.seconds_of(Layer::Client), 0.1);
}

#[test]
fn in_a_quiet_network_nothing_stands_out() {
    let quiet = PhaseTimes {
        seconds: 0.06,
        calls: CallTotals { calls: 100, data_calls: 0, seconds: 0.055, decode_seconds: 0.0 },
        metrics: vec![MetricSeconds { metric: "folder-cold".to_owned(), seconds: 0.06 }],
        ..nfs()
    };
    assert_eq!(alone(quiet.clone()).largest, None);
    assert_eq!(alone(smb(quiet)).largest, None);
}

#[test]
fn a_local_disk_is_left_out() {
    let local = PhaseTimes { protocol: Some(Protocol::Local("ext4".to_owned())), ..nfs() };
    assert_eq!(attribute(&[local], &BTreeMap::new()), []);
}

#[test]
fn an_interval_spans_few_rounds_and_narrows_with_many() {
    let rounds = |count: i64| -> Vec<PhaseTimes> {
        let round = |run| PhaseTimes { run, wire_read: None, ..answered_in(900 + 10 * (run as u64 % 11)) };
        (0..count).map(round).collect()
    };
    let width = |count| {
        let found = one(&rounds(count), &BTreeMap::new());
        let server = found.parts[Layer::Server as usize];
        assert_eq!(found.rounds, count as usize);
        server.high.unwrap() - server.low.unwrap()
    };
    assert!(width(44) < 0.7 * width(11), "{} {}", width(44), width(11));
}

proptest! {
    #[test]
    fn known_parts_add_up_to_the_time_that_was_felt(
        numbers in any::<[u32; 6]>(), min_rtt_us in option_of_time(), is_smb: bool, disk in 0.0..9.0f64,
    ) {
        let [processor, waited, answer, queue, lost, bytes] = numbers.map(u64::from);
        let phase = with_times(nfs(), |times| {
            times.processor_us = Some(processor % 2_000_000);
            times.processor_wait_us = Some(waited % 2_000_000);
            times.requests.answer_us = Some(answer % 9_000_000);
            times.requests.queue_us = Some(queue % 9_000_000);
            times.retransmits = Some(lost % 5);
            times.tcp.min_rtt_us = min_rtt_us;
        });
        let phase = PhaseTimes { wire_read: Some(bytes), ..phase };
        let phase = if is_smb { smb(phase) } else { phase };
        let found = one(&[phase], &BTreeMap::from([(1, disk)]));
        let sum: f64 = found.parts.iter().filter_map(|part| part.seconds).sum();
        prop_assert!((sum - found.seconds).abs() < 1e-9, "{:?}", found);
        for part in &found.parts {
            prop_assert!(part.low <= part.seconds && part.seconds <= part.high, "{:?}", part);
            prop_assert!(part.seconds.is_none_or(|seconds| seconds >= 0.0));
        }
    }
}

fn option_of_time() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(1u64..1_000_000)
}
