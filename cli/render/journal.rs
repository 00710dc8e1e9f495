//! An event as a line.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul_measure::model::Event;
use longhaul_measure::summary::one_line;

/// `2026-11-12 09:31:05  smb  changed  mtu (before: 1500, after: 9000)`.
pub fn event(event: &Event, zone: &TimeZone) -> String {
    let target = event.target.as_ref().map_or("machine", |target| target.as_str());
    format!("{}  {target:<10} {:<12} {}", time(event.at_us, zone), event.kind, one_line(&event.detail))
        .trim_end()
        .to_owned()
}

/// Local date and time to the second.
pub fn time(at_us: i64, zone: &TimeZone) -> String {
    match Timestamp::from_microsecond(at_us) {
        Ok(instant) => instant.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{at_us} µs since 1970"),
    }
}
