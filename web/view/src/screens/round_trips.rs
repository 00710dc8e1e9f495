//! Sentences about the round trip time that a comparison is adjusted for (docs/methodology.md#at-a-round-trip-time).

use longhaul_analysis::summary::{Comparison, RoundTripUnused};

use super::percent::Percent;
use crate::units::decimal;

/// Returns the round trip time that a comparison is about, as " at a round trip time of 3 ms"; empty if it is not adjusted
/// for it.
pub fn stated(comparison: &Comparison) -> String {
    comparison
        .at_round_trip
        .as_ref()
        .map_or_else(String::new, |at| format!(" at a round trip time of {}", milliseconds(at.at_rtt_ms)))
}

/// Returns which target is faster on either side of the break-even, as a sentence; `None` unless both ends of its interval lie
/// among the round trip times that were measured.
pub fn break_even(comparison: &Comparison) -> Option<String> {
    let at = comparison.at_round_trip.as_ref()?;
    let crossing = at.break_even_rtt_ms?;
    let (low, high) = at.break_even_low_rtt_ms.zip(at.break_even_high_rtt_ms)?;
    let (faster, slower) = comparison.faster_and_slower()?;
    let (below, above) = if at.at_rtt_ms < crossing { (faster, slower) } else { (slower, faster) };
    Some(format!(
        "{below} is faster below {}, {above} above (between {} and {}).",
        milliseconds(crossing),
        milliseconds(low),
        milliseconds(high)
    ))
}

/// Returns the result without the adjustment, or why there is none although round trip times are known, as a sentence.
pub fn note(comparison: &Comparison) -> Option<String> {
    let unused = comparison.rtt_unused.map(|reason| {
        let why = match reason {
            RoundTripUnused::TooFewDays => "it is known on too few days",
            RoundTripUnused::HardlyVaried => "it hardly varied",
        };
        format!("Not adjusted for the round trip time: {why}.")
    });
    let unadjusted = || {
        let ratio = comparison.at_round_trip.as_ref()?.unadjusted.ratio?;
        let (a, b, span) = (&comparison.a, &comparison.b, Percent::increase(ratio).span());
        Some(format!("On average over all round trip times, {b} takes {span} time than {a}."))
    };
    unused.or_else(unadjusted)
}

/// Returns a round trip time with two or three digits.
fn milliseconds(value: f64) -> String {
    let places = if value < 1.0 { 2 } else { usize::from(value < 100.0) };
    format!("{} ms", decimal(value, places))
}
