//! Tests the sampler from received samples and counters to stored batches, with simulated time.

use std::sync::Arc;

use longhaul_measure::recorder::PROBE_THREAD_SLOT;
use longhaul_model::{
    CounterReading, CounterScope, CounterSource, Counters, Operation, ProbeKind, ProbeSample, Protocol,
    SlowCall, Timestamp,
};
use parking_lot::Mutex;

use super::*;

const SECOND_NS: i64 = 1_000_000_000;

/// Sensors whose read counter the test sets. `None`: no reading.
#[derive(Clone, Default)]
struct FakeSensors(Arc<Mutex<Option<u64>>>);

impl Sensors for FakeSensors {
    fn counter_readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<CounterReading>> {
        let read_bytes = *self.0.lock();
        let counters = |target: &TargetName| CounterReading {
            target: Some(target.clone()),
            counters: vec![Ok(Counters {
                read_bytes,
                written_bytes: Some(0),
                requests: Some(0),
                reconnects: Some(read_bytes.unwrap_or(0) / 1_000_000_000),
                ..Counters::new(CounterSource::CifsStats, CounterScope::Mount, "1".to_owned())
            })],
        };
        read_bytes.map(|_| mounts.iter().map(|(target, _)| counters(target)).collect())
    }
}

fn smb() -> TargetName {
    "smb".parse().unwrap()
}

fn mounts() -> Vec<(TargetName, Mount)> {
    let mount = Mount::new("/m/smb", "nas:/share", Protocol::Nfs(None));
    vec![(smb(), mount)]
}

/// Returns the time this many seconds after the start.
fn at(second: i64) -> Timestamp {
    Timestamp::from_us(second * 1_000_000)
}

/// Returns the sampling context at `second` seconds after the start.
fn context<'a>(
    mounts: &'a [(TargetName, Mount)],
    second: i64,
    during: Option<&'a str>,
) -> SamplingContext<'a> {
    let now = ClockReading {
        wall: at(second),
        utc_offset_seconds: 0,
        awake_ns: second * SECOND_NS,
        continuous_ns: second * SECOND_NS,
    };
    SamplingContext { now, monotonic_ns: now.awake_ns.cast_unsigned(), mounts, during }
}

fn read(second: i64, latency_ns: u64) -> ProbeSample {
    ProbeSample {
        kind: ProbeKind::Read,
        at_us: at(second),
        latency_ns,
        call_ns: Some(latency_ns),
        error: None,
        during: None,
    }
}

fn probed(slots: Vec<ProbeSample>) -> (TargetName, WorkerSample) {
    (smb(), WorkerSample::Probes { slots, cost_ns: 5 })
}

/// Returns a sampler, and the flight recorder of a process whose probe has made a call since second 100.
fn sampler_with_pending_call() -> (Sampler, Arc<Recorder>) {
    let mut sampler = Sampler::new(Box::new(FakeSensors::default()));
    let recorder = Arc::new(Recorder::private().unwrap());
    recorder.thread_slot(PROBE_THREAD_SLOT).begin(Operation::Getattr, (100 * SECOND_NS).cast_unsigned());
    sampler.set_recorder(&smb(), Some(Arc::clone(&recorder)));
    (sampler, recorder)
}

#[test]
fn pending_call_is_a_stall_and_ends_as_one_row() {
    let (mounts, (mut sampler, recorder)) = (mounts(), sampler_with_pending_call());
    sampler.tick(&context(&mounts, 100, None));
    assert_eq!(sampler.ongoing_stalls().count(), 0, "the call has only just started");
    sampler.tick(&context(&mounts, 102, Some("a round")));
    assert_eq!(sampler.ongoing_stalls().count(), 1);
    let stored = sampler.take_samples(&context(&mounts, 102, None).now).stalls;
    assert_eq!((stored[0].started_us, stored[0].ended_us), (at(100), None));

    recorder.thread_slot(PROBE_THREAD_SLOT).end(Operation::Getattr, 30_000_000_000, &Ok::<(), ()>(()));
    let slow_call = SlowCall {
        operation: Operation::Getattr,
        at_us: at(100),
        duration_ns: 30_000_000_000,
        error: None,
        workload: None,
    };
    sampler.new_sender().send((smb(), WorkerSample::SlowCall(slow_call))).unwrap();
    sampler.tick(&context(&mounts, 131, None));
    sampler.tick(&context(&mounts, 145, None));
    assert_eq!(sampler.ongoing_stalls().count(), 0);
    let samples = sampler.take_samples(&context(&mounts, 145, None).now);
    let stall = &samples.stalls[0];
    assert_eq!((samples.stalls.len(), stall.opened_us, stall.ended_us), (1, at(100), Some(at(130))));
    assert_eq!(stall.during.as_deref(), Some("a round"));
    sampler.restore(samples.clone());
    assert_eq!(
        sampler.take_samples(&context(&mounts, 146, None).now).stalls,
        samples.stalls,
        "stalls that could not be stored are returned again"
    );
}

