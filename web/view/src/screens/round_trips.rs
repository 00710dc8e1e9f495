//! Sentences about the round trip time that a comparison is adjusted for (docs/methodology.md#at-a-round-trip-time).

use longhaul_analysis::summary::{Comparison, PairSummary, RoundTripUnused, Verdict};

use super::percent::Percent;
use crate::units::decimal;

/// Text that states the round trip time of a comparison.
#[derive(Debug, Clone, Copy)]
pub enum StatedIn<'a> {
    /// The sentence about the comparison itself.
    Sentence,
    /// A text about this comparison that stands beside the sentence, such as its basis: the time is not repeated.
    TextAbout(&'a Comparison),
}

impl<'a> StatedIn<'a> {
    /// The basis of the overall comparison of a pair, which is shown once for all sentences about the pair.
    pub fn basis_of(pair: &'a PairSummary) -> Self {
        pair.headline.as_ref().map_or(Self::Sentence, Self::TextAbout)
    }
}

/// Returns the round trip time that a comparison is about, as " at a round trip time of 3 ms"; empty if it is not adjusted
/// for it, or if it is stated elsewhere.
pub fn stated(comparison: &Comparison, place: StatedIn<'_>) -> String {
    let elsewhere = match place {
        StatedIn::Sentence => None,
        StatedIn::TextAbout(other) => time_of(other),
    };
    match (time_of(comparison), elsewhere) {
        (Some(own), elsewhere) if elsewhere.as_ref() != Some(&own) => {
            format!(" at a round trip time of {own}")
        }
        (None, Some(_)) => " over all round trip times".to_owned(),
        (_, _) => String::new(),
    }
}

/// Returns the round trip time that a comparison is adjusted for; `None` if it is not.
fn time_of(comparison: &Comparison) -> Option<String> {
    comparison.at_round_trip.as_ref().map(|at| milliseconds(at.at_rtt_ms))
}

/// Returns which target is faster on either side of the break-even, as a sentence; `None` unless that is decided and both ends of its
/// interval lie among the round trip times that were measured. If the verdict is open or finds no real difference, its round trip time
/// must lie in that interval: elsewhere the sentence would name a faster target for it, which the verdict does not. A verdict that a
/// difference is too small to matter names the faster target itself.
pub fn break_even(comparison: &Comparison, place: StatedIn<'_>) -> Option<String> {
    let at = comparison.at_round_trip.as_ref().filter(|_| comparison.may_state_break_even())?;
    let crossing = at.break_even_rtt_ms?;
    let (low, high) = at.break_even_low_rtt_ms.zip(at.break_even_high_rtt_ms)?;
    let (faster, slower) = comparison.faster_and_slower()?;
    let (below, above) = if at.at_rtt_ms < crossing { (faster, slower) } else { (slower, faster) };
    if matches!(comparison.verdict, Verdict::NotEnoughData | Verdict::NoRealDifference) {
        let sentence = || {
            format!(
                "Decided at other round trip times: {below} is faster below {}, {above} above {}.",
                milliseconds(low),
                milliseconds(high)
            )
        };
        return (low..=high).contains(&at.at_rtt_ms).then(sentence);
    }
    // A sentence that does not state the round trip time has not said yet of what the limit is.
    let what = match place {
        StatedIn::Sentence => "",
        StatedIn::TextAbout(_) => "a round trip time of ",
    };
    Some(format!(
        "{below} is faster below {what}{}, {above} above (between {} and {}).",
        milliseconds(crossing),
        milliseconds(low),
        milliseconds(high)
    ))
}

/// Returns the round trip time that a comparison is adjusted for with the result over all, or why there is none although
/// round trip times are known, as a sentence.
pub fn note(comparison: &Comparison) -> Option<String> {
    let unused = comparison.rtt_unused.map(|reason| {
        let why = match reason {
            RoundTripUnused::TooFewDays => "it is known on too few days",
            RoundTripUnused::HardlyVaried => "it hardly varied",
        };
        format!("Not adjusted for the round trip time: {why}.")
    });
    let adjusted =
        || Some(format!("Compared at a round trip time of {}{}.", time_of(comparison)?, average(comparison)));
    unused.or_else(adjusted)
}

/// Returns the result over all round trip times, with the targets in the order of the main sentence, to follow it; empty without one.
fn average(comparison: &Comparison) -> String {
    let unadjusted = comparison.at_round_trip.as_ref().and_then(|at| at.unadjusted.ratio);
    let Some((ratio, (faster, slower))) = unadjusted.zip(comparison.faster_and_slower()) else {
        return String::new();
    };
    let (first, second) = match comparison.verdict {
        Verdict::NotEnoughData | Verdict::NoRealDifference => (&comparison.b, &comparison.a),
        Verdict::AlreadyClear => (slower, faster),
        Verdict::Faster | Verdict::ClearlyFaster | Verdict::TooSmall => (faster, slower),
    };
    let of_first = if *first == comparison.b { ratio } else { ratio.inverse() };
    let span = Percent::increase(of_first).span();
    format!("; over all round trip times, {first} takes {span} time than {second}")
}

/// Returns a round trip time with two or three digits.
fn milliseconds(value: f64) -> String {
    let places = if value < 1.0 { 2 } else { usize::from(value < 100.0) };
    format!("{} ms", decimal(value, places))
}
