//! Example runs: one realistic run, and a strategy that generates arbitrary runs.

use longhaul_model::{
    CacheState, Call, ColdMethod, Conditions, CounterScope, CounterSource, DataAge, Failure, Figure,
    Histogram, KeepReason, Operation, OperationStats, Outcome, Phase, Power, Protocol, Run, Scale,
    TargetName, Unit, VerifiedData, WireTraffic,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::at;
use crate::request_times;

/// Returns a run of realistic size whose values depend on its round and slot.
pub(super) fn run(round: i64, slot: u32) -> Run {
    let phase = |name: &str, cache: CacheState, cold_by| Phase {
        cold_by,
        began_us: Some(at(1_000_000 * i64::from(slot) + 12_345)),
        seconds: 1.25,
        bytes_read: 155_000_000,
        figures: vec![
            Figure::new("photos", Unit::PerSecond, 31.4),
            Figure::new("first", Unit::Seconds, 0.07),
        ],
        operations: Operation::ALL.iter().map(|operation| stats(*operation, slot)).collect(),
        wire: (cache == CacheState::Warm).then_some(WireTraffic {
            read: Some(1_550_000),
            written: None,
            requests: Some(12),
            listings: Some(3),
            source: CounterSource::Mountstats,
            scope: CounterScope::Mount,
        }),
        request_times: (cache == CacheState::Warm).then(|| request_times::from_values([Some(9); 14])),
        verified: vec![VerifiedData { age: DataAge::Weeks, bytes: 40_000_000, files: 21 }],
        ..Phase::new(name, cache)
    };
    let started = at(1_000_000 * i64::from(slot));
    Run {
        slot,
        protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
        utc_offset_seconds: 3600,
        seconds: 2.5,
        phases: vec![
            phase("scan", CacheState::Cold, Some(ColdMethod::Evicted)),
            phase("again", CacheState::Warm, None),
        ],
        facts: [("sync".to_owned(), "fsync".to_owned())].into(),
        conditions: Conditions {
            negotiated: [("signing".to_owned(), "on".to_owned())].into(),
            ..Conditions::default()
        },
        ..Run::new(round, "smb".parse().unwrap(), "photo-batch", started)
    }
}

fn stats(operation: Operation, seed: u32) -> OperationStats {
    let mut latency = Histogram::new();
    for call in 0..300u64 {
        latency.record((call * call * 7_919 + u64::from(seed) * 104_729) % 50_000_000);
    }
    OperationStats { operation, latency, errors: 0 }
}

/// Generates any text, including control characters and characters beyond the Basic Multilingual Plane.
pub(super) fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..8).prop_map(String::from_iter)
}

fn finite() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |number| number.is_finite())
}

