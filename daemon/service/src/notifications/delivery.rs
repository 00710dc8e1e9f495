//! Decides which queued notifications are sent to a channel now.

use std::time::Duration;

use jiff::Zoned;
use longhaul_model::time::{HOUR, backoff};
use longhaul_model::{NotificationKind, Timestamp};
use longhaul_store::QueuedNotification;

use super::settings::Rules;

/// Delay after the first failure. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(15);
/// Longest delay between two attempts.
const MAX_DELAY: Duration = HOUR;
/// Largest number of notifications in one message.
const MAX_NOTIFICATIONS: usize = 20;

/// Next step for a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextDelivery {
    /// Nothing waits.
    Idle,
    /// Everything is held back until this time.
    Hold(Timestamp),
    /// These notifications are sent as one message.
    Send(Vec<QueuedNotification>),
}

/// Decides what to do with the notifications that wait, oldest first. `sent` are the times of the last messages.
///
/// All that waits is sent as one message, except that the report of a week is a message of its own.
pub fn next_step(
    pending: &[QueuedNotification],
    sent: &[Timestamp],
    now: &Zoned,
    rules: &Rules,
) -> NextDelivery {
    let Some(first) = pending.first() else { return NextDelivery::Idle };
    if let Some(end) = rules.quiet_hours.and_then(|hours| hours.end(now)) {
        return NextDelivery::Hold(end);
    }
    if let Some(end) = limited_until(sent, Timestamp::from_us(now.timestamp().as_microsecond()), rules) {
        return NextDelivery::Hold(end);
    }
    let is_digest = |queued: &&QueuedNotification| queued.notification.kind == NotificationKind::Digest;
    if is_digest(&first) {
        return NextDelivery::Send(vec![first.clone()]);
    }
    let others = pending.iter().filter(|queued| !is_digest(queued));
    NextDelivery::Send(others.take(MAX_NOTIFICATIONS).cloned().collect())
}

/// Returns the time until which the limit of messages an hour is reached. Times in the future are those of a wrong clock.
fn limited_until(sent: &[Timestamp], now: Timestamp, rules: &Rules) -> Option<Timestamp> {
    let recent: Vec<Timestamp> =
        sent.iter().copied().filter(|at| *at <= now && now.since(*at) < HOUR).collect();
    let oldest = recent.len().checked_sub(rules.messages_per_hour.max(1))?;
    Some(recent[oldest] + HOUR)
}

/// Returns the delay after a number of failures in a row. `jitter`, from 0 to 1, keeps many computers apart.
pub fn retry_delay(failures: u32, jitter: f64) -> Duration {
    backoff(FIRST_DELAY..=MAX_DELAY, failures, jitter)
}

#[cfg(test)]
mod tests {
    use longhaul_model::Notification;

    use super::*;
    use crate::schedule::quiet_hours::QuietHours;

    fn queued(number: i64, kind: NotificationKind) -> QueuedNotification {
        let at = Timestamp::from_us(number);
        let notification = Notification { kind, at, title: String::new(), text: String::new(), week: None };
        QueuedNotification { number, notification }
    }

    fn zoned(text: &str) -> Zoned {
        format!("{text}[UTC]").parse().unwrap()
    }

    fn us(at: &Zoned) -> Timestamp {
        Timestamp::from_us(at.timestamp().as_microsecond())
    }

    #[test]
    fn what_waits_is_one_message_and_the_digest_another() {
        let down = queued(1, NotificationKind::TargetDown);
        let digest = queued(2, NotificationKind::Digest);
        let back = queued(3, NotificationKind::TargetBack);
        let (now, rules) = (zoned("2026-11-25T12:00"), Rules::default());
        let step = next_step(&[down.clone(), digest.clone(), back.clone()], &[], &now, &rules);
        assert_eq!(step, NextDelivery::Send(vec![down, back.clone()]));
        assert_eq!(next_step(&[digest.clone(), back], &[], &now, &rules), NextDelivery::Send(vec![digest]));
        assert_eq!(next_step(&[], &[], &now, &rules), NextDelivery::Idle);
    }

    #[test]
    fn quiet_hours_hold_everything_until_they_end() {
        let rules = Rules { quiet_hours: Some(QuietHours { from: 1320, to: 420 }), ..Rules::default() };
        let pending = [queued(1, NotificationKind::CannotMeasure)];
        let step = next_step(&pending, &[], &zoned("2026-11-25T23:00"), &rules);
        assert_eq!(step, NextDelivery::Hold(us(&zoned("2026-11-26T07:00"))));
        let morning = next_step(&pending, &[], &zoned("2026-11-26T07:00"), &rules);
        assert_eq!(morning, NextDelivery::Send(pending.to_vec()));
    }

    #[test]
    fn no_hour_has_more_messages_than_allowed() {
        let rules = Rules { messages_per_hour: 2, ..Rules::default() };
        let pending = [queued(1, NotificationKind::TargetDown)];
        let sent = [us(&zoned("2026-11-25T11:10")), us(&zoned("2026-11-25T11:40"))];
        let step = next_step(&pending, &sent, &zoned("2026-11-25T12:00"), &rules);
        assert_eq!(step, NextDelivery::Hold(us(&zoned("2026-11-25T12:10"))));
        let later = next_step(&pending, &sent, &zoned("2026-11-25T12:10"), &rules);
        assert_eq!(later, NextDelivery::Send(pending.to_vec()));
        let before_a_clock_step = next_step(&pending, &sent, &zoned("2026-11-25T10:00"), &rules);
        assert_eq!(before_a_clock_step, NextDelivery::Send(pending.to_vec()));
    }
}
