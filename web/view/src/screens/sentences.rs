//! Verdicts as sentences. Each states its numbers; none says "faster" without an interval, and none shows a p-value.
//!
//! A sentence has the error guarantee of its verdict (docs/methodology.md#verdict-rule) and adds no claim of its own.

use longhaul_analysis::summary::{
    ChangePart, ClientCaching, Comparison, MIN_REREADS, PairSummary, RatioEstimate, ReliabilityVerdict,
    SequentialWeeks, Verdict,
};
use longhaul_model::{CacheState, TargetName};

use super::checks::damage;
use super::percent::Percent;
use super::round_trips::{self, StatedIn};
use super::so_far;
use crate::units;

/// Returns the result of a pair over all tasks. A target that is proven to fail more often, or whose data was damaged, is
/// never called better without that note.
pub fn headline(pair: &PairSummary) -> String {
    headline_with(pair, StatedIn::Sentence)
}

/// Like [`headline`], but without the round trip time, for use next to the basis of the pair, which states it.
pub fn headline_without_round_trip(pair: &PairSummary) -> String {
    headline_with(pair, StatedIn::basis_of(pair))
}

fn headline_with(pair: &PairSummary, place: StatedIn<'_>) -> String {
    let text = speed_and_reliability(pair, place);
    damage(&pair.damaged).map_or_else(|| text.clone(), |damage| format!("{damage} {text}"))
}

fn speed_and_reliability(pair: &PairSummary, place: StatedIn<'_>) -> String {
    let winner = pair.headline.as_ref().and_then(Comparison::winner);
    match (&pair.headline, pair.less_reliable()) {
        (Some(_), Some(worse)) if winner != Some(worse) => {
            format!("{} {worse} fails more often.", speed(pair, place))
        }
        _ => speed(pair, place),
    }
}

/// Returns the result of a pair over all tasks. A target that is proven to fail more often is not called faster without that note.
pub(super) fn speed(pair: &PairSummary, place: StatedIn<'_>) -> String {
    let Some(headline) = &pair.headline else {
        return format!("No round so far has all tasks on both {} and {}.", pair.a, pair.b);
    };
    let names = headline.faster_and_slower();
    if let Some((faster, slower)) = names.filter(|_| pair.tasks.iter().all(always_failed)) {
        let rounds = headline.rounds.complete;
        return format!(
            "Every task failed on {slower} in all {rounds} rounds, so there is no time to compare with that of {faster}."
        );
    }
    let text = comparison_with(headline, place);
    match headline.winner().filter(|winner| pair.less_reliable() == Some(*winner)) {
        Some(winner) => format!("Faster but less reliable: {winner} fails more often. {text}"),
        None => text,
    }
}

/// Returns the result of a comparison, with the change of the ratio first if there is one.
pub fn comparison(comparison: &Comparison) -> String {
    comparison_with(comparison, StatedIn::Sentence)
}

/// Like [`comparison`], but `place` is the text that states the round trip time.
pub(super) fn comparison_with(comparison: &Comparison, place: StatedIn<'_>) -> String {
    let Some(change) = &comparison.change else { return with_break_even(comparison, place) };
    let (before, after) = (change.ratio_before, change.ratio_after);
    let cause = change.event.as_deref().unwrap_or("no event explains it");
    let part = match change.described {
        ChangePart::Before => "About the days before the change: ",
        ChangePart::After => "",
    };
    format!(
        "The ratio changed on {} ({cause}): before, {} took {before:.2}× the time of {} ({} days), since then {after:.2}× ({} \
         days). {part}{}",
        change.date,
        comparison.b,
        comparison.a,
        change.days_before,
        change.days_after,
        with_break_even(comparison, place)
    )
}

/// Returns the failure episodes of both targets of a pair, and the time spent waiting.
pub fn reliability(pair: &PairSummary) -> String {
    let proven = match pair.reliability.verdict {
        ReliabilityVerdict::NoFailures => "none counted yet",
        ReliabilityVerdict::NotProven => "not yet proven to differ",
        ReliabilityVerdict::WorseA | ReliabilityVerdict::WorseB => "proven to differ",
    };
    let (a, b) = (&pair.a, &pair.b);
    let waited = pair.headline.as_ref().and_then(|headline| headline.wait_ratio).map(|waited| {
        format!(
            "; time spent waiting, failures included: {b} {:.2}× that of {a} ({:.2} to {:.2}; not used for the verdict)",
            waited.value, waited.low, waited.high
        )
    });
    format!(
        "Episodes in which only one of the two failed: {a} {}, {b} {} ({proven}){}.",
        pair.reliability.only_a,
        pair.reliability.only_b,
        waited.unwrap_or_default()
    )
}

