//! Verdicts in words. Every sentence carries its numbers; none says "faster" bare, none shows a p-value.

use super::comparison::Comparison;
use super::reliability::{Reliability, ReliabilityVerdict};
use super::verdict::{Estimate, OPENING_DAYS, Verdict};
use crate::model::{CacheState, TargetName};

/// The sentence of a comparison.
pub(super) fn comparison(comparison: &Comparison, threshold: f64) -> String {
    let Some(change) = &comparison.change else { return current(comparison, threshold) };
    let (before, after) = (change.ratio_before, change.ratio_after);
    let cause = change.event.as_ref().map_or("nothing was recorded then".to_owned(), |event| event.clone());
    format!(
        "It changed on {} ({cause}): before, {} took {before:.2}× the time of {} ({} days), since then {after:.2}× ({} \
         days). {}",
        change.date,
        comparison.b,
        comparison.a,
        change.days_before,
        change.days_after,
        current(comparison, threshold)
    )
}

/// The sentence of a headline: whoever fails more is not called better.
pub(super) fn with_reliability(headline: &Comparison, reliability: &Reliability) -> String {
    let fails_more = match reliability.verdict {
        ReliabilityVerdict::WorseA => &headline.a,
        ReliabilityVerdict::WorseB => &headline.b,
        ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => return headline.text.clone(),
    };
    match headline.winner() {
        Some(winner) if winner == fails_more => {
            format!("Faster but less reliable: {winner} fails more often. {}", headline.text)
        }
        Some(_) | None => format!("{} {fails_more} fails more often.", headline.text),
    }
}

/// The line under each headline: failures of both, and the time waited with them.
pub(super) fn reliability(
    (a, b): (&TargetName, &TargetName),
    reliability: &Reliability,
    headline: Option<&Comparison>,
) -> String {
    let proven = match reliability.verdict {
        ReliabilityVerdict::NoFailures => "none alone",
        ReliabilityVerdict::NotProven => "not yet proven to differ",
        ReliabilityVerdict::WorseA | ReliabilityVerdict::WorseB => "proven to differ",
    };
    let waited = headline.and_then(|headline| headline.waited).map(|waited| {
        format!(
            "; time spent waiting, failures included: {b} {:.2}× of {a} ({:.2} to {:.2}, descriptive)",
            waited.value, waited.low, waited.high
        )
    });
    format!(
        "Failures of one alone, in episodes: {a} {}, {b} {} ({proven}){}.",
        reliability.only_a,
        reliability.only_b,
        waited.unwrap_or_default()
    )
}

/// What holds now, or in the newest part that is long enough.
fn current(comparison: &Comparison, threshold: f64) -> String {
    let Some((ratio, (faster, slower))) = comparison.ratio.zip(comparison.faster_and_slower()) else {
        return without_estimate(comparison);
    };
    let what = activity(comparison);
    // As the faster one sees it: its time divided by the other's, at most 1.
    let less = if ratio.value > 1.0 { ratio.inverse() } else { ratio };
    let saved = Percent::saved(less);
    match comparison.verdict {
        Verdict::NotEnoughData => not_enough(comparison, less),
        Verdict::AlreadyClear => {
            let more = less.inverse();
            format!(
                "Already clear for {what}: {slower} takes {:.1}× as long as {faster} ({:.1} to {:.1}×), after {} days.",
                more.value, more.low, more.high, more.days
            )
        }
        Verdict::Faster | Verdict::ClearlyFaster => {
            let clearly = if comparison.verdict == Verdict::ClearlyFaster { "clearly " } else { "" };
            let (won, complete) = won(comparison);
            format!(
                "{faster} is {clearly}faster than {slower} for {what}: {saved} less time ({}); it won {won} of {complete} rounds.",
                saved.range()
            )
        }
        Verdict::TooSmall => format!(
            "Measurable but too small to feel for {what}: {faster} takes {saved} less time than {slower} ({}).",
            saved.range()
        ),
        Verdict::NoRealDifference => {
            let limit = (threshold - 1.0) * 100.0;
            let more = Percent::more(ratio);
            format!(
                "No real difference for {what}: within ±{limit:.0} % ({} takes {} to {} time than {}).",
                comparison.b,
                less_or_more(&more, -more.low),
                less_or_more(&more, -more.high),
                comparison.a
            )
        }
    }
}

