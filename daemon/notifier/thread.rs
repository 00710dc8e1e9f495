//! The loop of the notifier: observes the status, queues what has happened, sends what is due.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Zoned;
use longhaul_measure::platform;
use longhaul_model::time::HOUR;
use longhaul_model::{Hint, Timestamp};
use longhaul_service::config::Config;
use longhaul_service::handle::ServiceHandle;
use longhaul_service::notifications::{NextDelivery, NotifyConfig, next_step};
use longhaul_service::status::{NotifyStatus, Status};
use longhaul_store::{NotificationStatus, QueuedNotification, Reader, SharedWriter, Writer};

use super::channel::Channel;
use super::events::EventCollector;
use super::heartbeat::HeartbeatSender;
use super::messages::MessageWriter;

/// Interval at which the status is observed.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Dependencies of the notifier.
pub struct NotifierDeps {
    /// Path of the database, which has the queue.
    pub database: PathBuf,
    /// Writer of the database.
    pub writer: SharedWriter,
    /// Handle of the service, for its status.
    pub handle: Arc<ServiceHandle>,
}

/// State of the notifier.
pub struct NotifierThread {
    deps: NotifierDeps,
    config: Config,
    /// Writer of the database that `events` and `unstored` belong to. `None`: none was used yet.
    writer: Option<Weak<Writer>>,
    events: Option<EventCollector>,
    channels: Vec<Channel>,
    heartbeat: Option<HeartbeatSender>,
    /// Results of messages that the database has not accepted yet.
    unstored: Vec<MessageResult>,
}

/// The result of a message, for the notifications in it.
struct MessageResult {
    channel: String,
    numbers: Vec<i64>,
    status: NotificationStatus,
    at: Timestamp,
}

impl NotifierThread {
    /// Creates the state of a notifier that is not configured.
    pub fn new(deps: NotifierDeps) -> Self {
        let (config, channels, unstored) = (Config::default(), vec![], vec![]);
        Self { deps, config, writer: None, events: None, channels, heartbeat: None, unstored }
    }

    /// Runs until the service stops, with the latest configuration.
    pub fn run(&mut self, configs: &Receiver<Config>) {
        loop {
            let config = match self.is_idle() {
                true => configs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => configs.recv_timeout(POLL_INTERVAL),
            };
            match config {
                Ok(config) => self.configure(config),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.step();
        }
    }

    fn is_idle(&self) -> bool {
        self.channels.is_empty() && self.heartbeat.is_none()
    }

    fn configure(&mut self, config: Config) {
        let NotifyConfig { channels, heartbeat, .. } = &config.notify;
        let is_new = config.notify != self.config.notify;
        if is_new {
            self.channels = channels.iter().map(Channel::new).collect();
            self.heartbeat = heartbeat.clone().map(HeartbeatSender::new);
        }
        self.config = config;
        self.publish();
    }

    /// Collects and sends what is due. An error in one channel stops neither the other channels nor the heartbeat.
    fn step(&mut self) {
        let Some(status) = self.deps.handle.status().filter(|_| !self.is_idle()) else { return };
        self.deps.handle.export_pause.set_next_round(status.next_round_us);
        if !self.channels.is_empty()
            && let Err(error) = self.collect(&status)
        {
            tracing::warn!(error = error.one_line(), "new notifications cannot be read or stored");
        }
        for index in 0..self.channels.len() {
            if let Err(error) = self.deliver(index) {
                let name = self.channels[index].name();
                tracing::warn!(
                    name,
                    error = error.one_line(),
                    "the queue of a channel cannot be read or stored"
                );
            }
        }
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.send_if_due(&status, &self.deps.handle);
        }
        self.publish();
    }

    /// Returns the writer of the database. Forgets what belongs to an earlier one: its state of what was reported, and results of messages
    /// by its row numbers. If it was only removed and written again, such a message counts as unanswered.
    fn current_writer(&mut self) -> Option<Arc<Writer>> {
        let writer = self.deps.writer.current()?;
        let current = Arc::downgrade(&writer);
        if self.writer.as_ref().is_some_and(|before| !before.ptr_eq(&current)) {
            self.events = None;
            self.unstored.clear();
            // The queue of the new one may have notifications, and has other counts.
            self.channels.iter_mut().for_each(Channel::expect_more);
        }
        self.writer = Some(current);
        Some(writer)
    }