fn histogram() -> impl Strategy<Value = Histogram> {
    vec(any::<u64>(), 0..20).prop_map(|durations| {
        let mut histogram = Histogram::new();
        // The shift spreads the durations over all orders of magnitude, up to and beyond the largest bucket.
        durations.into_iter().for_each(|nanoseconds| histogram.record(nanoseconds >> (nanoseconds % 64)));
        histogram
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    select(Operation::ALL)
}

fn operation_stats() -> impl Strategy<Value = OperationStats> {
    (operation(), histogram(), any::<u64>()).prop_map(|(operation, latency, errors)| OperationStats {
        operation,
        latency,
        errors,
    })
}

fn figure() -> impl Strategy<Value = Figure> {
    let units = vec![Unit::Seconds, Unit::BytesPerSecond, Unit::PerSecond, Unit::Count, Unit::Share];
    (text(), select(units), finite()).prop_map(|(name, unit, value)| Figure { name, unit, value })
}

fn wire() -> impl Strategy<Value = WireTraffic> {
    let source = prop_oneof![
        Just(CounterSource::CifsStats),
        Just(CounterSource::Disk),
        text().prop_map(CounterSource::Interface)
    ];
    let scope = select(vec![CounterScope::Mount, CounterScope::Server, CounterScope::Process]);
    (source, scope, any::<[Option<u64>; 4]>()).prop_map(
        |(source, scope, [read, written, requests, listings])| WireTraffic {
            read,
            written,
            requests,
            listings,
            source,
            scope,
        },
    )
}

/// Returns a call of one of a phase's operations. `None`: the phase has no operations.
fn call(
    operations: &[OperationStats],
    (index, after_ns, nanoseconds, is_error): (usize, u64, u64, bool),
) -> Option<Call> {
    let operation = operations.get(index % operations.len().max(1))?.operation;
    let keep_reason = KeepReason::ALL[index % KeepReason::ALL.len()];
    Some(Call { operation, offset_ns: after_ns, duration_ns: nanoseconds, is_error, keep_reason })
}

fn phase() -> impl Strategy<Value = Phase> {
    let cache = select(vec![CacheState::Cold, CacheState::Warm, CacheState::None]);
    let cold_by =
        option::of(select(vec![ColdMethod::Evicted, ColdMethod::RotatedSlice, ColdMethod::Unverified]));
    let head = (text(), cache, cold_by, option::of(any::<i64>()), finite());
    let times = option::of(any::<[Option<u64>; 14]>().prop_map(request_times::from_values));
    let wire = (option::of(wire()), times);
    let tail = (any::<(u64, u64, bool)>(), vec(figure(), 0..3), vec(operation_stats(), 0..3), wire);
    let calls = vec(any::<(usize, u64, u64, bool)>(), 0..4);
    (head, tail, calls).prop_map(
        |((name, cache, cold_by, began_us, seconds), (numbers, figures, operations, wire), calls)| {
            let (bytes_read, bytes_written, complete) = numbers;
            let (wire, request_times) = wire;
            let calls = calls.into_iter().filter_map(|drawn| call(&operations, drawn)).collect();
            Phase {
                name,
                cache,
                cold_by,
                began_us: began_us.map(at),
                seconds,
                bytes_read,
                bytes_written,
                complete,
                figures,
                operations,
                calls,
                wire,
                request_times,
                verified: vec![],
            }
        },
    )
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        select(vec![Protocol::Afp, Protocol::Webdav, Protocol::Sftp]),
        option::of(text()).prop_map(Protocol::Nfs),
        option::of(text()).prop_map(Protocol::Smb),
        option::of(text()).prop_map(Protocol::Fuse),
        text().prop_map(Protocol::Local),
        text().prop_map(Protocol::Other),
    ]
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let power = option::of(select(vec![Power::Mains, Power::Battery]));
    let numbers = any::<(Option<u32>, [Option<u64>; 6])>();
    let measured = (option::of(finite()), option::of(finite()), option::of(finite()));
    let texts = (option::of(text()), option::of(text()), btree_map(text(), text(), 0..3));
    (power, numbers, measured, texts).prop_map(|(power, numbers, measured, texts)| Conditions {
        system: texts.0,
        load_average: measured.0,
        processors: numbers.0,
        memory_available: numbers.1[0],
        power,
        io_policy: texts.1,
        free_bytes: numbers.1[1],
        total_bytes: numbers.1[2],
        timing_overhead_ns: measured.1,
        worker_peak_bytes: numbers.1[3],
        slept_seconds: measured.2,
        kept_awake: measured.0.is_some(),
        round_trip_us: numbers.1[4],
        send_rate: numbers.1[5],
        negotiated: texts.2,
    })
}

fn failure() -> impl Strategy<Value = Failure> {
    (option::of(operation()), option::of(text()), option::of(text()), text())
        .prop_map(|(operation, path, error, message)| Failure { operation, path, error, message })
}

/// Generates any run of round 1.
pub(super) fn any_run() -> impl Strategy<Value = Run> {
    let name = select(vec!["smb", "nfs", "A_2"]);
    let scales = (select(Scale::ALL.to_vec()), select(Outcome::ALL.to_vec()));
    let head = (any::<(u32, i64, i32)>(), name, option::of(protocol()), scales);
    let tail = (finite(), vec(phase(), 0..3), option::of(failure()), btree_map(text(), text(), 0..3));
    (head, tail, text(), conditions()).prop_map(|(head, tail, workload, conditions)| {
        let ((slot, started_us, utc_offset_seconds), name, protocol, (scale, outcome)) = head;
        let (seconds, phases, failure, facts) = tail;
        let target: TargetName = name.parse().unwrap();
        Run {
            round: 1,
            slot,
            target,
            protocol,
            workload,
            scale,
            outcome,
            started_us: at(started_us),
            utc_offset_seconds,
            seconds,
            phases,
            failure,
            facts,
            conditions,
        }
    })
}
