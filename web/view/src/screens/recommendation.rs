//! The recommendation in one sentence: which share to use, how much it saves, and how sure that is.

use longhaul_analysis::summary::{
    ChangePart, Comparison, Confidence, FAILING_ROUNDS, LastingChange, MinutesSaved, Objection, PairSummary,
    ProfileSource, Recommendation, WeeklySummary, Withheld,
};

use super::checks::statements;
use super::percent::Percent;
use super::round_trips::StatedIn;
use super::{sentences, words};
use crate::text::Text;
use crate::units;
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
    let is_judged = |pair: &PairSummary| {
        let is_decided = pair.headline.as_ref().is_some_and(|found| {
            let is_current = |change: &LastingChange| change.described == ChangePart::After;
            found.verdict.is_decided() && found.change.as_ref().is_none_or(is_current)
        });
        is_decided && pair.failing.is_empty() && pair.damaged.is_empty() && pair.less_reliable().is_none()
    };
    let Recommendation { confidence, withheld, .. } = &weekly.recommendation;
    if confidence.is_none() && withheld.is_none() && weekly.pairs.iter().all(is_judged) {
        return format!("No single share is best: {}.", words::ranking(weekly));
    }
    let recommended = sentence(&weekly.recommendation);
    let caveats = weekly.recommendation.target.iter().flat_map(|target| caveats(weekly, target));
    std::iter::once(recommended).chain(caveats).collect::<Vec<_>>().join(" ")
}

/// Returns what a reader of the recommendation must know about the recommended target.
fn caveats(weekly: &WeeklySummary, target: &TargetName) -> impl Iterator<Item = String> {
    let failures = weekly.failures.iter().find(|failures| failures.target == *target);
    let away = failures.map_or(0, |failures| failures.unavailable_since_last);
    let unavailable = (away >= FAILING_ROUNDS)
        .then(|| format!("But it was unavailable in the last {away} rounds that measured another share."));
    unavailable.into_iter().chain(statements::stale_advantage(weekly, target))
}

/// Returns the recommendation as a sentence.
fn sentence(recommendation: &Recommendation) -> String {
    match (&recommendation.target, recommendation.confidence) {
        (Some(target), Some(Confidence::Decided)) => {
            let saved = recommendation.minutes_a_week.as_ref().filter(|saved| saved.low > 0.0);
            match (&recommendation.withheld, saved) {
                (Some(other), _) => {
                    let equal = "no difference in time is large enough to matter";
                    format!("Use {target}: {}.", reason(other, equal, other.target.as_str()))
                }
                (None, Some(saved)) => advice(target, saved),
                (None, None) => recommendation
                    .minutes_a_week
                    .as_ref()
                    .map_or_else(|| format!("Use {target}."), |saved| uncertain_advice(target, saved)),
            }
        }
        (Some(target), _) => {
            format!("{target} has been the fastest so far. It is too early to tell whether that will hold.")
        }
        (None, Some(confidence)) => {
            format!("{}.", no_difference(confidence, recommendation.withheld.as_ref()))
        }
        (None, None) => {
            recommendation.withheld.as_ref().map_or_else(|| "No recommendation yet.".to_owned(), no_advice)
        }
    }
}

/// Returns what to do if no share is best, without a final period. `flawed` is a share that the others are better than.
fn no_difference(confidence: Confidence, flawed: Option<&Withheld>) -> String {
    let depends = "Which share is best depends on the task";
    match (confidence, flawed) {
        (Confidence::DependsOnTask, None) => depends.to_owned(),
        (Confidence::DependsOnTask, Some(flawed)) => reason(flawed, depends, flawed.target.as_str()),
        (_, None) => "Use any of the shares: for all tasks together, no difference is large enough to matter"
            .to_owned(),
        (_, Some(flawed)) => {
            let equal = "no difference between the others is large enough to matter";
            format!(
                "Use any share except {}: {}",
                flawed.target,
                reason(flawed, equal, flawed.target.as_str())
            )
        }
    }
}

/// Returns why the share that took less time is not recommended.
fn no_advice(withheld: &Withheld) -> String {
    format!("No recommendation: {}.", reason(withheld, &format!("{} took less time", withheld.target), "it"))
}

/// Returns the reason for which a share is not recommended, after what speaks for it. `subject` stands for the share.
fn reason(withheld: &Withheld, opening: &str, subject: &str) -> String {
    let Withheld { target, instead_of: other, objection } = withheld;
    match objection {
        Objection::Damaged => format!("{opening}, but data on {subject} differed from what was written"),
        Objection::Failing => format!(
            "{opening}, but a task on {subject} failed in each of the last {FAILING_ROUNDS} rounds or more, while {other} worked"
        ),
        Objection::LessReliable => format!("{opening}, but {subject} fails more often than {other}"),
        Objection::Changed { date, days } => format!(
            "the ratio of {target} and {other} changed on {date}, and there is no verdict yet about the {} since then",
            units::count(*days, "day")
        ),
        Objection::Outliers { ratio, rounds } => format!(
            "{target} took less time than {other} in most rounds, but so much more in the others that the mean of all {rounds} is \
             {ratio:.2}× the time of {other}"
        ),
        Objection::MoreTime => format!(
            "{target} took less time than {other} for all tasks together, but costs more time a week; how much differs from day to day"
        ),
        Objection::MoreMinutes(saved) => {
            let minutes = |value: f64| units::decimal(value.abs(), 1);
            format!(
                "{target} took less time than {other} for all tasks together, but costs {} minutes a week more ({} to {}) {}",
                minutes(saved.value),
                minutes(saved.high),
                minutes(saved.low),
                profile(saved)
            )
        }
    }
}

