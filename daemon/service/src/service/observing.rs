//! What the service notices by itself: clocks, mounts, hangs, the database.

use std::path::Path;

use longhaul_measure::model::{Mount, Target};
use serde_json::json;

use super::Service;
use crate::database::Health;
use crate::round::Stop;
use crate::worker::{Stance, Worker};

/// Sleep, and steps of the wall clock, below this are noise, in nanoseconds.
const NOTABLE_NS: i64 = 2_000_000_000;

impl Service {
    /// Looks at everything that may have changed while nobody did anything.
    pub(super) fn observe(&mut self) {
        self.note_clocks();
        self.desk.orders(|orders| orders.mounts = false);
        let mounts = self.mounts();
        self.note_changes(&mounts);
        self.note_hangs();
        self.note_database(&mounts);
    }

    /// Sleep and wake, steps of the wall clock, travel.
    pub(super) fn note_clocks(&mut self) {
        let (before, now) = (self.seen, self.clock.now());
        self.seen = now;
        let slept_ns = now.asleep_ns() - before.asleep_ns();
        if slept_ns > NOTABLE_NS {
            self.history.woke_ns = Some(now.continuous_ns);
            self.event(None, "wake", json!({ "slept_seconds": slept_ns / 1_000_000_000 }));
        }
        let step_us = now.wall_us - before.wall_us_at(now.continuous_ns);
        if step_us.saturating_mul(1000).abs() > NOTABLE_NS {
            self.event(None, "clock-step", json!({ "seconds": step_us as f64 / 1e6 }));
        }
        if now.utc_offset_seconds != before.utc_offset_seconds {
            let detail = json!({ "before": before.utc_offset_seconds, "after": now.utc_offset_seconds });
            self.event(None, "utc-offset", detail);
        }
    }

    /// What changed under the targets. The first look at a target is no change. A worker that was started before knows how
    /// its target was reached then: another takes its place.
    pub(super) fn note_changes(&mut self, mounts: &[Mount]) {
        let changes = self.book.borrow_mut().changes(&self.config.targets, mounts);
        if !changes.is_empty() {
            self.turn_page();
        }
        for change in changes {
            self.event(Some(&change.target), change.kind, change.detail);
            let stale = self.workers.iter_mut().filter(|worker| worker.target().name == change.target);
            stale.for_each(Worker::dismiss);
        }
    }

    /// Why a round with these targets says nothing any more, because of what changed under one of them.
    pub(super) fn mount_stop(&self, targets: &[Target]) -> Option<Stop> {
        let mounts = self.mounts();
        let changes = self.book.borrow_mut().changes(&self.config.targets, &mounts);
        let mut stop = None;
        for change in changes {
            if targets.iter().any(|target| target.name == change.target) {
                let reason =
                    format!("mount: what lies under `{}` changed during it ({})", change.target, change.kind);
                stop = Some(Stop::Void(reason));
            }
            self.event(Some(&change.target), change.kind, change.detail);
        }
        stop
    }

    /// Calls that do not return, and those that have at last.
    pub(super) fn note_hangs(&mut self) {
        let mut hanging = vec![];
        let mut events = vec![];
        for worker in self.workers.iter_mut().chain(&mut self.leftovers) {
            let name = worker.target().name.clone();
            let was = self.hanging.contains(&name);
            match worker.stance() {
                Stance::Stuck { operation, for_seconds } => {
                    let operation = operation.map(|operation| operation.to_string());
                    if !was {
                        events.push((
                            name.clone(),
                            "hang",
                            json!({ "operation": operation, "seconds": for_seconds }),
                        ));
                    }
                    hanging.push(name);
                }
                Stance::Ready if was => events.push((name, "recovered", json!({}))),
                Stance::Ready => {}
            }
        }
        self.hanging = hanging;
        self.leftovers.retain_mut(Worker::is_stuck);
        events.into_iter().for_each(|(name, kind, detail)| self.event(Some(&name), kind, detail));
    }

    /// Whether the database is still what it was, and what is done if it is not.
    pub(super) fn note_database(&mut self, mounts: &[Mount]) {
        let now_us = self.clock.now().wall_us;
        let path = self.database.path().display().to_string();
        let mended = match self.database.health() {
            Health::Fine => return,
            Health::Gone => self.database.restore(mounts).map(|()| {
                format!("the database {path} was removed while longhaul had it open; it was written again with all that it held")
            }),
            Health::Replaced => self.database.yield_to_other(mounts, now_us).map(|kept| {
                format!(
                    "another file was put in the place of the database {path}; longhaul goes on with it, and what it had \
                     before is in {}",
                    kept.display()
                )
            }),
            Health::Damaged => self.database.begin_anew(mounts, now_us).map(|aside| damaged(&path, &aside)),
        };
        match mended {
            Ok(text) => {
                self.desk.complain("database", text.clone(), now_us);
                self.event(None, "database", json!({ "what": text }));
                self.desk.relieve("database-lost");
            }
            Err(error) => self.desk.complain(
                "database-lost",
                format!("the database {path} is gone or damaged and cannot be mended: {error}"),
                now_us,
            ),
        }
    }

    /// Says where a damaged database was moved when the service started.
    pub(super) fn say_where_the_damaged_went(&self, aside: Option<&Path>) {
        if let Some(aside) = aside {
            let text = damaged(&self.database.path().display().to_string(), aside);
            self.desk.complain("database", text.clone(), self.clock.now().wall_us);
            self.event(None, "database", json!({ "what": text }));
        }
    }
}

fn damaged(path: &str, aside: &Path) -> String {
    format!(
        "the database {path} was damaged; it was moved to {} and a new one was begun. What is in it can often be saved with \
         `sqlite3 {} .recover`",
        aside.display(),
        aside.display()
    )
}
