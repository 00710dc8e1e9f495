//! Example histories: a small realistic one, and a strategy that generates any history that a database could
//! contain.

use std::time::Duration;

use longhaul_model::time::HOUR;
use longhaul_model::{
    AnalysisSettings, ChangeKind, EpochRecord, Event, FreshnessDay, History, MetricTimes, Outcome, Role,
    RoundRecord, RoundStatus, RunRecord, Scale, TASKS, TargetRecord, Timestamp,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const NAMES: [&str; 4] = ["smb", "nfs-4.2", "A_2", "0"];
/// 2026-11-02T06:00:00+01:00.
const BEGIN: Timestamp = Timestamp::from_us(1_793_595_600_000_000);

/// Returns a history of two targets and four rounds, with every workload once per round and target.
pub(super) fn small() -> History {
    let target = |name: &str| TargetRecord { name: name.parse().unwrap(), role: Role::Share };
    let rounds: Vec<RoundRecord> = (1..=4).map(round).collect();
    let runs = rounds.iter().flat_map(|round| (0..10).map(|cell| run(round, cell))).collect();
    History {
        settings: AnalysisSettings {
            machine: Some("0123456789abcdef".into()),
            zone: Some("Europe/Berlin".into()),
            ..AnalysisSettings::default()
        },
        targets: vec![target("smb"), target("nfs")],
        epochs: (1..=2).map(epoch).collect(),
        rounds,
        runs,
        events: vec![event(json!({"before": 1500, "after": 9000})), event(json!({"path": "/Volumes/media"}))],
        freshness: vec![freshness(1, 25), freshness(2, 0)],
        recorded_day: None,
    }
}

fn freshness(epoch: i64, not_seen: u64) -> FreshnessDay {
    FreshnessDay {
        target: ["smb", "nfs"][epoch as usize - 1].parse().unwrap(),
        epoch,
        kind: ChangeKind::NewFile,
        day: round(1).day(),
        changes: 25,
        not_seen,
        slow: 0,
        limit: (not_seen > 0).then_some(Duration::from_secs(60)),
    }
}

fn event(detail: Value) -> Event {
    Event { target: None, kind: "mtu".into(), detail, at_us: BEGIN + HOUR }
}

fn epoch(number: i64) -> EpochRecord {
    let target = ["smb", "nfs"][number as usize - 1].parse().unwrap();
    EpochRecord { number, target, opened_us: BEGIN, protocol: (number == 1).then(|| "SMB 3.1.1".into()) }
}

fn round(number: i64) -> RoundRecord {
    RoundRecord {
        number,
        started_us: BEGIN + number as u32 * HOUR,
        utc_offset_seconds: 3600,
        scale: Scale::Quick,
        status: Some(RoundStatus::Ok),
        reason: None,
    }
}

fn run(round: &RoundRecord, cell: usize) -> RunRecord {
    let (target, workload) = (cell % 2, cell / 2);
    let indexes = 0..TASKS[workload].metrics().len();
    let time = |index: usize| (index + 1) as f64 / 3.0 + round.number as f64;
    RunRecord {
        number: (round.number - 1) * 10 + cell as i64 + 1,
        round: round.number,
        epoch: target as i64 + 1,
        target,
        workload,
        scale: round.scale,
        outcome: Outcome::Ok,
        started: round.started_us + Duration::from_micros(cell as u64),
        seconds: 10.0 / 3.0,
        times: indexes.fold(MetricTimes::NONE, |times, index| times.with(index, time(index))),
        rtt: None,
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![vec(any::<char>(), 0..8).prop_map(String::from_iter), "[a-z,;\"'\r\n \\\\\\[{}]{0,12}"]
}

fn json() -> impl Strategy<Value = Value> {
    let real = any::<f64>().prop_filter("finite", |real| real.is_finite());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        real.prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let entries = btree_map(text(), inner.clone(), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            entries.prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Generates any positive duration, including values without a short decimal representation.
fn duration() -> impl Strategy<Value = f64> {
    prop_oneof![1e-9..1e6f64, any::<f64>().prop_map(f64::abs)]
        .prop_filter("positive", |seconds| *seconds > 0.0 && seconds.is_finite())
}

fn settings() -> impl Strategy<Value = AnalysisSettings> {
    let usage_profile = btree_map(text(), 0.0..1e9f64, 0..3);
    let counted_days = option::of(1.0..60.0f64);
    let scale = option::of(select(Scale::ALL.to_vec()));
    (option::of(text()), option::of(text()), scale, 1.0001..100.0f64, usage_profile, counted_days).prop_map(
        |(machine, zone, scale, threshold, usage_profile, usage_counted_days)| AnalysisSettings {
            machine,
            zone,
            scale,
            threshold,
            usage_profile,
            usage_counted_days,
        },
    )
}

/// Generates records with increasing numbers from 1, with gaps.
fn numbered<T: Clone + std::fmt::Debug>(
    records: impl Strategy<Value = Vec<T>>,
) -> impl Strategy<Value = Vec<(i64, T)>> {
    records.prop_flat_map(|records| {
        let gaps = vec(1..4i64, records.len());
        (gaps, Just(records)).prop_map(|(gaps, records)| {
            let sums = gaps.into_iter().scan(0, |sum, gap| {
                *sum += gap;
                Some(*sum)
            });
            sums.zip(records).collect()
        })
    })
}

fn epochs(targets: usize) -> impl Strategy<Value = Vec<EpochRecord>> {
    let epochs = numbered(vec((0..targets, any::<i64>(), option::of(text())), 1..4));
    epochs.prop_map(|epochs| {
        let epoch = |(number, (target, opened_us, protocol)): (i64, (usize, i64, Option<String>))| {
            let opened_us = Timestamp::from_us(opened_us);
            EpochRecord { number, target: NAMES[target].parse().unwrap(), opened_us, protocol }
        };
        epochs.into_iter().map(epoch).collect()
    })
}

fn rounds() -> impl Strategy<Value = Vec<RoundRecord>> {
    let scale = select(Scale::ALL.to_vec());
    let end = (option::of(select(RoundStatus::ALL.to_vec())), option::of(text()));
    numbered(vec((any::<(i64, i32)>(), scale, end), 1..5)).prop_map(|rounds| {
        let round = |(number, ((started_us, utc_offset_seconds), scale, (status, reason)))| RoundRecord {
            number,
            started_us: Timestamp::from_us(started_us),
            utc_offset_seconds,
            scale,
            status,
            reason,
        };
        rounds.into_iter().map(round).collect()
    })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (option::of(select(NAMES.to_vec())), text(), json(), any::<i64>());
    vec(
        event.prop_map(|(target, kind, detail, at_us)| Event {
            target: target.map(|name| name.parse().unwrap()),
            kind,
            detail,
            at_us: Timestamp::from_us(at_us),
        }),
        0..4,
    )
}

/// Generates counts of a day in one of these epochs.
fn freshness_day(epochs: Vec<EpochRecord>) -> impl Strategy<Value = FreshnessDay> {
    let counts = (0..1000u64, 0..1000u64, 0..1000u64, option::of(any::<u32>()));
    (select(epochs), select(ChangeKind::ALL.to_vec()), -40_000..40_000i64, counts).prop_map(
        |(epoch, kind, day, (not_seen, slow, seen, limit_us))| FreshnessDay {
            target: epoch.target,
            epoch: epoch.number,
            kind,
            day,
            changes: not_seen + slow + seen,
            not_seen,
            slow,
            limit: limit_us.map(|limit_us| Duration::from_micros(limit_us.into())),
        },
    )
}

fn times() -> impl Strategy<Value = MetricTimes> {
    vec(option::of(duration()), 4).prop_map(|times| {
        let known = times.into_iter().enumerate().filter_map(|(index, time)| Some((index, time?)));
        known.fold(MetricTimes::NONE, |times, (index, time)| times.with(index, time))
    })
}

/// Generates runs of these rounds and epochs.
fn runs(
    targets: usize,
    epochs: Vec<EpochRecord>,
    rounds: Vec<RoundRecord>,
) -> impl Strategy<Value = Vec<RunRecord>> {
    let names =
        move |epoch: &EpochRecord| NAMES[..targets].iter().position(|name| *name == epoch.target.as_str());
    let references = (select(rounds), select(epochs), 0..TASKS.len());
    let what = (
        select(Scale::ALL.to_vec()),
        select(Outcome::ALL.to_vec()),
        any::<(i64, Option<u32>)>(),
        duration(),
        times(),
    );
    numbered(vec((references, what), 0..12)).prop_map(move |runs| {
        let run =
            |(number, ((round, epoch, workload), what)): (i64, ((RoundRecord, EpochRecord, usize), _))| {
                let (scale, outcome, (started, rtt_us), seconds, times): What = what;
                let own = 0..TASKS[workload].metrics().len();
                let times = own.filter_map(|index| Some((index, times.get(index)?)));
                RunRecord {
                    number,
                    round: round.number,
                    epoch: epoch.number,
                    target: names(&epoch).unwrap(),
                    workload,
                    scale,
                    outcome,
                    started: Timestamp::from_us(started),
                    seconds: if outcome == Outcome::Unavailable { 0.0 } else { seconds },
                    times: times.fold(MetricTimes::NONE, |times, (index, time)| times.with(index, time)),
                    rtt: rtt_us.map(|us| Duration::from_micros(us.into())),
                }
            };
        runs.into_iter().map(run).collect()
    })
}

/// Scale, outcome, start and round trip time in microseconds, duration and times of a run.
type What = (Scale, Outcome, (i64, Option<u32>), f64, MetricTimes);

/// Generates any history that a database could contain.
pub(super) fn any_history() -> impl Strategy<Value = History> {
    let target = |(name, role): (&&str, Role)| TargetRecord { name: name.parse().unwrap(), role };
    let roles = vec(select(vec![Role::Share, Role::Baseline]), 1..=NAMES.len());
    let targets = roles.prop_map(move |roles| NAMES.iter().zip(roles).map(target).collect::<Vec<_>>());
    let shape = targets.prop_flat_map(|targets| {
        let count = targets.len();
        (Just(targets), epochs(count), rounds())
    });
    shape.prop_flat_map(|(targets, epochs, rounds)| {
        let runs = runs(targets.len(), epochs.clone(), rounds.clone());
        let freshness = vec(freshness_day(epochs.clone()), 0..4);
        (settings(), Just((targets, epochs, rounds)), runs, events(), freshness).prop_map(
            |(settings, (targets, epochs, rounds), runs, events, freshness)| History {
                settings,
                targets,
                epochs,
                rounds,
                runs,
                events,
                freshness,
                recorded_day: None,
            },
        )
    })
}
