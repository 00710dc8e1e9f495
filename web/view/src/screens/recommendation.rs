//! The recommendation in one sentence: which share to use, how much it saves, and how sure that is.

use longhaul_analysis::summary::{
    Comparison, Confidence, INSTANT_SECONDS, MinutesSaved, PairSummary, ProfileSource, Recommendation,
    WeeklySummary,
};

use super::checks::statements;
use super::percent::Percent;
use super::{sentences, words};
use crate::text::Text;
use longhaul_model::TargetName;

/// Minutes a week below which a difference is not worth a change.
const NOTICEABLE_MINUTES: f64 = 1.0;

/// Maximum number of exceptions that are named; the others are counted.
const MAX_EXCEPTIONS: usize = 2;

/// Returns the recommendation as a sentence, with its caveat; while there is nothing to compare, why there is none.
pub fn heading(weekly: &WeeklySummary) -> String {
    if weekly.pairs.is_empty() {
        return format!("{}.", words::ranking(weekly));
    }
    let recommended = sentence(&weekly.recommendation);
    let target = weekly.recommendation.target.as_ref();
    let caveat = target.and_then(|target| statements::stale_advantage(weekly, target));
    caveat.map_or(recommended.clone(), |caveat| format!("{recommended} {caveat}"))
}

/// Returns the recommendation as a sentence.
pub fn sentence(recommendation: &Recommendation) -> String {
    match (&recommendation.target, recommendation.confidence) {
        (Some(target), Some(Confidence::Decided)) => {
            let saved = recommendation.minutes_a_week.as_ref().filter(|saved| saved.low > 0.0);
            saved.map_or_else(|| format!("Use {target}."), |saved| advice(target, saved))
        }
        (Some(target), _) => {
            format!("{target} took the least time so far. Whether it stays like that is not decided yet.")
        }
        (None, Some(_)) => "Use any of the shares: no difference is large enough to matter.".to_owned(),
        (None, None) => "No recommendation yet.".to_owned(),
    }
}

/// Returns what other shares are decided to be faster for than the recommended one, as sentences; `None` if there is nothing that
/// takes long enough to be noticed.
pub fn exceptions(weekly: &WeeklySummary) -> Option<String> {
    let target = weekly.recommendation.target.as_ref()?;
    let found: Vec<String> = weekly.pairs.iter().filter_map(|pair| exception(pair, target)).collect();
    (!found.is_empty()).then(|| found.join(" "))
}

/// Returns the exceptions of a pair; `None` if there are none, or if it does not have the recommended target.
fn exception(pair: &PairSummary, target: &TargetName) -> Option<String> {
    let other = if pair.a == *target { &pair.b } else { &pair.a };
    let is_exception = |task: &&Comparison| !is_instant(task) && task.winner() == Some(other);
    let mut lost: Vec<String> = pair.tasks.iter().filter(is_exception).filter_map(with_interval).collect();
    if !pair.includes(target) || lost.is_empty() {
        return None;
    }
    let more = lost.split_off(lost.len().min(MAX_EXCEPTIONS)).len();
    let lost = match (lost.as_slice(), more) {
        (named, 0) => named.join("; "),
        (named, more) => format!("{}; and {more} more", named.join("; ")),
    };
    Some(format!("Exception: {other} is faster than {target} for {lost}."))
}

/// Returns what a task's verdict is about, with the difference and its interval.
fn with_interval(task: &Comparison) -> Option<String> {
    let saved = Percent::saved(task.ratio?);
    Some(format!("{}: {saved} less time ({})", sentences::activity(task), saved.range()))
}

/// Returns true if it takes too little time on both shares for a difference to be noticed.
fn is_instant(task: &Comparison) -> bool {
    task.median_seconds.is_some_and(|(a, b)| a.max(b) < INSTANT_SECONDS)
}

/// Returns the confidence of the recommendation in one or two words; `None` while there is nothing to compare.
pub fn confidence_label(weekly: &WeeklySummary) -> Option<&'static str> {
    Some(match weekly.recommendation.confidence? {
        Confidence::Decided | Confidence::NoDifference => "decided",
        Confidence::SoFar => "not decided yet",
    })
}

/// Returns what the recommendation rests on: the result of the pair that it speaks of, and exceptions; or the next step.
pub fn basis(weekly: &WeeklySummary) -> Text {
    let basis = match (main_pair(weekly), words::next_step(weekly)) {
        (Some(pair), _) => sentences::headline(pair).into(),
        (None, Some(step)) => step,
        (None, None) => Text::new(),
    };
    exceptions(weekly).into_iter().fold(basis, |text, exceptions| text.plain(" ").plain(exceptions))
}

/// Returns the pair of the recommended target and the target that the minutes are compared with; without one, the first pair.
fn main_pair(weekly: &WeeklySummary) -> Option<&PairSummary> {
    let Recommendation { target, minutes_a_week, .. } = &weekly.recommendation;
    let other = minutes_a_week.as_ref().map(|saved| &saved.instead_of);
    let speaks_of =
        |pair: &&PairSummary| [target.as_ref(), other].into_iter().flatten().all(|name| pair.includes(name));
    weekly.pairs.iter().find(speaks_of).or(weekly.pairs.first())
}

/// Returns what a decided share saves, and advice to use it if that is a minute a week or may be.
fn advice(target: &TargetName, saved: &MinutesSaved) -> String {
    let (other, profile) = (&saved.instead_of, profile(saved));
    if saved.high < NOTICEABLE_MINUTES {
        return format!(
            "{target} is the fastest share, but it hardly matters: it saves less than a minute of waiting a week compared with \
             {other}, {profile}."
        );
    }
    let decimals = usize::from(saved.value < 10.0);
    format!(
        "Use {target}: about {:.decimals$} minutes a week less waiting than {other} ({:.decimals$} to {:.decimals$}), {profile}.",
        saved.value, saved.low, saved.high
    )
}

/// Returns the usage profile that minutes are for, for example `in an ordinary week`.
fn profile(saved: &MinutesSaved) -> String {
    match (saved.profile, saved.counted_days) {
        (ProfileSource::Counted, Some(days)) => words::counted_usage(days),
        (ProfileSource::Own | ProfileSource::Counted, _) => "for your usage profile".to_owned(),
        (ProfileSource::OrdinaryWeek, _) => "in an ordinary week".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(value: f64) -> MinutesSaved {
        MinutesSaved {
            value,
            low: 0.8 * value,
            high: 1.2 * value,
            instead_of: "smb".parse().unwrap(),
            profile: ProfileSource::Counted,
            counted_days: Some(16.0),
        }
    }

    #[test]
    fn difference_of_seconds_a_week_is_no_advice() {
        let nfs = "nfs".parse().unwrap();
        assert_eq!(
            advice(&nfs, &saved(0.03)),
            "nfs is the fastest share, but it hardly matters: it saves less than a minute of waiting a week compared with smb, \
             for your usage, counted over 2 weeks."
        );
        assert_eq!(
            advice(&nfs, &saved(0.9)),
            "Use nfs: about 0.9 minutes a week less waiting than smb (0.7 to 1.1), for your usage, counted over 2 weeks."
        );
    }
}
