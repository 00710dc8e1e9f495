//! Notifications in words. They name targets and results, but no paths, servers or users, because they leave this
//! computer.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{PairSummary, WeeklySummary};
use longhaul_model::{
    ComparedPair, DownReason, MeasuringProblem, Notification, NotificationEvent, NotificationKind, Timestamp,
};

use super::brief::brief;
use super::checks::damage_notification;
use super::{recommendation, sentences};
use crate::{redaction, render, time, units};

/// Data that a notification is written with.
#[derive(Debug, Clone, Copy)]
pub struct NotificationContext<'a> {
    /// Current time.
    pub now: Timestamp,
    /// Time zone of the reader.
    pub zone: &'a TimeZone,
    /// Summary of the current week, for results. `None`: there is none yet.
    pub weekly: Option<&'a WeeklySummary>,
}

/// Returns the notification about an event.
pub fn notification(event: &NotificationEvent, context: NotificationContext<'_>) -> Notification {
    let (title, text) = match event {
        NotificationEvent::TargetDown { target, reason, since } => {
            down(target.as_str(), *reason, &context.since(*since))
        }
        NotificationEvent::TargetBack { target, since } => (
            format!("{target} is back"),
            format!("{target} can be used again. It was down for {}.", context.lasted(*since)),
        ),
        NotificationEvent::FirstResult(pair) => {
            (format!("First result: {} and {}", pair.a, pair.b), context.result(pair))
        }
        NotificationEvent::VerdictReached(pair) => {
            (format!("Verdict on {} and {}", pair.a, pair.b), context.result(pair))
        }
        NotificationEvent::VerdictChanged(pair) => {
            (format!("The verdict on {} and {} has changed", pair.a, pair.b), context.result(pair))
        }
        NotificationEvent::DiskNearlyFull { target, free_bytes, total_bytes } => {
            let (free, total) = (*free_bytes as f64, *total_bytes as f64);
            let percent = if total > 0.0 { free / total * 100.0 } else { 0.0 };
            let (free, total) = (units::bytes(free), units::bytes(total));
            let text = format!("{free} of {total} are free ({percent:.1} %). Free up space on it.");
            (format!("The disk of {target} is nearly full"), text)
        }
        NotificationEvent::DataDamaged { target, ranges } => damage_notification(target, *ranges),
        NotificationEvent::CannotMeasure { problem, since } => {
            cannot_measure(*problem, &context.since(*since))
        }
        NotificationEvent::MeasuringAgain { since, .. } => (
            "longhaul is measuring again".to_owned(),
            format!("The problem is solved. It lasted {}.", context.lasted(*since)),
        ),
        NotificationEvent::Digest { week } => {
            (format!("longhaul: report of week {week}"), format!("The report of week {week}."))
        }
    };
    let week = if let NotificationEvent::Digest { week } = event { Some(week.clone()) } else { None };
    Notification { kind: event.kind(), at: context.now, title, text, week }
}

/// Returns the notification that `longhaul notify test` sends.
pub fn test(now: Timestamp) -> Notification {
    Notification {
        kind: NotificationKind::Test,
        at: now,
        title: "Test from longhaul".to_owned(),
        text: "This is a test. Notifications from longhaul reach this channel.".to_owned(),
        week: None,
    }
}

/// Returns several notifications as one, oldest first. Its kind is that of the most urgent one.
pub fn combined(notifications: &[Notification], zone: &TimeZone) -> Option<Notification> {
    let [first, .., last] = notifications else { return notifications.first().cloned() };
    let most_urgent = notifications.iter().map(|found| found.kind).rev().max_by_key(|kind| kind.priority());
    let paragraph = |found: &Notification| {
        format!("{}: {}. {}", time::timestamp(found.at, zone), found.title, found.text)
    };
    Some(Notification {
        kind: most_urgent.unwrap_or(first.kind),
        at: last.at,
        title: format!("longhaul: {} notifications", notifications.len()),
        text: notifications.iter().map(paragraph).collect::<Vec<_>>().join("\n\n"),
        week: None,
    })
}

/// Returns the short report of a week as the text of its digest.
pub fn digest_text(weekly: &WeeklySummary) -> String {
    render::markdown::render(&brief(&redaction::redact_week(weekly)))
}