    /// Observes the status, and stores what has happened if no round is running.
    fn collect(&mut self, status: &Status) -> longhaul_store::Result<()> {
        let Some(writer) = self.current_writer() else { return Ok(()) };
        if self.events.is_none() {
            let Some(_permit) = self.deps.handle.export_pause.try_acquire() else { return Ok(()) };
            writer.close_unfinished_notifications()?;
            self.events = Some(EventCollector::restored(&Reader::open(&self.deps.database)?)?);
        }
        let Some(events) = &mut self.events else { return Ok(()) };
        events.observe_status(status, &self.config.notify.rules);
        let Some(_permit) = self.deps.handle.export_pause.try_acquire() else { return Ok(()) };
        // Results that cannot be read must not hold back what the status shows.
        let observed = match events.are_results_due(status) {
            true => events.observe_results(status, &self.deps.database, &self.config),
            false => Ok(()),
        };
        events.observe_calendar(&self.config.notify.rules, &Zoned::now());
        if events.store(&writer, &self.config.notify.channels)? {
            self.channels.iter_mut().for_each(Channel::expect_more);
        }
        observed
    }

    /// Sends what waits for a channel, as one message, if that is due.
    fn deliver(&mut self, index: usize) -> longhaul_store::Result<()> {
        let pause = Arc::clone(&self.deps.handle.export_pause);
        let Some(_permit) = pause.try_acquire().filter(|_| self.channels[index].is_due()) else {
            return Ok(());
        };
        let Some(writer) = self.current_writer() else { return Ok(()) };
        self.store_results(&writer)?;
        let channel = &mut self.channels[index];
        let (now, rules) = (platform::wall_clock(), &self.config.notify.rules);
        let reader = Reader::open(&self.deps.database)?;
        let mut pending = reader.pending_notifications(channel.name())?;
        let oldest = now - rules.retention;
        if pending.iter().any(|queued| queued.notification.at < oldest) {
            writer.expire_notifications(oldest, now)?;
            pending.retain(|queued| queued.notification.at >= oldest);
        }
        let sent = reader.notification_times(channel.name(), now - HOUR)?;
        match next_step(&pending, &sent, &Zoned::now(), rules) {
            NextDelivery::Idle => channel.set_idle(),
            NextDelivery::Hold(until) => channel.hold(until),
            NextDelivery::Send(batch) => {
                let numbers: Vec<i64> = batch.iter().map(|queued| queued.number).collect();
                let channel = channel.name().to_owned();
                writer.set_notification_status(
                    &channel,
                    numbers.clone(),
                    NotificationStatus::Sending,
                    now,
                )?;
                let status = self.send(index, &batch, &reader);
                self.unstored.push(MessageResult { channel, numbers, status, at: platform::wall_clock() });
                self.store_results(&writer)?;
            }
        }
        self.channels[index].count(&reader)
    }

    /// Stores the results of messages. The database may refuse one for a moment: it is kept, because a notification without a result is
    /// not sent a second time.
    fn store_results(&mut self, writer: &Writer) -> longhaul_store::Result<()> {
        while let Some(MessageResult { channel, numbers, status, at }) = self.unstored.first() {
            writer.set_notification_status(channel, numbers.clone(), *status, *at)?;
            self.unstored.remove(0);
        }
        Ok(())
    }

    fn send(&mut self, index: usize, batch: &[QueuedNotification], reader: &Reader) -> NotificationStatus {
        let writer = MessageWriter { reader, config: &self.config };
        let channel = &mut self.channels[index];
        match writer.message(batch) {
            Ok(message) => channel.send(&message),
            Err(error) => channel.fail(&error.one_line()),
        }
    }

