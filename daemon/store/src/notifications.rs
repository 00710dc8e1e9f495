//! The queue of notifications: what was made, and its delivery to each channel.

use std::collections::BTreeMap;

use longhaul_model::{Notification, NotificationKind, Timestamp};
use rusqlite::{Connection, Row, Transaction, params};

use crate::error::{Fault, Result};
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};
use crate::writer::Writer;

/// A notification to queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNotification {
    /// Key that says what it is about. A notification whose key exists already is not queued again.
    pub key: String,
    /// The notification.
    pub notification: Notification,
    /// Names of the channels that it is sent to.
    pub channels: Vec<String>,
}

/// A change of the state of the notifications sent so far. `None`: the key is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// Key of the state.
    pub key: String,
    /// New value.
    pub value: Option<String>,
}

/// Notifications with the changes of state that belong to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotificationBatch {
    /// Notifications, oldest first.
    pub notifications: Vec<NewNotification>,
    /// Changes of the state.
    pub state: Vec<StateChange>,
}

/// A notification that waits to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedNotification {
    /// Number in this database, from 1.
    pub number: i64,
    /// The notification.
    pub notification: Notification,
}

/// Final status of a notification on a channel, or `Pending` to send it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationStatus {
    /// It waits to be sent.
    Pending,
    /// An attempt is being made.
    Sending,
    /// The receiver accepted it.
    Sent,
    /// It was sent, and no answer came: it may have arrived.
    Unanswered,
    /// The receiver refused it.
    Rejected,
}

impl NotificationStatus {
    const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Unanswered => "unanswered",
            Self::Rejected => "rejected",
        }
    }
}

/// Number of notifications of a channel by status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChannelCounts {
    /// Number that waits to be sent.
    pub pending: u64,
    /// Number that the receiver accepted.
    pub sent: u64,
    /// Number that was sent without an answer.
    pub unanswered: u64,
    /// Number that the receiver refused.
    pub rejected: u64,
    /// Number that was given up.
    pub expired: u64,
    /// Time of the last accepted one. `None`: none was accepted yet.
    pub last_sent: Option<Timestamp>,
}

impl Reader {
    /// Returns the notifications that wait to be sent to a channel, oldest first.
    pub fn pending_notifications(&self, channel: &str) -> Result<Vec<QueuedNotification>> {
        let query = "SELECT notification.* FROM notification_delivery
            JOIN notification ON notification.number = notification_delivery.notification
            WHERE channel = ?1 AND status = 'pending' ORDER BY number";
        self.in_snapshot("read the notifications", |cx| query_all(cx, query, [channel], queued))
    }

    /// Returns the number of notifications of a channel by status.
    pub fn notification_counts(&self, channel: &str) -> Result<ChannelCounts> {
        self.in_snapshot("count the notifications", |cx| counts(cx, channel))
    }

    /// Returns the times of the messages that were sent to a channel at `since` or later, oldest first.
    pub fn notification_times(&self, channel: &str, since: Timestamp) -> Result<Vec<Timestamp>> {
        let query = "SELECT DISTINCT at_us FROM notification_delivery
            WHERE channel = ?1 AND status IN ('sent', 'unanswered') AND at_us >= ?2 ORDER BY at_us";
        self.in_snapshot("read the times of notifications", |cx| {
            query_all(cx, query, params![channel, since.as_us()], |row| Ok(Timestamp::from_us(row.get(0)?)))
        })
    }

    /// Returns the state of the notifications sent so far.
    pub fn notification_state(&self) -> Result<BTreeMap<String, String>> {
        let query = "SELECT key, value FROM notification_state";
        self.in_snapshot("read the state of notifications", |cx| {
            Ok(query_all(cx, query, [], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect())
        })
    }
}

impl Writer {
    /// Queues notifications and stores the changes of state, in one transaction.
    pub fn queue_notifications(&self, batch: NotificationBatch) -> Result<()> {
        self.transact("queue notifications", move |cx| {
            batch.notifications.iter().try_for_each(|new| insert(cx, new))?;
            batch.state.iter().try_for_each(|change| apply(cx, change))
        })
    }

