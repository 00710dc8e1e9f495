//! Numbers with their units, to the digits that they carry.

use longhaul_measure::model::Unit;

/// Three significant digits, without exponent.
fn three(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = usize::try_from(2 - digits).unwrap_or(0).min(9);
    format!("{value:.decimals$}")
}

/// A value with its unit, scaled for reading.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => seconds(value),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
        Unit::PerSecond => format!("{}/s", thousands(value)),
        Unit::Count => thousands(value),
        Unit::Share => three(value),
    }
}

/// A duration: `1.23 s`, `45.6 ms`, `7.89 µs`.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => "0 s".to_owned(),
        small if small < 1e-3 => format!("{} µs", three(value * 1e6)),
        middle if middle < 1.0 => format!("{} ms", three(value * 1e3)),
        _ => format!("{} s", three(value)),
    }
}

/// A round duration on an axis.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        small if small < 0.999e-3 => (small * 1e6, "µs"),
        middle if middle < 0.999 => (middle * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    format!("{} {unit}", plain(value, 3))
}

/// A number with at most so many decimals, and none that is zero at its end.
pub fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Bytes in decimal units, as disks and networks count.
pub fn bytes(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        big if big >= 1e12 => (value / 1e12, "TB"),
        big if big >= 1e9 => (value / 1e9, "GB"),
        big if big >= 1e6 => (value / 1e6, "MB"),
        big if big >= 1e3 => (value / 1e3, "kB"),
        _ => return format!("{value:.0} B"),
    };
    format!("{} {unit}", three(scaled))
}

/// A number with three significant digits and separators: `12,300`.
pub fn thousands(value: f64) -> String {
    let text = three(value);
    let (whole, rest) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    rest.map_or_else(|| format!("{sign}{out}"), |rest| format!("{sign}{out}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_three_digits_and_a_unit() {
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