    fn publish(&self) {
        self.deps.handle.set_notify(NotifyStatus {
            channels: self.channels.iter().map(Channel::status).collect(),
            heartbeat: self.heartbeat.as_ref().map(HeartbeatSender::status),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use jiff::civil::Weekday;
    use longhaul_model::{Notification, NotificationKind};
    use longhaul_notify::ChannelConfig;
    use longhaul_service::notifications::DigestTime;
    use longhaul_service::status::{DatabaseStatus, LastRound};
    use longhaul_store::{NewNotification, NotificationBatch, RoundStatus, Store};

    use super::*;

    /// Returns a notifier with one channel, and the writer of its database.
    fn notifier(folder: &Path) -> (NotifierThread, Arc<Writer>) {
        let database = folder.join("longhaul.sqlite");
        let current = Arc::new(Writer::spawn(Store::open(&database, &[]).unwrap()));
        let writer = SharedWriter::default();
        writer.replace(&current);
        let handle = Arc::new(ServiceHandle::default());
        let shown = DatabaseStatus { path: database.clone(), bytes: None };
        handle.publish(Status::new(shown, platform::wall_clock()));
        let mut thread = NotifierThread::new(NotifierDeps { database, writer, handle });
        let receiver = longhaul_notify::Receiver::Desktop;
        thread.channels =
            vec![Channel::new(&ChannelConfig { name: "a".to_owned(), receiver, kinds: vec![] })];
        (thread, current)
    }

    /// Queues a notification that is so old that it is given up instead of sent. Returns its number.
    fn queue_old(writer: &Writer, database: &Path) -> i64 {
        let (kind, at) = (NotificationKind::TargetDown, Timestamp::UNIX_EPOCH);
        let notification = Notification { kind, at, title: String::new(), text: String::new(), week: None };
        let (key, channels) = ("key".to_owned(), vec!["a".to_owned()]);
        let notifications = vec![NewNotification { key, notification, channels }];
        writer.queue_notifications(NotificationBatch { notifications, state: vec![] }).unwrap();
        Reader::open(database).unwrap().pending_notifications("a").unwrap()[0].number
    }

    #[test]
    fn unreadable_results_are_read_again_and_hold_nothing_back() {
        let folder = tempfile::tempdir().unwrap();
        let (mut thread, _writer) = notifier(folder.path());
        let status = thread.deps.handle.status().unwrap();
        let after_round = |number: i64| {
            let ended_us = platform::wall_clock();
            let last_round = Some(LastRound { number, status: RoundStatus::Ok, reason: None, ended_us });
            Status { last_round, ..status.clone() }
        };
        let are_results_due = |thread: &NotifierThread, status: &Status| {
            thread.events.as_ref().unwrap().are_results_due(status)
        };
        thread.collect(&status).unwrap();
        assert_eq!([&status, &after_round(1)].map(|status| are_results_due(&thread, status)), [false, true]);
        let database = std::mem::replace(&mut thread.deps.database, folder.path().join("missing"));
        thread.config.notify.rules.digest = Some(DigestTime { weekday: Weekday::Monday, minute: 0 });
        thread.collect(&after_round(1)).unwrap_err();
        assert!(!are_results_due(&thread, &after_round(1)), "a long history is not read every few seconds");
        assert!(are_results_due(&thread, &after_round(2)));
        let state = Reader::open(&database).unwrap().notification_state().unwrap();
        assert!(!state.is_empty(), "the state of the digest is stored");
    }

    #[test]
    fn result_that_the_database_refused_is_stored_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let (mut thread, writer) = notifier(folder.path());
        let numbers = vec![queue_old(&writer, &thread.deps.database)];
        let (channel, at) = ("a".to_owned(), Timestamp::UNIX_EPOCH);
        let reader = Reader::open(&thread.deps.database).unwrap();
        writer.set_notification_status(&channel, numbers.clone(), NotificationStatus::Sending, at).unwrap();
        thread.unstored.push(MessageResult { channel, numbers, status: NotificationStatus::Pending, at });
        thread.deliver(0).unwrap();
        assert!(thread.unstored.is_empty());
        assert_eq!(reader.notification_counts("a").unwrap().expired, 1, "it waited again");
    }

    #[test]
    fn new_database_has_its_own_state_and_results() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ((mut thread, writer), (new, new_writer)) = (notifier(folder.path()), notifier(other.path()));
        thread.config.notify.rules.digest = Some(DigestTime { weekday: Weekday::Monday, minute: 0 });
        let status = thread.deps.handle.status().unwrap();
        thread.collect(&status).unwrap();
        let numbers = vec![queue_old(&writer, &thread.deps.database)];
        assert_eq!(numbers, [queue_old(&new_writer, &new.deps.database)]);
        let (channel, at) = ("a".to_owned(), Timestamp::UNIX_EPOCH);
        thread.unstored.push(MessageResult { channel, numbers, status: NotificationStatus::Sent, at });
        thread.channels[0].set_idle();
        thread.deps.writer.replace(&new_writer);
        thread.deps.database = new.deps.database;
        thread.collect(&status).unwrap();
        thread.deliver(0).unwrap();
        let reader = Reader::open(&thread.deps.database).unwrap();
        assert!(!reader.notification_state().unwrap().is_empty(), "the state of the digest is stored again");
        let counts = reader.notification_counts("a").unwrap();
        assert_eq!((counts.sent, counts.expired), (0, 1), "the result is not that of its notification");
        assert_eq!(thread.channels[0].status().expired, 1, "the status has the counts of the new database");
    }

    #[test]
    fn unreadable_queue_does_not_stop_the_status() {
        let folder = tempfile::tempdir().unwrap();
        let (mut thread, _writer) = notifier(folder.path());
        thread.deps.database = folder.path().join("missing");
        thread.step();
        assert_eq!(thread.deps.handle.status().unwrap().notify.channels.len(), 1);
    }
}