#[test]
fn stall_ends_if_its_process_ended_without_a_report() {
    let (mounts, (mut sampler, _recorder)) = (mounts(), sampler_with_pending_call());
    sampler.tick(&context(&mounts, 130, None));
    sampler.set_recorder(&smb(), None);
    sampler.tick(&context(&mounts, 145, None));
    assert_eq!(sampler.ongoing_stalls().count(), 0);
    let stalls = sampler.take_samples(&context(&mounts, 145, None).now).stalls;
    assert_eq!((stalls[0].started_us, stalls[0].ended_us), (at(100), Some(at(130))));
}

#[test]
fn slow_round_overloads_only_a_share_that_a_user_uses() {
    let mounts = mounts();
    let counters = FakeSensors::default();
    let mut sampler = Sampler::new(Box::new(counters.clone()));
    let sender = sampler.new_sender();
    sender.send(probed((0..30).map(|second| read(second, 1_000_000)).collect())).unwrap();
    sampler.tick(&context(&mounts, 30, None));
    sender.send(probed((31..40).map(|second| read(second, 8_000_000)).collect())).unwrap();
    sampler.tick(&context(&mounts, 40, Some("a round")));
    assert_eq!(sampler.overloaded_target(&context(&mounts, 40, None).now, 3.0), None, "no user is active");

    for (second, bytes) in [(41, 0), (51, 50_000_000)] {
        *counters.0.lock() = Some(bytes);
        sampler.read_counters(&context(&mounts, second, None), SECOND_NS);
    }
    let now = context(&mounts, 52, None).now;
    assert!(sampler.is_in_use(&smb(), &now));
    let (target, times) = sampler.overloaded_target(&now, 3.0).unwrap();
    assert!(target == smb() && (7.9..8.1).contains(&times), "{times}");
    for factor in [times, 9.0] {
        assert_eq!(sampler.overloaded_target(&now, factor), None, "slower by no more than the factor");
    }
    let samples = sampler.take_samples(&now);
    let found: Vec<_> = samples.probes.iter().map(|step| (step.during, step.latency.count())).collect();
    assert_eq!(found, [(LoadContext::Idle, 30), (LoadContext::Round, 9)]);
    assert_eq!(samples.machine[0].probe_cpu_ns, 10);
    assert_eq!(samples.traffic[0].traffic.user_read, Some(50_000_000));
}

#[test]
fn consecutive_reconnects_are_one_event() {
    let mounts = mounts();
    let counters = FakeSensors::default();
    let mut sampler = Sampler::new(Box::new(counters.clone()));
    let billions = [0, 1, 3, 7, 7, 8];
    for (second, bytes) in (1..).step_by(10).zip(billions.map(|count| count * 1_000_000_000)) {
        *counters.0.lock() = Some(bytes);
        sampler.read_counters(&context(&mounts, second, None), SECOND_NS);
    }
    let events = sampler.take_events();
    let found: Vec<_> = events.iter().map(|event| (event.kind.as_str(), &event.detail["count"])).collect();
    assert_eq!(found, [("reconnect", &json!(1)), ("reconnect", &json!(1))]);
    assert!(sampler.take_events().is_empty());
}

#[test]
fn probe_error_is_kept_until_the_probe_works() {
    let mounts = mounts();
    let mut sampler = Sampler::new(Box::new(FakeSensors::default()));
    sampler
        .new_sender()
        .send((smb(), WorkerSample::ProbeDisabled { reason: "read-only".to_owned() }))
        .unwrap();
    sampler.tick(&context(&mounts, 1, None));
    assert_eq!(sampler.probe_error(&smb()), Some("read-only"));
    sampler.new_sender().send(probed(vec![])).unwrap();
    sampler.tick(&context(&mounts, 2, None));
    assert_eq!(sampler.probe_error(&smb()), None);
}