/// "for opening a batch of photos (cold)".
fn activity(comparison: &Comparison) -> String {
    let cache = match comparison.subject.cache {
        Some(CacheState::Cold) => " (cold)",
        Some(CacheState::Warm) => " (warm)",
        Some(CacheState::None) | None => "",
    };
    format!("{}{cache}", comparison.subject.activity)
}

fn without_estimate(comparison: &Comparison) -> String {
    let days = comparison.days.len();
    format!(
        "Not enough data yet for {}: {days} {} so far, {} rounds with both. A verdict needs {OPENING_DAYS} days.",
        activity(comparison),
        if days == 1 { "day counts" } else { "days count" },
        comparison.rounds.complete
    )
}

fn not_enough(comparison: &Comparison, less: Estimate) -> String {
    let saved = Percent::saved(less);
    let (faster, slower) = comparison.faster_and_slower().unwrap_or((&comparison.a, &comparison.b));
    let until = match comparison.days_still_needed {
        Some(days) => format!("About {} more.", duration(days)),
        None => "More days are not expected to settle it.".to_owned(),
    };
    if saved.low > 0.0 {
        return format!(
            "Not enough data yet for {}: after {} days {faster} takes {saved} less time than {slower} ({}), but a verdict \
             needs {OPENING_DAYS} days. {until}",
            activity(comparison),
            less.days,
            saved.range()
        );
    }
    format!(
        "Not enough data yet for {}: after {} days {faster} seems to take {saved} less time than {slower}, but anything from {} less \
         to {} fits. {until}",
        activity(comparison),
        less.days,
        saved.plain(saved.high),
        less_or_more(&saved, saved.low),
    )
}

/// Rounds won by the faster one, of how many.
fn won(comparison: &Comparison) -> (usize, usize) {
    let rounds = comparison.rounds;
    let b_is_faster = comparison.ratio.is_some_and(|ratio| ratio.value < 1.0);
    (if b_is_faster { rounds.won_by_b } else { rounds.won_by_a }, rounds.complete)
}

fn less_or_more(percent: &Percent, value: f64) -> String {
    if value >= 0.0 {
        format!("{} less", percent.plain(value))
    } else {
        format!("{} more", percent.plain(-value))
    }
}

/// "9 days", "2 weeks".
fn duration(days: usize) -> String {
    match days {
        1 => "1 day".to_owned(),
        2..=13 => format!("{days} days"),
        _ => format!("{} weeks", days.div_ceil(7)),
    }
}

/// Percentages, rounded to the digits that the interval carries.
struct Percent {
    value: f64,
    low: f64,
    high: f64,
    decimals: usize,
}

impl Percent {
    fn of(value: f64, low: f64, high: f64) -> Self {
        let half = (high - low).abs() / 2.0;
        let decimals = if half >= 2.0 { 0 } else { usize::from(half < 0.2) + 1 };
        Self { value, low, high, decimals }
    }

    /// What a ratio below 1 saves.
    fn saved(less: Estimate) -> Self {
        let saved = |ratio: f64| (1.0 - ratio) * 100.0;
        Self::of(saved(less.value), saved(less.high), saved(less.low))
    }

    /// What a ratio adds.
    fn more(ratio: Estimate) -> Self {
        let more = |ratio: f64| (ratio - 1.0) * 100.0;
        Self::of(more(ratio.value), more(ratio.low), more(ratio.high))
    }

    fn plain(&self, value: f64) -> String {
        format!("{value:.*} %", self.decimals)
    }

    fn range(&self) -> String {
        format!("{:.*} to {}", self.decimals, self.low, self.plain(self.high))
    }
}

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.plain(self.value))
    }
}
