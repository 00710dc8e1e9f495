//! Tests of the queue of notifications.

use longhaul_model::{Notification, NotificationKind, Timestamp};

use super::{TestDb, at};
use crate::{NewNotification, NotificationBatch, NotificationStatus, StateChange, Writer};

fn new(key: &str, made: Timestamp) -> NewNotification {
    let notification = Notification {
        kind: NotificationKind::TargetDown,
        at: made,
        title: key.to_owned(),
        text: "text".to_owned(),
        week: None,
    };
    NewNotification { key: key.to_owned(), notification, channels: vec!["phone".into(), "mail".into()] }
}

fn queue(writer: &Writer, notifications: Vec<NewNotification>) {
    writer.queue_notifications(NotificationBatch { notifications, state: vec![] }).unwrap();
}

fn titles(db: &TestDb, channel: &str) -> Vec<String> {
    let pending = db.reader().pending_notifications(channel).unwrap();
    pending.into_iter().map(|queued| queued.notification.title).collect()
}

#[test]
fn notification_with_a_known_key_is_queued_once() {
    let db = TestDb::new();
    let writer = db.writer();
    queue(&writer, vec![new("digest:2026-W47", at(1)), new("digest:2026-W47", at(2))]);
    writer.set_notification_status("phone", vec![1], NotificationStatus::Sent, at(3)).unwrap();
    queue(&writer, vec![new("digest:2026-W47", at(4)), new("digest:2026-W48", at(5))]);
    assert_eq!(titles(&db, "phone"), ["digest:2026-W48"]);
    assert_eq!(titles(&db, "mail"), ["digest:2026-W47", "digest:2026-W48"]);
}

#[test]
fn first_final_status_is_kept_and_counted() {
    let db = TestDb::new();
    let writer = db.writer();
    queue(&writer, ["a", "b", "c", "d"].map(|key| new(key, at(1))).to_vec());
    let set = |number, status, time| {
        writer.set_notification_status("phone", vec![number], status, at(time)).unwrap();
    };
    set(1, NotificationStatus::Sent, 10);
    set(1, NotificationStatus::Pending, 11);
    set(2, NotificationStatus::Unanswered, 10);
    set(3, NotificationStatus::Rejected, 12);
    let counts = db.reader().notification_counts("phone").unwrap();
    let numbers = (counts.pending, counts.sent, counts.unanswered, counts.rejected, counts.expired);
    assert_eq!((numbers, counts.last_sent), ((1, 1, 1, 1, 0), Some(at(10))));
    let times = db.reader().notification_times("phone", at(5)).unwrap();
    assert_eq!(times, [at(10)], "two notifications in one message are one");
}

#[test]
fn unfinished_attempt_is_not_repeated_after_a_restart() {
    let db = TestDb::new();
    let writer = db.writer();
    queue(&writer, vec![new("a", at(1)), new("b", at(1))]);
    writer.set_notification_status("phone", vec![1], NotificationStatus::Sending, at(2)).unwrap();
    drop(writer);
    db.writer().close_unfinished_notifications().unwrap();
    assert_eq!(titles(&db, "phone"), ["b"]);
    assert_eq!(db.reader().notification_counts("phone").unwrap().unanswered, 1);
}

#[test]
fn old_notifications_expire_on_every_channel() {
    let db = TestDb::new();
    let writer = db.writer();
    queue(&writer, vec![new("old", at(1)), new("new", at(100))]);
    writer.expire_notifications(at(50), at(101)).unwrap();
    assert_eq!((titles(&db, "phone"), titles(&db, "mail")), (vec!["new".into()], vec!["new".into()]));
    assert_eq!(db.reader().notification_counts("mail").unwrap().expired, 1);
}

#[test]
fn state_is_replaced_and_removed() {
    let db = TestDb::new();
    let writer = db.writer();
    let change = |value: Option<&str>| {
        let state = vec![StateChange { key: "down:smb".into(), value: value.map(str::to_owned) }];
        writer.queue_notifications(NotificationBatch { notifications: vec![], state }).unwrap();
        db.reader().notification_state().unwrap().remove("down:smb")
    };
    assert_eq!(change(Some("1")).as_deref(), Some("1"));
    assert_eq!(change(Some("2")).as_deref(), Some("2"));
    assert_eq!(change(None), None);
}