/// Returns the verdict on client caching of a target.
pub fn caching(caching: &ClientCaching) -> String {
    let protocol = caching.protocol.as_deref().unwrap_or("protocol not known");
    let verdict = match caching.cached {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => format!("not known before {MIN_REREADS} re-reads"),
    };
    let percent = (caching.median_share.unwrap_or(0.0) * 100.0).round();
    format!(
        "{} ({protocol}): cached by the client: {verdict}; {percent} % of the bytes of {} came from its cache (median).",
        caching.target,
        units::count(caching.rereads, "re-read")
    )
}

/// Returns the result of the sequential-weeks design for one metric of a pair;
/// [`CONFOUNDING_NOTE`](longhaul_analysis::summary::CONFOUNDING_NOTE) belongs next to it.
pub fn sequential_weeks(pair: &PairSummary, found: &SequentialWeeks) -> String {
    let (a, b, what) = (&pair.a, &pair.b, &found.subject.activity);
    let weeks = format!(
        "{} with {a} and {} with {b}, {} of adjacent weeks",
        units::count(found.weeks.0, "week"),
        found.weeks.1,
        units::count(found.pairs, "pair")
    );
    match found.ratio {
        None => format!("No verdict for {what}: {weeks}; {} pairs are needed.", found.pairs_needed),
        Some(ratio) if ratio.low > 1.0 || ratio.high < 1.0 => format!(
            "{what}: {b} took {:.2}× the time of {a} ({:.2} to {:.2}, valid at every look; {weeks}).",
            ratio.value, ratio.low, ratio.high
        ),
        Some(ratio) => format!(
            "Not decided for {what}: {b} took anything from {:.2}× to {:.2}× the time of {a} (valid at every look; {weeks}).",
            ratio.low, ratio.high
        ),
    }
}

/// Returns the sentence for the current verdict, and which target is faster at which round trip time, if that is known.
fn with_break_even(comparison: &Comparison, place: StatedIn<'_>) -> String {
    let text = current(comparison, place);
    let sentence = round_trips::break_even(comparison, place);
    sentence.map_or_else(|| text.clone(), |sentence| format!("{text} {sentence}"))
}

/// Returns the sentence for the current verdict, without the change of the ratio.
fn current(comparison: &Comparison, place: StatedIn<'_>) -> String {
    let Some((ratio, (faster, slower))) = comparison.ratio.zip(comparison.faster_and_slower()) else {
        return undecided(comparison, place);
    };
    let (what, saved) = (activity(comparison, place), Percent::saved(ratio));
    match comparison.verdict {
        Verdict::NotEnoughData => undecided(comparison, place),
        _ if always_failed(comparison) => {
            format!(
                "For {what}: {}, so there is no time to compare with that of {faster}.",
                often_failed(comparison).unwrap_or_default()
            )
        }
        Verdict::AlreadyClear => format!(
            "Already clear for {what}: {slower} takes {}.{}",
            times_as_long(ratio, faster),
            outliers(comparison)
        ),
        Verdict::Faster | Verdict::ClearlyFaster => {
            let clearly = if comparison.verdict == Verdict::ClearlyFaster { "clearly " } else { "" };
            let rounds = comparison.rounds;
            let won = if *faster == comparison.a { rounds.won_by_a } else { rounds.won_by_b };
            let failed = often_failed(comparison).map_or(String::new(), |failed| {
                format!(" But {failed}, and a failure counts as a long time.")
            });
            format!(
                "{faster} is {clearly}faster than {slower} for {what}: {saved} less time ({}); it won {won} of {} rounds.{failed}{}",
                saved.range(),
                rounds.complete,
                outliers(comparison)
            )
        }
        Verdict::TooSmall if comparison.is_instant() => {
            format!(
                "Too short to notice for {what}: {faster} takes {saved} less time than {slower} ({}).",
                saved.range()
            )
        }
        Verdict::TooSmall => format!(
            "Measurable but too small to matter for {what}: {faster} takes {saved} less time than {slower} ({}).",
            saved.range()
        ),
        Verdict::NoRealDifference => {
            format!(
                "No real difference for {what}: within ±{:.0} % ({} takes {} time than {}).",
                (comparison.threshold - 1.0) * 100.0,
                comparison.b,
                Percent::increase(ratio).span(),
                comparison.a
            )
        }
    }
}

