//! Formats numbers with their units.

use std::fmt::Display;

use longhaul_model::Unit;

/// Formats a number with three significant digits, without exponent.
fn three_digits(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = usize::try_from(2 - digits).unwrap_or(0).min(9);
    format!("{value:.decimals$}")
}

/// Formats a value with its unit, scaled to a readable size.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => seconds(value),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
        Unit::PerSecond => format!("{}/s", grouped(value)),
        Unit::Count => grouped(value),
        Unit::Share => three_digits(value),
    }
}

/// Formats a measured time given in seconds, with three significant digits: `1.23 s`, `45.6 ms`, `7.89 µs`; from an hour on, as
/// [`duration`] does.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        3600.0.. => duration(value),
        0.0 => "0 s".to_owned(),
        small if small < 1e-3 => format!("{} µs", three_digits(value * 1e6)),
        middle if middle < 1.0 => format!("{} ms", three_digits(value * 1e3)),
        _ => format!("{} s", three_digits(value)),
    }
}

/// Text in place of a value that does not exist.
pub const NO_VALUE: &str = "–";

/// Returns the text of a value; `–` if there is none.
pub fn or_no_value(text: Option<String>) -> String {
    text.unwrap_or_else(|| NO_VALUE.to_owned())
}

/// Formats a measured time given in seconds; `–` if there is none.
pub fn seconds_or_none(value: Option<f64>) -> String {
    or_no_value(value.map(seconds))
}

/// Formats how long something lasted: `4.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`, `12 h`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    let (first, second) = match whole {
        0..60 => return format!("{} s", decimal(seconds.max(0.0), 1)),
        60..3_600 => ((whole / 60, "min"), (whole % 60, "s")),
        3_600..86_400 => ((whole / 3_600, "h"), (whole % 3_600 / 60, "min")),
        _ => ((whole / 86_400, "d"), (whole % 86_400 / 3_600, "h")),
    };
    match (first, second) {
        ((count, unit), (0, _)) => format!("{count} {unit}"),
        ((count, unit), (rest, part)) => format!("{count} {unit} {rest} {part}"),
    }
}

/// Formats the length of a window of time for a sentence about the last of it: `7 days`, `24 h`, `3 h`.
pub fn window(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match (whole / 86_400, whole % 86_400) {
        (1, 0) => "24 h".to_owned(),
        (days @ 2.., 0) => count(days, "day"),
        (_, _) => duration(seconds),
    }
}

/// Formats an estimate of how long something will last, in whole seconds below a minute, else in whole minutes.
pub fn estimated_duration(seconds: f64) -> String {
    duration(if seconds < 59.5 { seconds.round() } else { (seconds / 60.0).round() * 60.0 })
}

/// Formats a number of things, for example `1 round` or `2 rounds`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    if number == N::from(1) { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Formats a duration given in seconds for the label of an axis.
pub fn axis_duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        small if small < 0.999e-3 => (small * 1e6, "µs"),
        middle if middle < 0.999 => (middle * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    format!("{} {unit}", decimal(value, 3))
}

/// Formats a number with at most `decimals` decimals, without trailing zeros.
pub fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a number of bytes in decimal units, as used for disks and networks.
pub fn bytes(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        big if big >= 1e12 => (value / 1e12, "TB"),
        big if big >= 1e9 => (value / 1e9, "GB"),
        big if big >= 1e6 => (value / 1e6, "MB"),
        big if big >= 1e3 => (value / 1e3, "kB"),
        _ => return format!("{value:.0} B"),
    };
    format!("{} {unit}", three_digits(scaled))
}

/// Formats a count with thousands separators.
pub fn whole(count: u64) -> String {
    if count < 1000 { count.to_string() } else { grouped(count as f64) }
}

/// Formats a number with at least three significant digits and thousands separators: `12,300`.
pub fn grouped(value: f64) -> String {
    let text = three_digits(value);
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, fraction)| (whole, Some(fraction)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    fraction.map_or_else(|| format!("{sign}{out}"), |fraction| format!("{sign}{out}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let shown = [
            (duration(4.24), "4.2 s"),
            (duration(185.0), "3 min 5 s"),
            (duration(43_200.0), "12 h"),
            (duration(273_600.0), "3 d 4 h"),
            (estimated_duration(42.4), "42 s"),
            (estimated_duration(371.0), "6 min"),
            (window(604_800.0), "7 days"),
            (window(86_400.0), "24 h"),
            (window(5_400.0), "1 h 30 min"),
        ];
        for (found, expected) in shown {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let shown = [
            (value(0.000_012_34, Unit::Seconds), "12.3 µs"),
            (value(0.045_61, Unit::Seconds), "45.6 ms"),
            (value(12.0, Unit::Seconds), "12.0 s"),
            (value(1234.5, Unit::Seconds), "1234 s"),
            (value(123_456_789.0, Unit::BytesPerSecond), "123 MB/s"),
            (value(12_345.6, Unit::PerSecond), "12,346/s"),
            (value(0.0, Unit::Count), "0.00"),
            (value(0.123_4, Unit::Share), "0.123"),
        ];
        for (found, expected) in shown {
            assert_eq!(found, expected);
        }
    }
}
