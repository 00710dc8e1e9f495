//! Labels and short phrases for results, shared by all screens.

use longhaul_analysis::stats::AUTOCORRELATION_LIMIT;
use longhaul_analysis::summary::{
    ALPHA, Comparison, PairSummary, Proportion, Scores, Subject, UnmeasuredShare, Verdict, WeeklyMinutes,
    WeeklySummary,
};
use longhaul_model::{CacheState, Resolution, Role, TargetName};

use super::round_trips;
use crate::charts::MarkFill;
use crate::text::{Text, Tone};
use crate::units::{NO_VALUE, count, decimal};

/// Returns the name of a compared metric, for example `opening a batch of photos, cold`.
pub fn subject(subject: &Subject) -> String {
    with_cache(&subject.activity, subject.cache.unwrap_or(CacheState::None))
}

/// Returns a name with its cache state, for example `opening a large folder, warm`.
pub fn with_cache(name: &str, cache: CacheState) -> String {
    match cache {
        CacheState::None => name.to_owned(),
        CacheState::Cold => format!("{name}, cold"),
        CacheState::Warm => format!("{name}, warm"),
    }
}

/// Returns the label of a verdict. It names no winner, because a winner is only named together with its interval.
pub const fn verdict_label(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotEnoughData => "not enough data yet",
        Verdict::AlreadyClear => "already clear",
        Verdict::Faster => "decided",
        Verdict::ClearlyFaster => "decided",
        Verdict::TooSmall => "too small to matter",
        Verdict::NoRealDifference => "no real difference",
    }
}

/// Returns the fill of a verdict's mark in charts: solid if decided.
pub const fn fill(verdict: Verdict) -> MarkFill {
    if verdict.is_decided() { MarkFill::Solid } else { MarkFill::Hollow }
}

/// Returns the label of a pair's overall verdict, with a note if one target fails more often.
pub fn pair_verdict_label(pair: &PairSummary) -> String {
    let state =
        pair.headline.as_ref().map_or("nothing to compare yet", |headline| verdict_label(headline.verdict));
    pair.less_reliable().map_or(state.to_owned(), |worse| format!("{state}; {worse} fails more"))
}

/// Marks a text with the tone of a verdict: decided ones stand out.
pub fn toned(text: String, verdict: Verdict) -> Text {
    match verdict {
        Verdict::AlreadyClear | Verdict::Faster | Verdict::ClearlyFaster => {
            Text::new().toned(text, Tone::Good)
        }
        Verdict::TooSmall | Verdict::NoRealDifference => Text::new().toned(text, Tone::Neutral),
        Verdict::NotEnoughData => text.into(),
    }
}

/// Returns the data that a comparison rests on, as a sentence: days, rounds and level of the interval. `None` before the
/// first round that counts for a verdict.
pub fn basis(comparison: &Comparison) -> Option<String> {
    let rounds = comparison.rounds;
    if rounds.planned == 0 {
        return None;
    }
    let valid = comparison.days.len();
    // A comparison at a round trip time leaves out days on which it is not known.
    let adjusted = comparison.ratio.filter(|_| comparison.at_round_trip.is_some());
    let days = adjusted.map_or(valid, |ratio| ratio.days);
    let lost = [
        (valid.saturating_sub(days), "day", "without a known round trip time"),
        (comparison.incomplete_days, "day", "with too few rounds"),
        (rounds.both_failed, "round", "in which both failed"),
    ];
    let lost = lost.into_iter().filter(|(number, ..)| *number > 0);
    let lost = lost.map(|(number, unit, which)| format!("{} {which}", count(number, unit)));
    let lost = lost.collect::<Vec<_>>().join(", ");
    let note = round_trips::note(comparison).map(|note| format!(" {note}"));
    let verdict = if comparison.verdict.is_decided() { "Based" } else { "A verdict would be based" };
    let interval = match comparison.ratio {
        Some(_) => format!("; {} % interval, valid however often you look", level(comparison.alpha)),
        None => String::new(),
    };
    Some(format!(
        "{verdict} on {} and {} of {} rounds{}{}{}.{}",
        count(days, "day"),
        rounds.complete,
        rounds.planned,
        if lost.is_empty() { String::new() } else { format!(" ({lost})") },
        interval,
        if drift(comparison).is_some() { "; the ratio drifts from day to day" } else { "" },
        note.unwrap_or_default(),
    ))
}

/// Returns the level of an interval in percent, with as many decimals as tell it from 100: `95`, `98.3`, `99.974`.
fn level(alpha: f64) -> String {
    let decimals = (-alpha.log10()).ceil() as usize - 1;
    decimal((1.0 - alpha) * 100.0, decimals.max(1))
}

/// Number of days needed before drift is reported. The autocorrelation of fewer days is mostly its correction.
const MIN_DAYS_OF_DRIFT: usize = 7;

