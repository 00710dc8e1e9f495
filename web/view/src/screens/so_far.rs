//! Sentences about the rounds made so far. They are in the past tense and state days and rounds, so that none can be read
//! as a verdict (docs/methodology.md#so-far).

use longhaul_analysis::stats::MIN_ROUNDS_SO_FAR;
use longhaul_analysis::summary::{Comparison, EARLY_VERDICT_DAYS, MIN_VERDICT_DAYS, RatioEstimate, SoFar};
use longhaul_model::TargetName;

use super::percent::Percent;
use super::round_trips::{self, StatedIn};
use super::words;
use crate::units;

/// Returns what the rounds made so far say, as a sentence.
pub fn sentence(comparison: &Comparison) -> String {
    let what = words::subject(&comparison.subject);
    let (a, b, rounds) = (&comparison.a, &comparison.b, comparison.so_far.rounds);
    if let Some(target) = always_failing(comparison) {
        return format!(
            "So far, for {what}, a run on {target} failed in {}, so there is nothing to compare.",
            all_rounds(rounds)
        );
    }
    let failures = failures(comparison);
    if let Some(ratio) = comparison.so_far.ratio_with_outliers {
        return format!(
            "So far, in {}, nothing is certain for {what}: the ratio of more than a tenth of them lies far from that of the others. \
             Averaged over all rounds, {b} took {ratio:.2}× the time of {a}{failures}.",
            units::count(rounds, "round")
        );
    }
    let Some(ratio) = comparison.so_far.ratio else {
        return format!(
            "So far {} {} results for both {a} and {b} for {what}{failures}; a first statement needs {MIN_ROUNDS_SO_FAR} rounds.",
            units::count(rounds, "round"),
            if rounds == 1 { "has" } else { "have" },
        );
    };
    let basis =
        format!("So far, in {} on {}", units::count(rounds, "round"), units::count(ratio.days, "day"));
    if !ratio.is_difference() {
        let span = Percent::increase(ratio).span();
        return format!(
            "{basis}, no difference is certain for {what}: {b} took {span} time than {a}{failures}."
        );
    }
    let (faster, slower) = if ratio.value > 1.0 { (a, b) } else { (b, a) };
    let saved = Percent::saved(ratio);
    format!(
        "{basis}, {faster} took {saved} less time than {slower} for {what} ({}){failures}.",
        saved.range()
    )
}

/// Returns the target on which a run failed in every round so far; `None` if there is none. A ratio would say more about how long a
/// failure counts than about the target.
fn always_failing(comparison: &Comparison) -> Option<&TargetName> {
    let SoFar { rounds, failed_a, failed_b, .. } = comparison.so_far;
    let sides = [(&comparison.a, failed_a), (&comparison.b, failed_b)];
    sides.into_iter().find(|(_, failed)| rounds > 0 && *failed == rounds).map(|(target, _)| target)
}

fn all_rounds(rounds: usize) -> String {
    if rounds == 1 { "the only round".to_owned() } else { format!("all {rounds} rounds") }
}

/// Returns how many of the rounds failed, to follow a statement about them; nothing without failures.
fn failures(comparison: &Comparison) -> String {
    let sides = [(&comparison.a, comparison.so_far.failed_a), (&comparison.b, comparison.so_far.failed_b)];
    let failed = sides.into_iter().filter(|(_, failed)| *failed > 0);
    let parts: Vec<String> =
        failed.map(|(target, failed)| format!("a run on {target} failed in {failed} of them")).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("; {}, and a failure counts as a long time", parts.join(" and "))
    }
}

/// Returns what the rounds made so far say in a few words; `None` if no difference is certain.
pub fn brief(comparison: &Comparison) -> Option<String> {
    if let Some(target) = always_failing(comparison) {
        return Some(format!("so far {target} failed in {}", all_rounds(comparison.so_far.rounds)));
    }
    if comparison.so_far.ratio_with_outliers.is_some() {
        return Some("so far rounds differ too much".to_owned());
    }
    let ratio = comparison.so_far.ratio.filter(|ratio| ratio.is_difference())?;
    let faster = if ratio.value > 1.0 { &comparison.a } else { &comparison.b };
    let saved = Percent::saved(ratio);
    Some(format!("so far {faster} took {saved} less time ({})", saved.range()))
}

/// Returns what is missing for a verdict, as a sentence. `place` is the text that states the round trip time.
pub fn outlook(comparison: &Comparison, place: StatedIn<'_>) -> String {
    let Some(ratio) = comparison.ratio else {
        if comparison.days.len() >= MIN_VERDICT_DAYS {
            return "There is no verdict while days differ that much.".to_owned();
        }
        let counted = match comparison.days.len() {
            1 => "1 day counts".to_owned(),
            days => format!("{days} days count"),
        };
        let lost = match comparison.incomplete_days {
            // Today is not over yet.
            ..3 => String::new(),
            // Said once, not with each task.
            _ if comparison.subject.key != "overall" => String::new(),
            days => format!(
                " {} have too few complete rounds to count: `longhaul doctor` tells why, `longhaul runs` what failed.",
                units::count(days, "day")
            ),
        };
        return format!(
            "A verdict needs {MIN_VERDICT_DAYS} days, or {EARLY_VERDICT_DAYS} if the difference is large; {counted} now.{lost}"
        );
    };
    format!(
        "Not decided yet: judging by {}{}, {} may take {} time than {}. {}",
        units::count(ratio.days, "day"),
        round_trips::stated(comparison, place),
        comparison.b,
        Percent::increase(ratio).span(),
        comparison.a,
        until(comparison, ratio)
    )
}

/// Returns how long a decision is expected to take, as a sentence.
fn until(comparison: &Comparison, ratio: RatioEstimate) -> String {
    match comparison.days_needed {
        Some(days) => format!("A verdict is expected in about {}.", days_or_weeks(days)),
        // Alone, the comparison is decided, so its days cannot tell how many more are needed.
        None if ratio.is_difference() && ratio.days >= MIN_VERDICT_DAYS => {
            "Alone it would be decided, but not among this many comparisons; more days may decide it."
                .to_owned()
        }
        None => "More days are not expected to decide it.".to_owned(),
    }
}

/// Returns a number of days as a duration, such as "9 days"; from 14 days on in whole weeks, rounded up.
pub(super) fn days_or_weeks(days: usize) -> String {
    match days {
        ..14 => units::count(days, "day"),
        _ => units::count(days.div_ceil(7), "week"),
    }
}