/// Returns what other shares are decided to be faster for than the recommended one, as sentences; `None` if there is nothing that
/// takes long enough to be noticed.
pub fn exceptions(weekly: &WeeklySummary) -> Option<String> {
    // The result of this pair stands beside them, and states its round trip time.
    let place = main_pair(weekly).map_or(StatedIn::Sentence, StatedIn::basis_of);
    let found: Vec<String> = match (&weekly.recommendation.target, weekly.recommendation.confidence) {
        (Some(target), _) => weekly.pairs.iter().filter_map(|pair| exception(pair, target, place)).collect(),
        (None, Some(_)) => {
            let sides =
                weekly.pairs.iter().flat_map(|pair| [(pair, &pair.a, &pair.b), (pair, &pair.b, &pair.a)]);
            let won = sides.filter_map(|(pair, faster, other)| faster_for(pair, faster, other, place));
            won.map(|won| format!("{won}.")).collect()
        }
        (None, None) => vec![],
    };
    (!found.is_empty()).then(|| found.join(" "))
}

/// Returns the exceptions of a pair; `None` if there are none, or if it does not have the recommended target.
fn exception(pair: &PairSummary, target: &TargetName, place: StatedIn<'_>) -> Option<String> {
    let other = if pair.a == *target { &pair.b } else { &pair.a };
    let lost = pair.includes(target).then(|| faster_for(pair, other, target, place))??;
    Some(format!("Exception: {lost}."))
}

/// Returns the tasks that a target of a pair is decided to be faster for; `None` if there is none that takes long enough to be
/// noticed. `place` is the text that states the round trip time.
fn faster_for(
    pair: &PairSummary,
    faster: &TargetName,
    other: &TargetName,
    place: StatedIn<'_>,
) -> Option<String> {
    let is_won = |task: &&Comparison| {
        !task.is_instant() && !task.is_contradicted_by_mean() && task.winner() == Some(faster)
    };
    let won = pair.tasks.iter().filter(is_won);
    let mut won: Vec<String> = won.filter_map(|task| with_interval(task, place)).collect();
    let more = won.split_off(won.len().min(MAX_EXCEPTIONS)).len();
    let won = match (won.as_slice(), more) {
        ([], _) => return None,
        (named, 0) => named.join("; "),
        (named, more) => format!("{}; and {more} more", named.join("; ")),
    };
    Some(format!("{faster} is faster than {other} for {won}"))
}

/// Returns what a task's verdict is about, with the difference and its interval.
fn with_interval(task: &Comparison, place: StatedIn<'_>) -> Option<String> {
    let saved = Percent::saved(task.ratio?);
    let when = sentences::most_of(task).map_or(String::new(), |(when, _)| format!(" {when}"));
    Some(format!("{}: {saved} less time ({}){when}", sentences::activity(task, place), saved.range()))
}

