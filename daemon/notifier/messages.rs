//! Writes messages from queued notifications, and the report of a week for its digest.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{Week, WeeklyQuery, WeeklySummary, summarize_week};
use longhaul_measure::platform;
use longhaul_model::{Notification, Timestamp};
use longhaul_notify::{Message, Report};
use longhaul_service::config::Config;
use longhaul_service::paths;
use longhaul_store::{QueuedNotification, Reader, Result};
use longhaul_view::screens::notifications::{combined, digest_text};
use longhaul_view::time::utc_offset_at;

/// Writes messages from what the database contains.
pub struct MessageWriter<'a> {
    /// Reader of the database.
    pub reader: &'a Reader,
    /// Configuration, which has the usage profile.
    pub config: &'a Config,
}

impl MessageWriter<'_> {
    /// Returns the message for notifications that are sent together.
    pub fn message(&self, batch: &[QueuedNotification]) -> Result<Message> {
        let notifications: Vec<Notification> =
            batch.iter().map(|queued| queued.notification.clone()).collect();
        let Some(found) = combined(&notifications, &TimeZone::system()) else {
            return Ok(plain(longhaul_view::screens::notifications::test(platform::wall_clock())));
        };
        let week: Option<Week> = found.week.as_deref().and_then(|week| week.parse().ok());
        match week {
            Some(week) => self.digest(found, week),
            None => Ok(plain(found)),
        }
    }

    fn digest(&self, notification: Notification, week: Week) -> Result<Message> {
        let history = paths::read_history(self.reader, self.config)?;
        let weekly = summarize_week(
            &history,
            &WeeklyQuery { week, scale: None, since: None, zone: TimeZone::system() },
        );
        let environment = longhaul_web::report_environment(week, &history, &self.reader.epochs()?);
        let report = Report {
            markdown: longhaul_view::markdown(&weekly),
            html: longhaul_view::html(&weekly, &environment),
        };
        Ok(Message { text: digest_text(&weekly), report: Some(report), ..plain(notification) })
    }
}

/// Returns the summary of the current week.
pub fn current_summary(reader: &Reader, config: &Config) -> Result<WeeklySummary> {
    let history = paths::read_history(reader, config)?;
    let (now, zone): (Timestamp, _) = (platform::wall_clock(), TimeZone::system());
    let week = Week::of_day(now.local_day(utc_offset_at(now, &zone)));
    Ok(summarize_week(&history, &WeeklyQuery { week, scale: None, since: None, zone }))
}

fn plain(notification: Notification) -> Message {
    let Notification { kind, at, title, text, .. } = notification;
    Message { kind, at, title, text, report: None }
}
