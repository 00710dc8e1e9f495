//! Collects what has happened, and stores it in the queue.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Zoned;
use jiff::tz::TimeZone;
use longhaul_analysis::summary::WeeklySummary;
use longhaul_measure::platform;
use longhaul_model::NotificationKind;
use longhaul_notify::ChannelConfig;
use longhaul_service::config::Config;
use longhaul_service::notifications::{
    Occurrence, Rules, Tracker, damage_events, digest_switched_off, disk_events, due_digest, result_events,
};
use longhaul_service::status::Status;
use longhaul_store::{NewNotification, NotificationBatch, Reader, StateChange, Writer};
use longhaul_view::screens::notifications::{NotificationContext, notification};

use super::messages::current_summary;

/// Time after which results that could not be read are read again, if no round ends before. Reading a long history takes
/// seconds.
const RETRY_INTERVAL: Duration = Duration::from_mins(10);

/// Events that are not stored yet, and the state of what was reported.
pub struct EventCollector {
    tracker: Tracker,
    state: BTreeMap<String, String>,
    batch: NotificationBatch,
    /// `None`: the results were not observed yet.
    last_observation: Option<Observation>,
}

/// An attempt to observe the results.
struct Observation {
    /// Number of the last round then. `None`: there was none.
    last_round: Option<i64>,
    /// Time from which it is repeated, because it failed. `None`: it did not fail.
    retry_at: Option<Instant>,
}

impl EventCollector {
    /// Continues from what an earlier service stored.
    pub fn restored(reader: &Reader) -> longhaul_store::Result<Self> {
        let state = reader.notification_state()?;
        Ok(Self {
            tracker: Tracker::restored(&state),
            state,
            batch: NotificationBatch::default(),
            last_observation: None,
        })
    }

    /// Observes targets and problems. Cheap; also called during a round.
    pub fn observe_status(&mut self, status: &Status, rules: &Rules) {
        let found = self.tracker.observe(status, rules);
        self.add(found, None);
    }

    /// Returns whether a round has ended since the results were observed, or they were not observed yet.
    pub fn are_results_due(&self, status: &Status) -> bool {
        let is_current = |last: &Observation| {
            last.last_round == last_round(status) && last.retry_at.is_none_or(|at| Instant::now() < at)
        };
        !self.last_observation.as_ref().is_some_and(is_current)
    }

    /// Observes the results and the disks. After an error some of them are missing, until a round has ended or ten minutes have
    /// passed.
    pub fn observe_results(
        &mut self,
        status: &Status,
        database: &Path,
        config: &Config,
    ) -> longhaul_store::Result<()> {
        let result = Reader::open(database).and_then(|reader| self.observe_stored(&reader, config));
        let retry_at = result.is_err().then(|| Instant::now() + RETRY_INTERVAL);
        self.last_observation = Some(Observation { last_round: last_round(status), retry_at });
        result
    }

    fn observe_stored(&mut self, reader: &Reader, config: &Config) -> longhaul_store::Result<()> {
        let weekly = current_summary(reader, config)?;
        let found = result_events(&weekly, &self.state, platform::wall_clock());
        self.add(found, Some(&weekly));
        let mut space = reader.free_space()?;
        space.retain(|name, _| config.targets.iter().any(|target| target.name == *name));
        let found = disk_events(&space, &self.state, config.notify.rules.disk_below);
        self.add(found, None);
        let found = damage_events(&reader.mismatches(None)?, &self.state);
        self.add(found, None);
        Ok(())
    }

    /// Observes the calendar.
    pub fn observe_calendar(&mut self, rules: &Rules, now: &Zoned) {
        let found = match rules.digest {
            Some(time) => due_digest(time, now, &self.state),
            None => digest_switched_off(&self.state),
        };
        self.add(found, None);
    }

    /// Stores what was collected. Returns whether notifications were among it. After an error, all of it is kept.
    pub fn store(&mut self, writer: &Writer, channels: &[ChannelConfig]) -> longhaul_store::Result<bool> {
        if self.batch == NotificationBatch::default() {
            return Ok(false);
        }
        for new in &mut self.batch.notifications {
            new.channels = receivers(channels, new.notification.kind);
        }
        writer.queue_notifications(self.batch.clone())?;
        let batch = std::mem::take(&mut self.batch);
        Ok(!batch.notifications.is_empty())
    }

    /// Adds what was found. The state is up to date at once, so that nothing is found twice.
    fn add(&mut self, found: impl IntoIterator<Item = Occurrence>, weekly: Option<&WeeklySummary>) {
        let zone = TimeZone::system();
        let context = NotificationContext { now: platform::wall_clock(), zone: &zone, weekly };
        for Occurrence { key, event, state } in found {
            let StateChange { key: state_key, value } = state.clone();
            match value {
                Some(value) => drop(self.state.insert(state_key, value)),
                None => drop(self.state.remove(&state_key)),
            }
            self.batch.state.push(state);
            if let Some(event) = event {
                let notification = notification(&event, context);
                self.batch.notifications.push(NewNotification { key, notification, channels: vec![] });
            }
        }
    }
}

fn last_round(status: &Status) -> Option<i64> {
    status.last_round.as_ref().map(|round| round.number)
}

fn receivers(channels: &[ChannelConfig], kind: NotificationKind) -> Vec<String> {
    let wanted = channels.iter().filter(|channel| channel.kinds.contains(&kind));
    wanted.map(|channel| channel.name.clone()).collect()
}