/// Returns the confidence of the recommendation in one or two words; `None` while there is nothing to compare.
pub fn confidence_label(weekly: &WeeklySummary) -> Option<&'static str> {
    Some(match weekly.recommendation.confidence? {
        Confidence::Decided | Confidence::NoDifference | Confidence::DependsOnTask => "decided",
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

/// Returns the pair to show if there is room for one only: the recommended target and the target that the minutes are compared
/// with; without a recommendation the first pair that is decided, or else the first. `None` without pairs.
pub fn main_pair(weekly: &WeeklySummary) -> Option<&PairSummary> {
    let Recommendation { target, minutes_a_week, .. } = &weekly.recommendation;
    let other = minutes_a_week.as_ref().map(|saved| &saved.instead_of);
    let speaks_of =
        |pair: &&PairSummary| [target.as_ref(), other].into_iter().flatten().all(|name| pair.includes(name));
    let found = match target {
        Some(_) => weekly.pairs.iter().find(speaks_of),
        None => weekly.pairs.iter().find(|pair| pair.is_decided()),
    };
    found.or(weekly.pairs.first())
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
        "Use {target}: it saves about {:.decimals$} minutes of waiting a week compared with {other} ({:.decimals$} to {:.decimals$}), \
         {profile}.",
        saved.value, saved.low, saved.high
    )
}

/// Returns advice to use a share that is better, if it may cost minutes a week for the usage profile.
fn uncertain_advice(target: &TargetName, saved: &MinutesSaved) -> String {
    let minutes = |value: f64| units::decimal(value.abs(), 1);
    let (other, profile, low, high) =
        (&saved.instead_of, profile(saved), minutes(saved.low), minutes(saved.high));
    // Minutes know nothing of failures and damage, which alone can outweigh them.
    if saved.high <= 0.0 {
        return format!(
            "Use {target}, although it costs {high} to {low} more minutes of waiting a week than {other} {profile}: {other} fails more \
             often, has stopped working, or its data was damaged."
        );
    }
    format!(
        "Use {target}. {}, it is not certain to save time: anything from {high} fewer to {low} more minutes of waiting a week than \
         {other} is possible.",
        words::capitalized(&profile)
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
            "Use nfs: it saves about 0.9 minutes of waiting a week compared with smb (0.7 to 1.1), for your usage, counted over 2 weeks."
        );
    }

    #[test]
    fn share_that_may_cost_minutes_is_recommended_with_the_range() {
        let recommended = sentence(&Recommendation {
            target: Some("nfs".parse().unwrap()),
            confidence: Some(Confidence::Decided),
            minutes_a_week: Some(MinutesSaved { value: -32.1, low: -67.7, high: 3.5, ..saved(1.0) }),
            withheld: None,
        });
        assert_eq!(
            recommended,
            "Use nfs. For your usage, counted over 2 weeks, it is not certain to save time: anything from 3.5 fewer to 67.7 more \
             minutes of waiting a week than smb is possible."
        );
        assert_eq!(
            uncertain_advice(
                &"nfs".parse().unwrap(),
                &MinutesSaved { low: -60.0, high: -20.0, ..saved(-40.0) }
            ),
            "Use nfs, although it costs 20 to 60 more minutes of waiting a week than smb for your usage, counted over 2 weeks: smb fails \
             more often, has stopped working, or its data was damaged."
        );
    }

    #[test]
    fn flawed_share_is_named_if_the_others_are_equal() {
        let sentence = |confidence| {
            let name = |name: &str| name.parse().unwrap();
            let objection = Objection::LessReliable;
            let withheld = Some(Withheld { target: name("afp"), instead_of: name("smb"), objection });
            no_difference(confidence, withheld.as_ref())
        };
        assert_eq!(
            sentence(Confidence::NoDifference),
            "Use any share except afp: no difference between the others is large enough to matter, but afp fails more often than smb"
        );
        assert_eq!(
            sentence(Confidence::DependsOnTask),
            "Which share is best depends on the task, but afp fails more often than smb"
        );
    }

    #[test]
    fn each_objection_is_a_sentence() {
        let sentence = |objection| {
            let name = |name: &str| name.parse().unwrap();
            let withheld = Withheld { target: name("nfs"), instead_of: name("smb"), objection };
            sentence(&Recommendation {
                target: None,
                confidence: None,
                minutes_a_week: None,
                withheld: Some(withheld),
            })
        };
        let more = MinutesSaved { value: -40.5, low: -41.8, high: -39.1, ..saved(1.0) };
        let changed = Objection::Changed { date: "2026-11-25".to_owned(), days: 9 };
        let expected = [
            (Objection::Damaged, "nfs took less time, but data on it differed from what was written"),
            (
                Objection::Failing,
                "nfs took less time, but a task on it failed in each of the last 3 rounds or more, while smb worked",
            ),
            (Objection::LessReliable, "nfs took less time, but it fails more often than smb"),
            (
                changed,
                "the ratio of nfs and smb changed on 2026-11-25, and there is no verdict yet about the 9 days since then",
            ),
            (
                Objection::Outliers { ratio: 1.7, rounds: 98 },
                "nfs took less time than smb in most rounds, but so much more in the others that the mean of all 98 is 1.70× the time \
                 of smb",
            ),
            (
                Objection::MoreTime,
                "nfs took less time than smb for all tasks together, but costs more time a week; how much differs from day to day",
            ),
            (
                Objection::MoreMinutes(more),
                "nfs took less time than smb for all tasks together, but costs 40.5 minutes a week more (39.1 to 41.8) for your usage, \
                 counted over 2 weeks",
            ),
        ];
        for (objection, text) in expected {
            assert_eq!(sentence(objection), format!("No recommendation: {text}."));
        }
    }

    #[test]
    fn equal_share_that_works_is_recommended_with_the_reason() {
        let name = |name: &str| name.parse().unwrap();
        let withheld =
            Withheld { target: name("nfs"), instead_of: name("smb"), objection: Objection::LessReliable };
        let recommended = sentence(&Recommendation {
            target: Some(name("smb")),
            confidence: Some(Confidence::Decided),
            minutes_a_week: None,
            withheld: Some(withheld),
        });
        assert_eq!(
            recommended,
            "Use smb: no difference in time is large enough to matter, but nfs fails more often than smb."
        );
    }
}
