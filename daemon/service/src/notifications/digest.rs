//! The time of the weekly digest: once in each week of the calendar, whatever the clock does.

use std::collections::BTreeMap;

use jiff::civil::Weekday;
use jiff::{ToSpan, Zoned};
use longhaul_model::NotificationEvent;

use super::occurrence::Occurrence;

/// State with the week of the last digest, and with the time at which the digest was switched on.
const LAST: &str = "digest:last";
const SINCE: &str = "digest:since";

/// Weekday and time of day of the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestTime {
    /// Day of the week.
    pub weekday: Weekday,
    /// Minute of the local day.
    pub minute: u16,
}

/// Returns the digest if it is due now, or what is to be stored first.
///
/// A digest that was due while the computer was off is sent later in the same week. It reports the week that contains the
/// day before, so that a digest on Monday is about the week that has just ended.
pub fn due_digest(time: DigestTime, now: &Zoned, state: &BTreeMap<String, String>) -> Option<Occurrence> {
    let since = state.get(SINCE).and_then(|since| since.parse::<i64>().ok());
    let now_us = now.timestamp().as_microsecond();
    // Nothing is due for the time before the digest was switched on. A time in the future is that of a wrong clock.
    let Some(since) = since.filter(|since| *since <= now_us) else {
        return Some(Occurrence::silent(SINCE, Some(now_us.to_string())));
    };
    let due = due_in_week_of(time, now)?;
    let week = iso_week(&due);
    let is_due = *now >= due && due.timestamp().as_microsecond() >= since;
    if !is_due || state.get(LAST) == Some(&week) {
        return None;
    }
    let reported = iso_week(&due.checked_sub(1.day()).ok()?);
    let mut digest = Occurrence::reported(NotificationEvent::Digest { week: reported }, LAST, week.clone());
    digest.key = format!("digest:{week}");
    Some(digest)
}

/// Returns what is to be stored while the digest is switched off, so that nothing is due for this time when it is switched on again.
pub fn digest_switched_off(state: &BTreeMap<String, String>) -> Option<Occurrence> {
    state.contains_key(SINCE).then(|| Occurrence::silent(SINCE, None))
}

/// Returns the time of the digest in the week of the calendar that contains `now`.
fn due_in_week_of(time: DigestTime, now: &Zoned) -> Option<Zoned> {
    let (hour, minute) = ((time.minute / 60) as i8, (time.minute % 60) as i8);
    let week = now.date().iso_week_date();
    let date = jiff::civil::ISOWeekDate::new(week.year(), week.week(), time.weekday).ok()?.date();
    date.at(hour, minute, 0, 0).to_zoned(now.time_zone().clone()).ok()
}

fn iso_week(at: &Zoned) -> String {
    let week = at.date().iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONDAY: DigestTime = DigestTime { weekday: Weekday::Monday, minute: 8 * 60 };

    /// Follows the clock over these times. Returns the keys of the digests, and the reported weeks.
    fn digests(times: &[&str]) -> Vec<(String, String)> {
        let (mut state, mut found) = (BTreeMap::new(), vec![]);
        for time in times {
            let now: Zoned = format!("{time}[Europe/Berlin]").parse().unwrap();
            for _ in 0..3 {
                let Some(next) = due_digest(MONDAY, &now, &state) else { continue };
                if let Some(NotificationEvent::Digest { week }) = next.event {
                    found.push((next.key, week));
                }
                state.insert(next.state.key, next.state.value.unwrap());
            }
        }
        found
    }

    fn keys(times: &[&str]) -> Vec<String> {
        digests(times).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn digest_of_monday_reports_the_week_before() {
        let found =
            digests(&["2026-11-22T10:00", "2026-11-23T07:59", "2026-11-23T08:00", "2026-11-24T08:00"]);
        assert_eq!(found, [("digest:2026-W48".to_owned(), "2026-W47".to_owned())]);
    }

    #[test]
    fn digest_missed_while_off_is_sent_in_the_same_week() {
        assert_eq!(keys(&["2026-11-20T10:00", "2026-11-26T21:00"]), ["digest:2026-W48"]);
    }

    #[test]
    fn switching_on_later_in_the_week_sends_nothing() {
        assert!(keys(&["2026-11-25T10:00", "2026-11-26T10:00"]).is_empty());
    }

    #[test]
    fn digest_that_was_off_is_not_sent_for_that_time() {
        let mut state = BTreeMap::from([(SINCE.to_owned(), "0".to_owned())]);
        let off = digest_switched_off(&state).unwrap();
        assert_eq!((off.state.key.as_str(), off.state.value), (SINCE, None));
        state.clear();
        assert!(digest_switched_off(&state).is_none());
        let thursday: Zoned = "2026-11-26T10:00[Europe/Berlin]".parse().unwrap();
        assert!(due_digest(MONDAY, &thursday, &state).unwrap().event.is_none());
    }

    #[test]
    fn jumping_clock_sends_one_digest_a_week() {
        let times = [
            "2026-11-22T10:00",
            "2026-11-23T09:00",
            "2026-11-30T09:00",
            "2026-11-23T08:30",
            "2026-11-23T07:00",
            "2026-11-24T10:00",
            "2026-11-30T07:00",
            "2026-11-30T08:10",
            "2026-12-07T08:10",
        ];
        let mut found = keys(&times);
        found.sort();
        found.dedup();
        assert_eq!(
            found,
            ["digest:2026-W48", "digest:2026-W49", "digest:2026-W50"],
            "each key is stored once"
        );
    }

    #[test]
    fn year_ends_in_the_week_of_the_calendar() {
        let found = digests(&["2026-12-28T07:00", "2027-01-04T08:00"]);
        assert_eq!(found, [("digest:2027-W01".to_owned(), "2026-W53".to_owned())]);
    }
}
