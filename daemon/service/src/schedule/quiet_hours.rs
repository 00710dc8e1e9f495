//! Hours of the day in which no round runs, or nothing is sent.

use jiff::{ToSpan, Zoned};
use longhaul_model::Timestamp;

/// Hours of the local day, as minutes of the day. They cross midnight if the first is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// First quiet minute.
    pub from: u16,
    /// First minute that is not quiet any more.
    pub to: u16,
}

impl QuietHours {
    /// Returns whether a minute of the day is quiet.
    pub fn contains(self, minute: u16) -> bool {
        if self.from <= self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }

    /// Returns the end of the quiet hours that contain a time. `None`: it is not in quiet hours.
    pub fn end(self, now: &Zoned) -> Option<Timestamp> {
        let minute = now.hour().unsigned_abs() as u16 * 60 + now.minute().unsigned_abs() as u16;
        if !self.contains(minute) {
            return None;
        }
        let days = if minute < self.to { 0 } else { 1 };
        let date = now.date().checked_add(days.days()).ok()?;
        let end = date
            .at((self.to / 60) as i8, (self.to % 60) as i8, 0, 0)
            .to_zoned(now.time_zone().clone())
            .ok()?;
        Some(Timestamp::from_us(end.timestamp().as_microsecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(hours: QuietHours, now: &str) -> Option<String> {
        let now: Zoned = now.parse().unwrap();
        let end = jiff::Timestamp::from_microsecond(hours.end(&now)?.as_us()).unwrap();
        Some(end.to_zoned(now.time_zone().clone()).strftime("%d %H:%M").to_string())
    }

    #[test]
    fn quiet_hours_end_in_the_morning() {
        let night = QuietHours { from: 22 * 60, to: 7 * 60 };
        assert_eq!(end(night, "2026-11-25T23:10:00[Europe/Berlin]").as_deref(), Some("26 07:00"));
        assert_eq!(end(night, "2026-11-26T06:59:59[Europe/Berlin]").as_deref(), Some("26 07:00"));
        assert_eq!(end(night, "2026-11-26T07:00:00[Europe/Berlin]"), None);
        let noon = QuietHours { from: 12 * 60, to: 13 * 60 };
        assert_eq!(end(noon, "2026-11-26T12:00:00[Europe/Berlin]").as_deref(), Some("26 13:00"));
        assert_eq!(end(QuietHours { from: 5, to: 5 }, "2026-11-26T00:05:00[Europe/Berlin]"), None);
    }

    #[test]
    fn end_in_the_missing_hour_of_spring_exists() {
        let night = QuietHours { from: 60, to: 150 };
        assert_eq!(end(night, "2027-03-28T01:30:00[Europe/Berlin]").as_deref(), Some("28 03:30"));
    }
}
