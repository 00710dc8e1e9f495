//! What the figures of a summary are called, the same in every form.

use longhaul_measure::model::{CacheState, TargetName};
use longhaul_measure::summary::{
    ALPHA, BeforeAfter, Comparison, MinutesAWeek, PairSummary, ReliabilityVerdict, Scores, Share, Subject,
    Verdict, Weekly,
};

use crate::charts::Fill;
use crate::units::{self, plain};

/// `opening a batch of photos, cold`.
pub fn subject(subject: &Subject) -> String {
    labelled(&subject.activity, subject.cache)
}

/// An activity with its cache state.
pub fn labelled(activity: &str, cache: Option<CacheState>) -> String {
    let cache = match cache {
        Some(CacheState::Cold) => ", cold",
        Some(CacheState::Warm) => ", warm",
        Some(CacheState::None) | None => "",
    };
    format!("{activity}{cache}")
}

/// The state of a verdict. It names no winner: the sentence beside it does, with its interval.
pub const fn state(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotEnoughData => "not enough data yet",
        Verdict::AlreadyClear => "already clear",
        Verdict::Faster => "decided",
        Verdict::ClearlyFaster => "clearly decided",
        Verdict::TooSmall => "too small to feel",
        Verdict::NoRealDifference => "no real difference",
    }
}

/// How a verdict is marked.
pub const fn fill(verdict: Verdict) -> Fill {
    if verdict.is_decided() { Fill::Solid } else { Fill::Hollow }
}

/// The state of a pair, failures included.
pub fn state_of_pair(pair: &PairSummary) -> String {
    let state = pair.headline.as_ref().map_or("nothing to compare yet", |headline| state(headline.verdict));
    match pair.reliability.verdict {
        ReliabilityVerdict::WorseA => format!("{state}; {} fails more", pair.a),
        ReliabilityVerdict::WorseB => format!("{state}; {} fails more", pair.b),
        ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => state.to_owned(),
    }
}

/// The answer of a pair.
pub fn headline(pair: &PairSummary) -> String {
    match &pair.headline {
        Some(headline) => headline.text.clone(),
        None => format!("{} and {}: no round so far has all tasks on both.", pair.a, pair.b),
    }
}

/// What a comparison rests on.
pub fn basis(comparison: &Comparison) -> String {
    let rounds = comparison.rounds;
    format!(
        "{} days, {} of {} planned rounds, interval at {} % whenever looked at",
        comparison.days.len(),
        rounds.complete,
        rounds.planned,
        plain((1.0 - comparison.alpha) * 100.0, 1),
    )
}

/// Who won how many rounds.
pub fn rounds_won(comparison: &Comparison) -> String {
    let rounds = comparison.rounds;
    format!(
        "{} {}, {} {} of {}",
        comparison.a, rounds.won_by_a, comparison.b, rounds.won_by_b, rounds.complete
    )
}

/// What the difference means in a week, for the mix of activities that was set beforehand.
pub fn minutes(pair: &PairSummary, minutes: &MinutesAWeek) -> String {
    let covered = if minutes.covered < 1.0 {
        format!("; {:.0} % of the mix is measured", minutes.covered * 100.0)
    } else {
        String::new()
    };
    let rests = format!("{} days{covered}", minutes.days);
    let (value, low, high) = (minutes.value, minutes.low, minutes.high);
    let plain = |value: f64| plain(value, 1);
    let costs = |more: &TargetName, less: &TargetName, (value, low, high): (f64, f64, f64)| {
        let (value, low, high) = (plain(value), plain(low), plain(high));
        format!(
            "For the mix that was set, {more} costs {value} minutes a week more than {less} ({low} to {high}; {rests})."
        )
    };
    match () {
        () if low > 0.0 => costs(&pair.b, &pair.a, (value, low, high)),
        () if high < 0.0 => costs(&pair.a, &pair.b, (-value, -high, -low)),
        () => format!(
            "For the mix that was set, anything from {} minutes a week less to {} more on {} than on {} fits ({rests}).",
            plain(-low),
            plain(high),
            pair.b,
            pair.a
        ),
    }
}

/// Speed with its interval.
pub fn speed(scores: &Scores) -> String {
    scores.speed.map_or("reference, or not known yet".to_owned(), |speed| {
        format!("{:.0} ({:.0} to {:.0}; {} days)", speed.value, speed.low, speed.high, speed.days)
    })
}

/// A share with its interval; `–` where there is none.
pub fn share(share: Option<Share>) -> String {
    let percent = |value: f64| format!("{:.1}", value * 100.0);
    share.map_or("–".to_owned(), |share| {
        format!(
            "{} % ({} to {}; n {})",
            percent(share.value),
            percent(share.low),
            percent(share.high),
            share.of
        )
    })
}

/// Between which places a target stands.
pub fn place(scores: &Scores) -> String {
    match scores.rank {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    }
}

/// Where all shares stand, as far as it is decided: the shortest honest answer to "which one?".
pub fn ranking(weekly: &Weekly) -> String {
    let of = weekly.scores.len();
    match of {
        0 => return "Nothing has been measured on a share yet".to_owned(),
        1 => return "There is one share only, so there is nothing to compare".to_owned(),
        _ => {}
    }
    if weekly.scores.iter().all(|scores| scores.rank == (1, of)) {
        let decided =
            |pair: &PairSummary| pair.headline.as_ref().is_some_and(|headline| headline.verdict.is_decided());
        return if weekly.pairs.iter().all(decided) {
            "No share stands above another".to_owned()
        } else {
            "Not enough data yet to put one share above another".to_owned()
        };
    }
    let mut scores: Vec<&Scores> = weekly.scores.iter().collect();
    scores.sort_by_key(|scores| scores.rank);
    let place = |scores: &Scores| match scores.rank {
        (first, last) if first == last => format!("{} {first}{}", scores.target, ordinal(first)),
        (first, last) => format!("{} {first}{} to {last}{}", scores.target, ordinal(first), ordinal(last)),
    };
    let places: Vec<String> = scores.into_iter().map(place).collect();
    format!("{} of {of} shares", places.join(", "))
}

/// How sure a ranking is.
pub fn how_sure() -> String {
    format!(
        "Places are given as far as they are decided. All intervals together miss with at most {} %, however often somebody \
         looks.",
        plain(ALPHA * 100.0, 1)
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

/// How long somebody waited: `3 h 20 min`, `4 min`, `12 s`.
pub fn waited(seconds: f64) -> String {
    match seconds.max(0.0).round() as u64 {
        short if short < 60 => format!("{short} s"),
        middle if middle < 3600 => format!("{} min", (middle + 30) / 60),
        long => format!("{} h {} min", long / 3600, long % 3600 / 60),
    }
}

/// A task before and after a moment as a row: its name, the ratio, whether it changed, the days, and both levels.
pub fn change_cells(row: &BeforeAfter) -> [String; 6] {
    let (ratio, said) = match row.ratio {
        Some(ratio) => (
            format!("{:.2} → {:.2}", ratio.before, ratio.after),
            if ratio.changed { "changed" } else { "no proven change" },
        ),
        None => ("–".to_owned(), "14 days on each side are needed"),
    };
    let level = |level: Option<(f64, f64)>| {
        level.map_or("–".to_owned(), |(before, after)| {
            format!("{} → {}", units::seconds(before), units::seconds(after))
        })
    };
    let days = format!("{} and {}", row.days.0, row.days.1);
    [subject(&row.subject), ratio, said.to_owned(), days, level(row.levels[0]), level(row.levels[1])]
}
