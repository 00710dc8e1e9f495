//! Compares the outbox with a model, after any sequence of rounds, deliveries, expiries and restarts: each finished round has
//! exactly one status for each signal, which is pending until it is final.

use std::collections::BTreeMap;

use longhaul_model::{RoundStatus, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{TestDb, at, new_round};
use crate::{DeliveryStatus, RoundEnd, Signal, Writer};

const SIGNALS: [Signal; 2] = [Signal::Traces, Signal::Metrics];

#[derive(Debug, Clone)]
enum Step {
    /// A round ends.
    Finish(RoundStatus),
    /// A round begins and never ends.
    Open,
    /// A round is skipped.
    Skip,
    /// The status of the first pending items and of one that has a status already becomes known, twice.
    Deliver(Signal, usize, DeliveryStatus),
    /// Items of rounds that ended before the number of a round are too old.
    Expire(Signal, i64),
    /// The service is started again.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let signal = || prop_oneof![Just(Signal::Traces), Just(Signal::Metrics)];
    let status = prop_oneof![
        Just(DeliveryStatus::Sent),
        Just(DeliveryStatus::Rejected("why".to_owned())),
        Just(DeliveryStatus::Expired)
    ];
    let end = prop_oneof![Just(RoundStatus::Ok), Just(RoundStatus::Void), Just(RoundStatus::CutShort)];
    prop_oneof![
        4 => end.prop_map(Step::Finish),
        1 => Just(Step::Open),
        1 => Just(Step::Skip),
        4 => (signal(), 0..4usize, status).prop_map(|(signal, count, status)| Step::Deliver(signal, count, status)),
        1 => (signal(), 0..30i64).prop_map(|(signal, round)| Step::Expire(signal, round)),
        1 => Just(Step::Restart),
    ]
}

/// Status of each finished round for each signal: none if it is pending.
#[derive(Default)]
struct Model {
    statuses: BTreeMap<Signal, BTreeMap<i64, Option<DeliveryStatus>>>,
}

impl Model {
    fn pending(&self, signal: Signal) -> Vec<i64> {
        let items = self.statuses.get(&signal).into_iter().flatten();
        items.filter(|(_, status)| status.is_none()).map(|(item, _)| *item).collect()
    }

    fn count(&self, signal: Signal, is_it: impl Fn(&DeliveryStatus) -> bool) -> u64 {
        let items = self.statuses.get(&signal).into_iter().flatten();
        items.filter(|(_, status)| status.as_ref().is_some_and(&is_it)).count() as u64
    }

    /// Gives items a status unless they have one.
    fn settle(&mut self, signal: Signal, items: &[i64], status: &DeliveryStatus) {
        let known = self.statuses.entry(signal).or_default();
        for item in items {
            let entry = known.get_mut(item).expect("only known items are delivered");
            entry.get_or_insert_with(|| status.clone());
        }
    }
}

/// Time at which a round ends: rounds are a second apart.
fn end_of(round: i64) -> Timestamp {
    at(round * 1_000_000 + 10)
}

fn apply(writer: &Writer, model: &mut Model, step: &Step) {
    match step {
        Step::Finish(status) => {
            let round = writer.begin_round(new_round()).unwrap();
            let end = RoundEnd { status: *status, reason: None, ended: end_of(round) };
            writer.end_round(round, end).unwrap();
            for signal in SIGNALS {
                model.statuses.entry(signal).or_default().insert(round, None);
            }
        }
        Step::Open => drop(writer.begin_round(new_round()).unwrap()),
        Step::Skip => writer.add_skipped(vec![(new_round(), "pause".into())]).unwrap(),
        Step::Deliver(signal, count, status) => {
            let settled = model.statuses.get(signal).and_then(|known| known.keys().next().copied());
            let items: Vec<i64> = model.pending(*signal).into_iter().take(*count).chain(settled).collect();
            for _ in 0..2 {
                writer.record_delivery(*signal, items.clone(), status.clone(), at(1)).unwrap();
            }
            model.settle(*signal, &items, status);
        }
        Step::Expire(signal, round) => {
            let old: Vec<i64> = model.pending(*signal).into_iter().filter(|item| item < round).collect();
            let expired = writer.expire(*signal, end_of(*round), at(2)).unwrap();
            assert_eq!(expired, old.len() as u64);
            model.settle(*signal, &old, &DeliveryStatus::Expired);
        }
        Step::Restart => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn each_finished_round_has_one_final_status(steps in vec(step(), 1..24)) {
        let db = TestDb::new();
        let (mut writer, mut model) = (Some(db.writer()), Model::default());
        for step in &steps {
            if matches!(step, Step::Restart) {
                drop(writer.take());
                writer = Some(db.writer());
            }
            apply(writer.as_ref().unwrap(), &mut model, step);
            for signal in SIGNALS {
                let outbox = db.reader().outbox_status(signal).unwrap();
                let pending = model.pending(signal);
                prop_assert_eq!(db.reader().pending_items(signal, 99).unwrap(), pending.clone());
                prop_assert_eq!(outbox.pending, pending.len() as u64);
                prop_assert_eq!(outbox.sent, model.count(signal, |status| *status == DeliveryStatus::Sent));
                prop_assert_eq!(outbox.expired, model.count(signal, |status| *status == DeliveryStatus::Expired));
                let is_rejected = |status: &DeliveryStatus| matches!(status, DeliveryStatus::Rejected(_));
                prop_assert_eq!(outbox.rejected, model.count(signal, is_rejected));
            }
        }
    }
}