/// Returns the autocorrelation of a ratio that drifts from day to day; `None` if it does not, or if there are too few days to
/// tell.
pub fn drift(comparison: &Comparison) -> Option<f64> {
    let has_days = comparison.days.len() >= MIN_DAYS_OF_DRIFT;
    comparison.autocorrelation.filter(|correlation| has_days && *correlation > AUTOCORRELATION_LIMIT)
}

/// Returns the number of rounds won by each target.
pub fn rounds_won(comparison: &Comparison) -> String {
    let rounds = comparison.rounds;
    format!(
        "{} {}, {} {} of {}",
        comparison.a, rounds.won_by_a, comparison.b, rounds.won_by_b, rounds.complete
    )
}

/// Returns the usage that was counted over this many days, for example `for your usage, counted over 3 weeks`.
pub fn counted_usage(days: f64) -> String {
    let (number, unit) = if days < 14.0 { (days, "day") } else { ((days / 7.0).round(), "week") };
    format!("for your usage, counted over {}", count(number.round() as usize, unit))
}

/// Returns the difference in minutes a week for the user's usage profile, as a sentence.
pub fn weekly_minutes(pair: &PairSummary, minutes: &WeeklyMinutes) -> String {
    let covered = if minutes.measured_share < 1.0 {
        format!("; {:.0} % of the profile is measured", minutes.measured_share * 100.0)
    } else {
        String::new()
    };
    let basis = format!("{}{covered}", count(minutes.days, "day"));
    let (value, low, high) = (minutes.value, minutes.low, minutes.high);
    let plain = |value: f64| decimal(value, 1);
    let usage = match minutes.counted_days {
        Some(days) => capitalized(&counted_usage(days)),
        None => "For your usage profile".to_owned(),
    };
    let costs = |more: &TargetName, less: &TargetName, (value, low, high): (f64, f64, f64)| {
        let (value, low, high) = (plain(value), plain(low), plain(high));
        format!("{usage}, {more} costs {value} minutes a week more than {less} ({low} to {high}; {basis}).")
    };
    // A target is only named as more expensive if the interval excludes 0.
    match () {
        () if low > 0.0 => costs(&pair.b, &pair.a, (value, low, high)),
        () if high < 0.0 => costs(&pair.a, &pair.b, (-value, -high, -low)),
        () => format!(
            "{usage}, anything from {} minutes a week less to {} more on {} than on {} is possible ({basis}).",
            plain(-low),
            plain(high),
            pair.b,
            pair.a
        ),
    }
}

/// Returns the speed score with its interval. The reference has one as soon as another share has.
pub fn speed_text(scores: &Scores, all: &[Scores]) -> String {
    let is_any_known = all.iter().any(|scores| scores.speed.is_some());
    match scores.speed {
        Some(speed) => {
            format!("{:.0} ({:.0} to {:.0}; {} days)", speed.value, speed.low, speed.high, speed.days)
        }
        None if scores.is_reference && is_any_known => "100 (reference)".to_owned(),
        None => "not known".to_owned(),
    }
}

/// Returns a proportion in percent with its interval; `–` if there is none.
pub fn share_text(share: Option<Proportion>) -> String {
    let percent = |value: f64| format!("{:.1}", value * 100.0);
    share.map_or(NO_VALUE.to_owned(), |share| {
        format!(
            "{} % ({} to {}; n {})",
            percent(share.value),
            percent(share.low),
            percent(share.high),
            share.total
        )
    })
}

/// Returns the range of ranks of a target, for example `1 to 2`.
pub fn rank_range(scores: &Scores) -> String {
    match scores.rank {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    }
}

/// Progress of the measurements towards a ranking.
#[derive(PartialEq)]
enum Progress {
    NothingMeasured,
    WarmUp,
    NoShare,
    OneShare,
    Comparable,
}

fn progress(weekly: &WeeklySummary) -> Progress {
    let has_share = weekly.targets.iter().any(|target| target.role == Role::Share);
    match (weekly.table.is_empty(), weekly.scores.len()) {
        (true, _) if weekly.excluded.is_empty() => Progress::NothingMeasured,
        (true, _) if !has_share => Progress::NoShare,
        (true, _) => Progress::WarmUp,
        (false, 0) => Progress::NoShare,
        (false, 1) => Progress::OneShare,
        (false, _) => Progress::Comparable,
    }
}

/// Returns the ranking of all shares as far as it is decided, as a sentence without a final period.
pub fn ranking(weekly: &WeeklySummary) -> String {
    match progress(weekly) {
        Progress::NothingMeasured => "Nothing was measured up to the end of this week".to_owned(),
        Progress::WarmUp => {
            "Nothing counts yet: the first days of a target, mount or protocol are warm-up".to_owned()
        }
        Progress::NoShare => "Nothing has been measured on a share yet".to_owned(),
        Progress::OneShare => "There is only one share, so there is nothing to compare".to_owned(),
        Progress::Comparable => ranks(weekly),
    }
}

