//! Collects what has happened, and stores it in the queue.

use std::collections::BTreeMap;

use jiff::Zoned;
use jiff::tz::TimeZone;
use longhaul_analysis::summary::WeeklySummary;
use longhaul_measure::platform;
use longhaul_model::NotificationKind;
use longhaul_notify::ChannelConfig;
use longhaul_service::config::Config;
use longhaul_service::notifications::{
    Occurrence, Rules, Tracker, damage_events, disk_events, due_digest, result_events,
};
use longhaul_service::status::Status;
use longhaul_store::{NewNotification, NotificationBatch, Reader, StateChange, Writer};
use longhaul_view::screens::notifications::{NotificationContext, notification};

use super::messages::current_summary;

/// Events that are not stored yet, and the state of what was reported.
pub struct EventCollector {
    tracker: Tracker,
    state: BTreeMap<String, String>,
    batch: NotificationBatch,
    /// Number of the last round whose results were observed. `None`: there was no round.
    last_round: Option<i64>,
    has_observed_results: bool,
}

impl EventCollector {
    /// Continues from what an earlier service stored.
    pub fn restored(reader: &Reader) -> longhaul_store::Result<Self> {
        let state = reader.notification_state()?;
        Ok(Self {
            tracker: Tracker::restored(&state),
            state,
            batch: NotificationBatch::default(),
            last_round: None,
            has_observed_results: false,
        })
    }

    /// Observes targets and problems. Cheap; also called during a round.
    pub fn observe_status(&mut self, status: &Status, rules: &Rules) {
        let found = self.tracker.observe(status, rules);
        self.add(found, None);
    }

    /// Returns whether a round has ended since the results were observed, or they were not observed yet.
    pub fn has_new_round(&self, status: &Status) -> bool {
        !self.has_observed_results || self.last_round != last_round(status)
    }

    /// Records that the results were observed up to the last round.
    pub fn mark_round_observed(&mut self, status: &Status) {
        (self.has_observed_results, self.last_round) = (true, last_round(status));
    }

    /// Observes the results and the disks. After an error, some of them may be missing.
    pub fn observe_results(&mut self, reader: &Reader, config: &Config) -> longhaul_store::Result<()> {
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
        let found = rules.digest.and_then(|time| due_digest(time, now, &self.state));
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