impl NotificationContext<'_> {
    /// Returns how long something has lasted, and since when.
    fn since(&self, since: Timestamp) -> String {
        format!("for {}, since {}", self.length(since), time::timestamp(since, self.zone))
    }

    /// Returns how long something lasted that is over now, and when it began.
    fn lasted(&self, since: Timestamp) -> String {
        format!("{}, from {}", self.length(since), time::timestamp(since, self.zone))
    }

    fn length(&self, since: Timestamp) -> String {
        units::estimated_duration(self.now.since(since).as_secs_f64())
    }

    /// Returns the recommendation and the result of a pair.
    fn result(&self, compared: &ComparedPair) -> String {
        let Some(weekly) = self.weekly else { return String::new() };
        let is_pair = |pair: &&PairSummary| pair.a == compared.a && pair.b == compared.b;
        let headline = weekly.pairs.iter().find(is_pair).map(sentences::headline).unwrap_or_default();
        format!("{} {headline}", recommendation::heading(weekly))
    }
}

fn down(target: &str, reason: DownReason, since: &str) -> (String, String) {
    let details = "`longhaul status` shows the details.";
    match reason {
        DownReason::Hung => (
            format!("{target} does not respond"),
            format!("{target} has not responded {since}. Check the NAS and the network. {details}"),
        ),
        DownReason::Unavailable => (
            format!("{target} is unavailable"),
            format!("{target} could not be used {since}. Check that it is mounted. {details}"),
        ),
        DownReason::Blocked => (
            format!("Access to {target} is refused"),
            format!("The system has refused access to {target} {since}. {details}"),
        ),
    }
}

fn cannot_measure(problem: MeasuringProblem, since: &str) -> (String, String) {
    let (title, text) = match problem {
        MeasuringProblem::NotStored => {
            ("longhaul cannot store results", "Results could not be stored. Check the disk of the database.")
        }
        MeasuringProblem::DatabaseLost => {
            ("longhaul lost its database", "The database could not be repaired or replaced. Check its disk.")
        }
        MeasuringProblem::SafeMode => (
            "longhaul has stopped measuring",
            "longhaul crashed repeatedly and measures nothing until you run `longhaul resume`.",
        ),
        MeasuringProblem::NoRounds => (
            "longhaul has not measured for a day",
            "Every round was skipped or void; `longhaul runs` and `longhaul doctor` show why.",
        ),
    };
    (title.to_owned(), format!("{text} This has been the case {since}. `longhaul status` shows the details."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_us(7_200_000_000);

    fn text(event: &NotificationEvent) -> String {
        let context = NotificationContext { now: NOW, zone: &TimeZone::UTC, weekly: None };
        let found = notification(event, context);
        format!("{}\n{}", found.title, found.text)
    }

    #[test]
    fn outage_is_described_with_its_length_and_the_next_step() {
        let target = "smb".parse().unwrap();
        let since = Timestamp::from_us(6_480_000_000);
        let down = NotificationEvent::TargetDown { target, reason: DownReason::Hung, since };
        assert_eq!(
            text(&down),
            "smb does not respond\nsmb has not responded for 12 min, since 1970-01-01 01:48:00. Check the NAS and the \
             network. `longhaul status` shows the details."
        );
        let target = "smb".parse().unwrap();
        let back = text(&NotificationEvent::TargetBack { target, since });
        assert_eq!(
            back,
            "smb is back\nsmb can be used again. It was down for 12 min, from 1970-01-01 01:48:00."
        );
    }

    #[test]
    fn full_disk_is_described_in_bytes_and_percent() {
        let target = "smb".parse().unwrap();
        let (free_bytes, total_bytes) = (42_000_000_000, 4_000_000_000_000);
        let full = text(&NotificationEvent::DiskNearlyFull { target, free_bytes, total_bytes });
        assert!(full.starts_with("The disk of smb is nearly full\n42"), "{full}");
        assert!(full.contains("(1.1 %)") || full.contains("(1.0 %)"), "{full}");
    }

    #[test]
    fn several_notifications_become_one_message() {
        let note = |kind, title: &str| Notification {
            kind,
            at: NOW,
            title: title.to_owned(),
            text: "Details.".to_owned(),
            week: None,
        };
        let back = note(NotificationKind::TargetBack, "smb is back");
        let both = [note(NotificationKind::TargetDown, "smb is unavailable"), back.clone()];
        let combined_text = combined(&both, &TimeZone::UTC).unwrap();
        assert_eq!(
            (combined_text.kind, combined_text.title.as_str()),
            (NotificationKind::TargetDown, "longhaul: 2 notifications")
        );
        assert_eq!(
            combined_text.text,
            "1970-01-01 02:00:00: smb is unavailable. Details.\n\n1970-01-01 02:00:00: smb is back. Details."
        );
        assert_eq!(combined(std::slice::from_ref(&back), &TimeZone::UTC), Some(back));
    }
}