/// Returns what the user can do to get a first answer; `None` if waiting is enough.
pub fn next_step(weekly: &WeeklySummary) -> Option<Text> {
    let command = |command: &str| Text::new().code(command);
    match progress(weekly) {
        Progress::NothingMeasured => {
            let step = command("longhaul run").plain(" measures now, ").code("longhaul service install");
            Some(step.plain(" for weeks."))
        }
        Progress::NoShare | Progress::OneShare => {
            let what = if progress(weekly) == Progress::NoShare { "a share" } else { "another share" };
            Some(Text::from(format!("Add {what}: ")).then(command("longhaul init")).plain("."))
        }
        Progress::WarmUp | Progress::Comparable => None,
    }
}

fn ranks(weekly: &WeeklySummary) -> String {
    let of = weekly.scores.len();
    if weekly.scores.iter().all(|scores| scores.rank == (1, of)) {
        return if weekly.pairs.iter().all(PairSummary::is_decided) {
            "No share ranks above another".to_owned()
        } else {
            "Not enough data yet to rank one share above another".to_owned()
        };
    }
    let mut scores: Vec<&Scores> = weekly.scores.iter().collect();
    scores.sort_by_key(|scores| scores.rank);
    let rank = |scores: &Scores| match scores.rank {
        (first, last) if first == last => format!("{} {first}{}", scores.target, ordinal(first)),
        (first, last) => format!("{} {first}{} to {last}{}", scores.target, ordinal(first), ordinal(last)),
    };
    let ranks: Vec<String> = scores.into_iter().map(rank).collect();
    format!("{} of {of} shares", ranks.join(", "))
}

/// Returns a sentence about each share that is no longer measured.
pub fn unmeasured(weekly: &WeeklySummary) -> Vec<String> {
    let sentence = |share: &UnmeasuredShare| {
        let end = if share.is_left_out { " and is left out" } else { "" };
        format!("{} has not been measured since {}{end}.", share.target, share.last_day)
    };
    weekly.unmeasured.iter().map(sentence).collect()
}

/// Returns how far the ranking can be trusted; empty if there is nothing to rank.
pub fn confidence(weekly: &WeeklySummary) -> String {
    match weekly.pairs.len() {
        0 => String::new(),
        1 => guarantee(),
        _ => format!("A rank that is not decided is given as a range. {}", guarantee()),
    }
}

/// Returns the error guarantee of the answers, as a sentence (docs/methodology.md#many-comparisons).
pub fn guarantee() -> String {
    format!(
        "The chance that the overall interval of any pair ever excludes the truth is at most {} %, however often you look.",
        decimal(ALPHA * 100.0, 1)
    )
}

const fn ordinal(number: usize) -> &'static str {
    match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    }
}

/// Returns the number and the dates of a week, for example `2021-W12, 2021-03-22 to 2021-03-28`.
pub fn dates(weekly: &WeeklySummary) -> String {
    format!("{}, {} to {}", weekly.week, weekly.first_day, weekly.last_day)
}

/// Returns the number and the dates of a week with its hours and the scale of the test data.
pub fn dates_and_scale(weekly: &WeeklySummary) -> String {
    let scale = weekly.scale.map_or(String::new(), |scale| format!(", {} scale", scale.name()));
    format!("{} ({:.0} hours{scale})", dates(weekly), weekly.hours)
}

/// Returns how the rounds of the week ended, as a sentence without its final period.
pub fn rounds(weekly: &WeeklySummary) -> String {
    // All runs of such a round were made; some of them may have failed.
    let word = |status: &str| if status == "ok" { "finished".to_owned() } else { status.replace('-', " ") };
    let ended = weekly.rounds.by_status.iter();
    let ended: Vec<String> = ended.map(|(status, rounds)| format!("{rounds} {}", word(status))).collect();
    let ended = if ended.is_empty() { String::new() } else { format!(" ({})", ended.join(", ")) };
    match weekly.rounds.planned {
        0 if !weekly.pairs.is_empty() => {
            "No rounds ran in this week: everything is based on earlier ones".to_owned()
        }
        planned => format!("Rounds of the week: {planned}{ended}"),
    }
}

/// Returns the length of a step of stored samples in words.
pub const fn step(step: Resolution) -> &'static str {
    match step {
        Resolution::FiveMinutes => "five minutes",
        Resolution::Hour => "an hour",
        Resolution::HalfDay => "half a day",
    }
}

/// Returns the explanation of a stored reason of a round, such as `the machine slept`, without its code, such as `asleep: `.
pub fn round_reason(reason: &str) -> &str {
    let is_code = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    reason.split_once(": ").filter(|(code, _)| is_code(code)).map_or(reason, |(_, text)| text)
}

/// Returns a text with its first letter in upper case: words are written to follow others, too.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_code_of_a_reason_is_left_out() {
        assert_eq!(round_reason("not-running: longhaul was not running"), "longhaul was not running");
        assert_eq!(round_reason("stopped by the user"), "stopped by the user");
        assert_eq!(round_reason("mount: the mount of `a: b` changed"), "the mount of `a: b` changed");
        assert_eq!(round_reason("3 of 4: late"), "3 of 4: late");
    }
}
