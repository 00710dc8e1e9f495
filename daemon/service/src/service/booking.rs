//! Rounds that are not made: each is a row, with its reason.

use longhaul_measure::model::Target;
use longhaul_store::{NewRound, Planned, RoundEnd, RoundStatus};
use serde_json::json;

use super::Service;
use crate::clock::Moment;
use crate::schedule::Slot;
use crate::schedule::skip::Reason;
use crate::status::LastRound;

/// Rows that are written for missed rounds at most: a month away is one event, not a thousand rows.
const MOST_MISSED: u64 = 7 * 24;

impl Service {
    /// Books a round that is not made.
    pub(super) fn skip(&mut self, now: &Moment, scheduled_us: Option<i64>, reason: &Reason) {
        tracing::info!(reason = reason.word, "a round is skipped");
        self.unbooked.push((self.not_made(now.wall_us, scheduled_us), reason.to_string()));
        self.book_unbooked();
    }

    /// Books slots that passed while nobody was there.
    pub(super) fn miss(&mut self, first: Slot, last: Slot) {
        let now = self.clock.now();
        self.history.last = last;
        let missed = last.number - first.number + 1;
        let is_asleep =
            self.history.woke_ns.is_some_and(|woke_ns| woke_ns > first.at_ns - self.rhythm.jitter_ns);
        let reason = if is_asleep {
            Reason::new("asleep", "the machine slept")
        } else if first.at_ns < self.started.continuous_ns {
            Reason::new("not-running", "longhaul was not running")
        } else {
            Reason::new("late", "the round before it took too long, or the machine was too busy")
        };
        self.event(None, "missed", json!({ "rounds": missed, "reason": reason.word }));
        let rows = missed.min(MOST_MISSED);
        for place in (0..rows).rev() {
            let at_ns = last.at_ns - place.cast_signed() * self.rhythm.interval_ns;
            let at_us = now.wall_us_at(at_ns);
            self.unbooked.push((self.not_made(at_us, Some(at_us)), reason.to_string()));
        }
        self.book_unbooked();
    }

    fn not_made(&self, at_us: i64, scheduled_us: Option<i64>) -> NewRound {
        let planned = self.config.workloads.iter().flat_map(|workload| {
            let planned =
                |target: &Target| Planned { target: target.name.clone(), workload: workload.clone() };
            self.config.targets.iter().map(planned)
        });
        NewRound {
            started_us: at_us,
            utc_offset_seconds: self.clock.now().utc_offset_seconds,
            seed: self.seed,
            scale: self.config.scale,
            planned: planned.collect(),
            scheduled_us,
            before: None,
        }
    }

    /// Books what the database has not taken yet.
    pub(super) fn book_unbooked(&mut self) {
        if self.unbooked.is_empty() {
            return;
        }
        match self.database.writer().add_skipped(self.unbooked.clone()) {
            Ok(()) => {
                self.desk.relieve("not-kept");
                let booked = std::mem::take(&mut self.unbooked);
                let scheduled = booked.iter().filter(|(round, _)| round.scheduled_us.is_some()).count();
                self.counts.add(Some(RoundStatus::Skipped), scheduled as u64);
                let last = self.database.reader().and_then(|reader| reader.last_round()).ok().flatten();
                self.last = last.and_then(|round| {
                    let RoundEnd { status, reason, ended_us, .. } = round.end?;
                    Some(LastRound { number: round.number, status, reason, ended_us })
                });
            }
            Err(error) => self.desk.complain("not-kept", error.to_string(), self.clock.now().wall_us),
        }
    }
}