/// Returns how many times as long as the faster target the other one takes, with the interval and the days that it rests on.
fn times_as_long(ratio: RatioEstimate, faster: &TargetName) -> String {
    let more = if ratio.value > 1.0 { ratio } else { ratio.inverse() };
    let decimals = if more.high - more.low < 0.2 { 2 } else { 1 };
    format!(
        "{:.decimals$}× as long as {faster} ({:.decimals$} to {:.decimals$}×), after {} days",
        more.value, more.low, more.high, more.days
    )
}

/// Returns in how many rounds a target failed, if that is more than a tenth of them: of the slower target, whose ratio then says as
/// much about how long a failure counts as about the time of a task, or else of the faster one.
pub(super) fn often_failed(comparison: &Comparison) -> Option<String> {
    let (faster, slower) = comparison.faster_and_slower()?;
    let rounds = comparison.rounds.complete;
    let of_faster = comparison.rounds.failed_a + comparison.rounds.failed_b - failures_of_slower(comparison);
    let sides = [(slower, failures_of_slower(comparison)), (faster, of_faster)];
    let (target, failed) = sides.into_iter().find(|(_, failed)| failed * 10 > rounds)?;
    // One failed task of a round is a failure of all tasks together.
    let who = match comparison.subject.workload {
        Some(_) => target.to_string(),
        None => format!("a run on {target}"),
    };
    Some(match failed == rounds {
        true => format!("{who} failed in all {rounds} rounds"),
        false => format!("{who} failed in {failed} of {rounds} rounds"),
    })
}

/// Returns true if a task failed on the slower target in every round, so that there is no time of it.
pub(super) fn always_failed(comparison: &Comparison) -> bool {
    let is_single = comparison.subject.workload.is_some();
    is_single
        && comparison.rounds.complete > 0
        && failures_of_slower(comparison) == comparison.rounds.complete
}

/// Returns in how many of the compared rounds the slower target failed.
fn failures_of_slower(comparison: &Comparison) -> usize {
    let is_slower = |target| comparison.faster_and_slower().is_some_and(|(_, slower)| slower == target);
    let rounds = comparison.rounds;
    if is_slower(&comparison.a) { rounds.failed_a } else { rounds.failed_b }
}

/// Returns when the estimate holds, and the mean of all rounds or days as a multiple of the slower target, if that is another one;
/// `None` if it is not.
pub(super) fn most_of(comparison: &Comparison) -> Option<(&'static str, f64)> {
    let of_rounds = comparison.mean_of_all_rounds().map(|mean| ("in most rounds", mean));
    of_rounds.or_else(|| Some(("on most days", comparison.mean_of_all_days()?)))
}

/// Returns that the mean of all rounds or days says something else than that of the usual ones; empty if it does not.
fn outliers(comparison: &Comparison) -> String {
    let Some((when, mean)) = most_of(comparison) else { return String::new() };
    let Some((faster, slower)) = comparison.faster_and_slower() else { return String::new() };
    format!(
        " The difference has this size {when}; averaged over all, {faster} took {mean:.2}× the time of \
         {slower}."
    )
}

/// Returns what is known without a verdict: first about the past, then about how it may go on.
fn undecided(comparison: &Comparison, place: StatedIn<'_>) -> String {
    format!("{} {}", so_far::sentence(comparison), so_far::outlook(comparison, place))
}

/// Returns the activity with its cache state and the round trip time of the comparison, for example "opening a batch of photos
/// (cold) at a round trip time of 3 ms". `place` is the text that states that time.
pub(super) fn activity(comparison: &Comparison, place: StatedIn<'_>) -> String {
    let cache = match comparison.subject.cache {
        Some(CacheState::Cold) => " (cold)",
        Some(CacheState::Warm) => " (warm)",
        Some(CacheState::None) | None => "",
    };
    format!("{}{cache}{}", comparison.subject.activity, round_trips::stated(comparison, place))
}
