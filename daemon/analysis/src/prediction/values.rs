//! Texts for the network and disk that a user asks about.

use std::time::Duration;

/// Time of a request to a disk that is asked for by its kind.
const SSD: Duration = Duration::from_micros(100);
const HARD_DISK: Duration = Duration::from_millis(8);
/// Largest values that are accepted.
const MAX_DELAY: Duration = Duration::from_secs(10);
const MAX_BITS_PER_SECOND: f64 = 1e12;

/// Parses a round-trip time: `20ms`, `20 ms`, `500us` or `0.5ms`.
///
/// # Errors
///
/// If it is no positive time of at most 10 s.
pub fn parse_round_trip(text: &str) -> Result<Duration, String> {
    parse_delay(text).ok_or("write it as 20ms or 500us, with at most 10s".to_owned())
}

/// Parses a bandwidth: `10gbit`, `100 Mbit/s` or `64kbit`, in bits per second.
///
/// # Errors
///
/// If it is no number with a unit, or less than a kilobit per second.
pub fn parse_bandwidth(text: &str) -> Result<f64, String> {
    let text = text.trim_end_matches("/s");
    let units = [("kbit", 1e3), ("kbps", 1e3), ("mbit", 1e6), ("mbps", 1e6), ("gbit", 1e9), ("gbps", 1e9)];
    let bits = with_unit(text, &units).filter(|bits| (1e3..=MAX_BITS_PER_SECOND).contains(bits));
    bits.ok_or("write it as 100mbit or 10gbit".to_owned())
}

/// Parses a kind of disk (`ssd`, `hdd`) or the time of one request to it (`8ms`).
///
/// # Errors
///
/// If it is neither.
pub fn parse_disk(text: &str) -> Result<Duration, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "ssd" => Ok(SSD),
        "hdd" => Ok(HARD_DISK),
        text => parse_delay(text).ok_or("write ssd, hdd or the time of a request, such as 8ms".to_owned()),
    }
}

fn parse_delay(text: &str) -> Option<Duration> {
    let seconds = with_unit(text, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)])?;
    Duration::try_from_secs_f64(seconds).ok().filter(|delay| !delay.is_zero() && *delay <= MAX_DELAY)
}

/// Returns the value of a positive number with one of the units, in capitals or not; `None` if it is none.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let (digits, unit) = text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic())?);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = digits.trim_end().parse::<f64>().ok()? * factor;
    (value.is_finite() && value > 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_and_disk_are_parsed() {
        assert_eq!(parse_round_trip("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(parse_round_trip("0.5ms"), Ok(Duration::from_micros(500)));
        assert_eq!((parse_bandwidth("10gbit"), parse_bandwidth("2.5gbit")), (Ok(1e10), Ok(2.5e9)));
        for as_printed in ["20 ms", " 20 MS", "20.0 ms"] {
            assert_eq!(parse_round_trip(as_printed), Ok(Duration::from_millis(20)), "{as_printed}");
        }
        for as_printed in ["100 Mbit/s", "100mbps", "0.1 Gbit/s"] {
            assert_eq!(parse_bandwidth(as_printed), Ok(1e8), "{as_printed}");
        }
        assert_eq!((parse_disk("SSD"), parse_disk("8 ms")), (Ok(SSD), Ok(Duration::from_millis(8))));
        assert_eq!((parse_disk("ssd"), parse_disk("12ms")), (Ok(SSD), Ok(Duration::from_millis(12))));
    }

    #[test]
    fn impossible_values_are_refused_with_an_example() {
        for bad in ["", "20", "ms", "0ms", "-1ms", "11s", "1e400ms", "2 0ms", "20min", "nanms"] {
            assert!(parse_round_trip(bad).unwrap_err().contains("20ms"), "{bad}");
        }
        for bad in ["10", "0gbit", "0.1kbit", "10GB", "9999gbit", "infgbit"] {
            assert!(parse_bandwidth(bad).unwrap_err().contains("10gbit"), "{bad}");
        }
        assert!(parse_disk("floppy").is_err());
    }
}
