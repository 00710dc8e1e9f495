//! Numbers and times in the text of traces.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Length of a day.
const DAY: Duration = Duration::from_secs(86_400);

/// Clock of a trace whose times have no date: after midnight it goes on.
#[derive(Default)]
pub(super) struct DayClock {
    days: Duration,
    last: Duration,
}

impl DayClock {
    /// Returns the time since the first midnight. A time since 1970 stays as it is.
    pub(super) fn at(&mut self, time: Duration) -> Duration {
        if time >= DAY {
            return time;
        }
        if self.days >= DAY && time > self.last + DAY / 2 {
            // A line of before midnight behind one of after it.
            return self.days - DAY + time;
        }
        if time + DAY / 2 < self.last {
            self.days += DAY;
        }
        self.last = time;
        self.days + time
    }
}

/// Parses a decimal number, or a hexadecimal one that begins with `0x`.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok())?
}

/// Parses `1764144000.123456` and `12:34:56.789`.
pub(super) fn seconds(word: &[u8]) -> Option<Duration> {
    let (whole, fraction) = match word.iter().position(|byte| *byte == b'.') {
        Some(point) => (&word[..point], &word[point + 1..]),
        None if word.contains(&b':') => (word, &b""[..]),
        None => return None,
    };
    let mut total = 0u64;
    for part in whole.split(|byte| *byte == b':') {
        total = total.checked_mul(60)?.checked_add(number(part)?)?;
    }
    if fraction.is_empty() {
        return Some(Duration::from_secs(total));
    }
    let digits = fraction.len().min(9);
    let nanoseconds = number(&fraction[..digits])? * 10u64.pow(9 - digits as u32);
    Some(Duration::new(total, nanoseconds as u32))
}

/// Parses a date and time: RFC 3339, `2026-03-11 17:30:01`, `2026/03/11 17:30:01`, or that of syslog without a year,
/// `Mar 11 17:30:01`. The time zone is ignored where the text has none: only differences count.
pub(super) fn date(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return since_1970(timestamp);
    }
    let with_hyphens = text.replace('/', "-");
    // A leap year has all the dates that syslog can show.
    let civil = with_hyphens
        .parse::<DateTime>()
        .ok()
        .or_else(|| DateTime::strptime("%Y %b %d %H:%M:%S", format!("1972 {text}")).ok())?;
    since_1970(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn since_1970(timestamp: Timestamp) -> Option<Duration> {
    timestamp.as_duration().try_into().ok()
}

/// Returns the time at the beginning of a line of syslog.
pub(super) fn syslog_date(line: &str) -> Option<Duration> {
    let line = match line.strip_prefix('<') {
        Some(rest) => rest.split_once('>')?.1,
        None => line,
    };
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    let (second, third) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    date(first)
        .or_else(|| date(&format!("{first} {second}")))
        .or_else(|| date(&format!("{first} {second} {third}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_logs_are_understood() {
        for (text, seconds) in [
            ("1970-01-01T00:00:10.5Z", 10.5),
            ("1970-01-01 00:00:10", 10.0),
            ("1970/01/01 00:00:10", 10.0),
            ("1970-01-01T01:00:10+01:00", 10.0),
        ] {
            assert_eq!(date(text).map(|time| time.as_secs_f64()), Some(seconds), "{text}");
        }
        let difference = |a: &str, b: &str| syslog_date(b).unwrap() - syslog_date(a).unwrap();
        assert_eq!(difference("<14>Feb 28 23:59:59 nas x", "Mar  1 00:00:01 nas x").as_secs(), 86_402);
        assert_eq!(date("yesterday"), None);
    }
}
