//! The sampler from what workers and counters say to what is stored, without a clock of its own.

use std::sync::{Arc, Mutex};

use longhaul_measure::model::{
    Counters, Covers, Negotiated, Operation, ProbeKind, Probed, Protocol, Reading, Source, Waited,
};

use super::*;

const SECOND_NS: i64 = 1_000_000_000;

/// Counters as the test sets them.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Option<u64>>>);

impl Sensors for Scripted {
    fn readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<Reading>> {
        let read_bytes = *self.0.lock().unwrap();
        let counters = |target: &TargetName| Reading {
            target: Some(target.clone()),
            counters: vec![Ok(Counters {
                source: Source::CifsStats,
                covers: Covers::Mount,
                life: "1".to_owned(),
                age_seconds: None,
                read_bytes,
                written_bytes: Some(0),
                requests: Some(0),
                retransmissions: None,
                errors: None,
                reconnects: Some(read_bytes.unwrap_or(0) / 1_000_000_000),
                round_trips: None,
                packet_round_trip_us: None,
                server: None,
            })],
        };
        read_bytes.map(|_| mounts.iter().map(|(target, _)| counters(target)).collect())
    }

    fn machine(&mut self) -> MachineStep {
        MachineStep { looks: 1, load_most: Some(1.0), ..MachineStep::default() }
    }

    fn facts(&mut self) -> Option<BTreeMap<String, String>> {
        None
    }
}

fn smb() -> TargetName {
    "smb".parse().unwrap()
}

fn mounts() -> Vec<(TargetName, Mount)> {
    let mount = Mount {
        point: "/m/smb".into(),
        source: "nas:/share".into(),
        protocol: Protocol::Nfs(None),
        negotiated: Negotiated::new(),
        read_only: false,
        free_bytes: None,
        total_bytes: None,
        device: None,
        server: None,
    };
    vec![(smb(), mount)]
}

/// The scene so many seconds after the begin.
fn scene<'a>(mounts: &'a [(TargetName, Mount)], second: i64, beside: Option<&'a str>) -> Scene<'a> {
    let now = Moment {
        wall_us: second * 1_000_000,
        utc_offset_seconds: 0,
        awake_ns: second * SECOND_NS,
        continuous_ns: second * SECOND_NS,
    };
    Scene { now, monotonic_ns: now.awake_ns.cast_unsigned(), mounts, beside }
}

fn read(second: i64, latency_ns: u64) -> Probed {
    Probed {
        kind: ProbeKind::Read,
        at_us: second * 1_000_000,
        latency_ns,
        call_ns: Some(latency_ns),
        error: None,
        beside: None,
    }
}

fn probed(slots: Vec<Probed>) -> (TargetName, Sampled) {
    (smb(), Sampled::Probed { slots, cost_ns: 5 })
}

#[test]
fn a_call_that_never_returns_is_a_stall_while_it_lasts_and_one_line_when_it_ends() {
    let mounts = mounts();
    let mut sampler = Sampler::new(Box::new(Scripted::default()));
    let recorder = Arc::new(Recorder::private().unwrap());
    sampler.follow(&smb(), Some(Arc::clone(&recorder)));
    let lane = recorder.lane(longhaul_measure::recorder::PROBE_LANE);
    lane.begin(Operation::Getattr, (100 * SECOND_NS).cast_unsigned());
    sampler.tick(&scene(&mounts, 100, None));
    assert_eq!(sampler.stalls().count(), 0, "it has only begun");
    sampler.tick(&scene(&mounts, 102, Some("a round")));
    assert_eq!(sampler.stalls().count(), 1);
    let booked = sampler.take(&scene(&mounts, 102, None).now).stalls;
    assert_eq!((booked[0].started_us, booked[0].ended_us), (100_000_000, None));

    lane.end(Operation::Getattr, 30_000_000_000, &Ok::<(), ()>(()));
    let waited = Waited {
        operation: Operation::Getattr,
        at_us: 100_000_000,
        nanoseconds: 30_000_000_000,
        error: None,
        workload: None,
    };
    sampler.ear().send((smb(), Sampled::Waited(waited))).unwrap();
    sampler.tick(&scene(&mounts, 131, None));
    sampler.tick(&scene(&mounts, 145, None));
    assert_eq!(sampler.stalls().count(), 0);
    let samples = sampler.take(&scene(&mounts, 145, None).now);
    let stall = &samples.stalls[0];
    assert_eq!((samples.stalls.len(), stall.opened_us, stall.ended_us), (1, 100_000_000, Some(130_000_000)));
    assert_eq!(stall.beside.as_deref(), Some("a round"));
    sampler.bring_back(samples.clone());
    assert_eq!(sampler.take(&scene(&mounts, 146, None).now).stalls, samples.stalls, "not kept, not lost");
}