    /// Sets the status of notifications on a channel.
    pub fn set_notification_status(
        &self,
        channel: &str,
        numbers: Vec<i64>,
        status: NotificationStatus,
        at: Timestamp,
    ) -> Result<()> {
        let channel = channel.to_owned();
        let update = "UPDATE notification_delivery SET status = ?3, at_us = ?4
            WHERE channel = ?1 AND notification = ?2 AND status IN ('pending', 'sending')";
        self.transact("store the delivery of notifications", move |cx| {
            let mut statement = cx.prepare_cached(update)?;
            for number in numbers {
                statement.execute(params![channel, number, status.name(), at.as_us()])?;
            }
            Ok(())
        })
    }

    /// Ends attempts that an earlier service left unfinished: they may have arrived, so they are not repeated.
    pub fn close_unfinished_notifications(&self) -> Result<()> {
        self.transact("close notifications", |cx| {
            let update = "UPDATE notification_delivery SET status = 'unanswered' WHERE status = 'sending'";
            Ok(cx.execute(update, []).map(drop)?)
        })
    }

    /// Gives up notifications that were made before `before` and still wait.
    pub fn expire_notifications(&self, before: Timestamp, at: Timestamp) -> Result<()> {
        self.transact("expire notifications", move |cx| {
            let update =
                "UPDATE notification_delivery SET status = 'expired', at_us = ?2 WHERE status = 'pending'
                AND notification IN (SELECT number FROM notification WHERE at_us < ?1)";
            Ok(cx.execute(update, [before.as_us(), at.as_us()]).map(drop)?)
        })
    }
}

fn insert(cx: &Transaction<'_>, new: &NewNotification) -> Result<(), Fault> {
    let Notification { kind, at, title, text, week } = &new.notification;
    let insert = "INSERT OR IGNORE INTO notification (key, kind, at_us, title, text, week)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![new.key, kind.name(), at.as_us(), title, text, week];
    if cx.prepare_cached(insert)?.execute(values)? == 0 {
        return Ok(());
    }
    let number = cx.last_insert_rowid();
    let insert = "INSERT INTO notification_delivery (channel, notification, status, at_us)
        VALUES (?1, ?2, 'pending', ?3)";
    let mut statement = cx.prepare_cached(insert)?;
    for channel in &new.channels {
        statement.execute(params![channel, number, at.as_us()])?;
    }
    Ok(())
}

fn apply(cx: &Transaction<'_>, change: &StateChange) -> Result<(), Fault> {
    let changed = match &change.value {
        Some(value) => cx.execute(
            "INSERT OR REPLACE INTO notification_state (key, value) VALUES (?1, ?2)",
            params![change.key, value],
        ),
        None => cx.execute("DELETE FROM notification_state WHERE key = ?1", [&change.key]),
    };
    Ok(changed.map(drop)?)
}

fn queued(row: &Row<'_>) -> Result<QueuedNotification, Fault> {
    let row = TableRow::numbered(row, "notification")?;
    let notification = Notification {
        kind: row.parsed("kind", NotificationKind::from_name)?,
        at: row.time("at_us")?,
        title: row.get("title")?,
        text: row.get("text")?,
        week: row.get("week")?,
    };
    Ok(QueuedNotification { number: row.number, notification })
}

fn counts(cx: &Connection, channel: &str) -> Result<ChannelCounts, Fault> {
    let query =
        "SELECT status, count(*), max(at_us) FROM notification_delivery WHERE channel = ?1 GROUP BY status";
    let rows = query_all(cx, query, [channel], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.cast_unsigned(), Timestamp::from_us(row.get(2)?)))
    })?;
    let mut counts = ChannelCounts::default();
    for (status, count, last) in rows {
        match status.as_str() {
            "pending" | "sending" => counts.pending += count,
            "sent" => (counts.sent, counts.last_sent) = (count, Some(last)),
            "unanswered" => counts.unanswered = count,
            "rejected" => counts.rejected = count,
            _ => counts.expired = count,
        }
    }
    Ok(counts)
}
