//! One comparison: two targets on one endpoint, or over all of them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::change::{Change, change};
use super::pairing::{Pair, Paired, Pairing, log_ratio};
use super::scope::{Reading, Scope};
use super::verdict::OPENING_DAYS;
use crate::model::Endpoint;
use crate::stats::DaySeries;
use crate::workloads::WORKLOADS;

/// Where an endpoint stands: its workload's place in the table, and its own among the workload's endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) workload: usize,
    pub(super) place: usize,
}

impl Position {
    /// Every endpoint's position, in the order of the table.
    pub(super) fn all() -> impl Iterator<Item = Position> {
        WORKLOADS.iter().enumerate().flat_map(|(workload, known)| {
            (0..known.endpoints().len()).map(move |place| Position { workload, place })
        })
    }

    /// The endpoint.
    pub(super) fn endpoint(self) -> &'static Endpoint {
        &WORKLOADS[self.workload].endpoints()[self.place]
    }

    /// `workload/name`, which is what exports and configurations call it.
    pub(super) fn key(self) -> String {
        format!("{}/{}", WORKLOADS[self.workload].name(), self.endpoint().name)
    }
}

/// What was found about a pair, before it is judged.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) pairing: Pairing,
    /// `None` without a day that counts.
    pub(super) series: Option<DaySeries>,
    /// A change of the ratio; the pairing and the series are then of the newest part that is long enough.
    pub(super) change: Option<Change>,
    /// The days of that part.
    pub(super) days: Days,
}

/// The rounds of a pair: everything on one endpoint, or the log ratios over all.
pub(super) struct Evidence<'s, 'h> {
    pub(super) scope: &'s Scope<'h>,
    pub(super) pair: Pair,
    /// The rounds on each endpoint that has any, with its cap.
    pub(super) rounds: BTreeMap<Position, (Vec<Paired>, f64)>,
    planned: BTreeMap<i64, usize>,
}

/// The days that a comparison may look at.
pub(super) type Days = RangeInclusive<i64>;

/// All of them.
pub(super) const EVER: Days = i64::MIN..=i64::MAX;

impl<'s, 'h> Evidence<'s, 'h> {
    /// Everything about a pair.
    pub(super) fn of(scope: &'s Scope<'h>, pair: Pair, caps: &BTreeMap<Position, f64>) -> Self {
        let rounds = caps.iter().filter_map(|(position, cap)| {
            let paired = scope.paired(position.workload, position.place, pair);
            let speaks = paired.iter().any(|paired| log_ratio(paired, *cap).is_some());
            speaks.then_some((*position, (paired, *cap)))
        });
        Self { scope, pair, rounds: rounds.collect(), planned: scope.planned_by_day(pair) }
    }

    /// The comparison on an endpoint; `None` if no round speaks.
    pub(super) fn on(&self, position: Position) -> Option<Cell> {
        let (paired, cap) = self.rounds.get(&position)?;
        Some(self.cell(|days| {
            let within: Vec<Paired> =
                paired.iter().copied().filter(|paired| days.contains(&paired.day)).collect();
            Pairing::of_endpoint(&within, *cap, &self.planned_within(days))
        }))
    }

    /// The log ratio of each day that counts, whatever changed on the way.
    pub(super) fn days_on(&self, position: Position) -> Option<Vec<(i64, f64)>> {
        let (paired, cap) = self.rounds.get(&position)?;
        Some(Pairing::of_endpoint(paired, *cap, &self.planned).days)
    }

    /// The comparison over all weighted endpoints: the geometric mean inside each round in which all of them speak.
    pub(super) fn overall(&self) -> Option<Cell> {
        self.weighted(|_| true)
    }

    /// As [`Evidence::overall`], over some endpoints.
    pub(super) fn weighted(&self, wanted: impl Fn(&Endpoint) -> bool) -> Option<Cell> {
        let weighted: Vec<_> = self
            .rounds
            .iter()
            .filter(|(position, _)| position.endpoint().weight > 0.0 && wanted(position.endpoint()))
            .collect();
        let total: f64 = weighted.iter().map(|(position, _)| position.endpoint().weight).sum();
        let mut sums: BTreeMap<i64, (i64, f64, usize)> = BTreeMap::new();
        for (position, (paired, cap)) in &weighted {
            for paired in paired {
                if let Some(ratio) = log_ratio(paired, *cap) {
                    let (_, sum, count) = sums.entry(paired.round).or_insert((paired.day, 0.0, 0));
                    *sum += ratio * position.endpoint().weight / total;
                    *count += 1;
                }
            }
        }
        let whole = sums.into_values().filter(|(_, _, count)| *count == weighted.len());
        let rounds: Vec<(i64, f64)> = whole.map(|(day, sum, _)| (day, sum)).collect();
        (!rounds.is_empty()).then(|| {
            self.cell(|days| Pairing {
                waited: self.waited(days),
                ..Pairing::of_rounds(
                    rounds.iter().copied().filter(|(day, _)| days.contains(day)),
                    &self.planned_within(days),
                )
            })
        })
    }

    /// Looks for a change, and keeps to the newest part that is long enough.
    fn cell(&self, pairing: impl Fn(&Days) -> Pairing) -> Cell {
        let whole = pairing(&EVER);
        let Some(change) = change(&whole.days, self.scope, self.pair) else {
            return Cell { series: DaySeries::of(&whole.days), pairing: whole, change: None, days: EVER };
        };
        let newest = if change.days_after >= OPENING_DAYS || change.days_before < OPENING_DAYS {
            change.first_day..=i64::MAX
        } else {
            i64::MIN..=change.first_day - 1
        };
        let part = pairing(&newest);
        Cell { series: DaySeries::of(&part.days), pairing: part, change: Some(change), days: newest }
    }

    fn planned_within(&self, days: &Days) -> BTreeMap<i64, usize> {
        self.planned.iter().filter(|(day, _)| days.contains(day)).map(|(day, count)| (*day, *count)).collect()
    }

    /// The seconds waited over all workloads, by day: a run that failed counts once, at its workload's largest cap.
    fn waited(&self, days: &Days) -> Vec<(i64, (f64, f64))> {
        let mut by_run: BTreeMap<(i64, i64, usize), [Waited; 2]> = BTreeMap::new();
        for (position, (paired, cap)) in &self.rounds {
            for paired in paired.iter().filter(|paired| days.contains(&paired.day)) {
                let [a, b] = by_run.entry((paired.day, paired.round, position.workload)).or_default();
                a.add(paired.a, *cap);
                b.add(paired.b, *cap);
            }
        }
        let mut by_day: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for ((day, ..), [a, b]) in by_run {
            if let Some((a, b)) = a.seconds().zip(b.seconds()) {
                let sums = by_day.entry(day).or_default();
                *sums = (sums.0 + a, sums.1 + b);
            }
        }
        by_day.into_iter().collect()
    }
}

/// The seconds waited for one run.
#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    times: f64,
    cap: f64,
    state: Option<Reading>,
}

impl Waited {
    fn add(&mut self, reading: Reading, cap: f64) {
        match reading {
            Reading::Time(seconds) => self.times += seconds,
            Reading::Failed => self.cap = self.cap.max(cap),
            Reading::Absent => return,
        }
        self.state = Some(reading);
    }

    fn seconds(self) -> Option<f64> {
        self.state.map(|state| if state == Reading::Failed { self.cap } else { self.times })
    }
}