#[test]
fn a_round_is_felt_only_by_a_person_who_works_on_the_share() {
    let mounts = mounts();
    let counters = Scripted::default();
    let mut sampler = Sampler::new(Box::new(counters.clone()));
    let ear = sampler.ear();
    ear.send(probed((0..30).map(|second| read(second, 1_000_000)).collect())).unwrap();
    sampler.tick(&scene(&mounts, 30, None));
    ear.send(probed((31..40).map(|second| read(second, 8_000_000)).collect())).unwrap();
    sampler.tick(&scene(&mounts, 40, Some("a round")));
    assert_eq!(sampler.suffers(&scene(&mounts, 40, None).now, 3.0), None, "nobody is there");

    for (second, bytes) in [(41, 0), (51, 50_000_000)] {
        *counters.0.lock().unwrap() = Some(bytes);
        sampler.look(&scene(&mounts, second, None), SECOND_NS);
    }
    let now = scene(&mounts, 52, None).now;
    assert!(sampler.is_used(&smb(), &now));
    let (target, times) = sampler.suffers(&now, 3.0).unwrap();
    assert!(target == smb() && (7.9..8.1).contains(&times), "{times}");
    assert_eq!(sampler.suffers(&now, 9.0), None);
    let samples = sampler.take(&now);
    let found: Vec<_> = samples.probes.iter().map(|step| (step.beside, step.latency.count())).collect();
    assert_eq!(found, [(Beside::Calm, 30), (Beside::Round, 9)]);
    assert_eq!(samples.machine[0].probe_ns, 10);
    assert_eq!(samples.traffic[0].traffic.user_read, Some(50_000_000));
}

#[test]
fn a_reconnect_is_an_event_and_many_in_a_row_are_one() {
    let mounts = mounts();
    let counters = Scripted::default();
    let mut sampler = Sampler::new(Box::new(counters.clone()));
    let billions = [0, 1, 3, 7, 7, 8];
    for (second, bytes) in (1..).step_by(10).zip(billions.map(|count| count * 1_000_000_000)) {
        *counters.0.lock().unwrap() = Some(bytes);
        sampler.look(&scene(&mounts, second, None), SECOND_NS);
    }
    let events = sampler.events();
    let told: Vec<_> = events.iter().map(|event| (event.kind.as_str(), &event.detail["count"])).collect();
    assert_eq!(told, [("reconnect", &json!(1)), ("reconnect", &json!(1))]);
    assert!(sampler.events().is_empty());
}

#[test]
fn a_probe_that_cannot_ask_says_why_until_it_can() {
    let mounts = mounts();
    let mut sampler = Sampler::new(Box::new(Scripted::default()));
    sampler.ear().send((smb(), Sampled::Lame { reason: "read-only".to_owned() })).unwrap();
    sampler.tick(&scene(&mounts, 1, None));
    assert_eq!(sampler.lameness(&smb()), Some("read-only"));
    sampler.ear().send(probed(vec![])).unwrap();
    sampler.tick(&scene(&mounts, 2, None));
    assert_eq!(sampler.lameness(&smb()), None);
}
