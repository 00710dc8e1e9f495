//! The report of a week in brief: the answer about each pair, a line per task, and notes about the week.

use longhaul_analysis::summary::{Failures, PairSummary, Week, WeeklySummary};

use super::checks::{damage, statements};
use super::round_trips::StatedIn;
use super::{recommendation, result, sentences, week, words};
use crate::document::Document;
use crate::text::Text;
use crate::units;

/// Maximum number of reasons for skipped and void rounds that are listed.
const MAX_REASONS: usize = 3;

/// Returns the report of a week. It has at most 25 lines for two shares.
pub fn brief(weekly: &WeeklySummary) -> Document {
    let mut document = Document::titled(format!("Week {}", words::dates(weekly)));
    if weekly.pairs.is_empty() {
        let ranking = Text::from(format!("{}.", words::ranking(weekly)));
        document.paragraph(
            words::next_step(weekly).into_iter().fold(ranking, |text, step| text.plain(" ").then(step)),
        );
    } else {
        let recommended = Text::new().strong(recommendation::heading(weekly));
        document.paragraph(week::with_exceptions(recommended, weekly));
        for pair in &weekly.pairs {
            document.append(answer(weekly, pair)).table(result::table(pair));
        }
    }
    document.list(notes(weekly));
    document
}

/// Returns the report of a week before `first`, the first week with a round.
pub fn before_first_week(weekly: &WeeklySummary, first: Week) -> Document {
    let mut document = Document::titled(format!("Week {}", words::dates(weekly)));
    document.paragraph(format!(
        "Nothing had been measured by {}. The first week with rounds is {first}.",
        weekly.last_day
    ));
    document
}

/// Returns the answer about a pair: its speed, the data that it rests on, and the failures of both targets.
fn answer(weekly: &WeeklySummary, pair: &PairSummary) -> Document {
    let mut document = Document::new();
    let headline = pair.headline.as_ref();
    let speed = sentences::speed(pair, StatedIn::basis_of(pair));
    document.paragraph(
        headline.map_or_else(|| speed.as_str().into(), |found| words::toned(speed.clone(), found.verdict)),
    );
    let freshness = statements::freshness_of_pair(weekly, pair);
    let reasons = headline.and_then(words::basis).into_iter().chain(failures(weekly, pair));
    document.list(reasons.chain(damage(&pair.damaged)).chain(freshness));
    document
}

/// Returns the failures of a pair as a sentence, and how often a share was not there; `None` if there was nothing of that.
fn failures(weekly: &WeeklySummary, pair: &PairSummary) -> Option<String> {
    let of_pair =
        weekly.failures.iter().filter(|failures| failures.target == pair.a || failures.target == pair.b);
    let of_pair: Vec<&Failures> = of_pair.collect();
    let count = |failures: &&Failures| {
        format!("{} in {} of {} rounds", failures.target, failures.failed_rounds, failures.rounds)
    };
    let worse = pair.less_reliable().map_or("Failures: ".to_owned(), |worse| {
        format!("{worse} fails more often than {}: ", pair.other(worse))
    });
    let is_away = |failures: &&&Failures| failures.unavailable_rounds > 0;
    let away = |failures: &&Failures| {
        format!(
            "{} was unavailable in {}",
            failures.target,
            units::count(failures.unavailable_rounds, "round")
        )
    };
    let away: Vec<String> = of_pair.iter().filter(is_away).map(away).collect();
    let failed = of_pair.iter().map(count).collect::<Vec<_>>().join(", ");
    match (of_pair.iter().any(|failures| failures.failed_rounds > 0), away.as_slice()) {
        (false, []) => None,
        (true, []) if pair.headline.is_none() => Some(format!(
            "{worse}{failed}. `longhaul runs` shows what failed, `longhaul doctor` what is wrong now."
        )),
        (true, []) => Some(format!("{worse}{failed}.")),
        (true, away) => Some(format!("{worse}{failed}; {}.", away.join(", "))),
        (false, away) => Some(format!("No failures, but {}.", away.join(", "))),
    }
}

fn notes(weekly: &WeeklySummary) -> Vec<Text> {
    let reasons = weekly.rounds.reasons.iter().take(MAX_REASONS);
    let reasons: Vec<String> =
        reasons.map(|(reason, count)| format!("{} ({count})", words::round_reason(reason))).collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    let mut notes: Vec<Text> = words::unmeasured(weekly).into_iter().map(Text::from).collect();
    notes.push(Text::from(words::rounds(weekly) + &reasons + "."));
    if !is_guarantee_told(weekly) {
        notes.push(words::guarantee().into());
    }
    notes.push(more(weekly));
    notes
}

/// Returns true if the sentence about the data of the only pair tells the error guarantee.
fn is_guarantee_told(weekly: &WeeklySummary) -> bool {
    match weekly.pairs.as_slice() {
        [] => true,
        [pair] => pair.headline.as_ref().is_some_and(|headline| headline.ratio.is_some()),
        [_, _, ..] => false,
    }
}

/// Returns the commands that show more.
fn more(weekly: &WeeklySummary) -> Text {
    let mut more = Text::from("More: ").code("longhaul report --verbose");
    if !weekly.pairs.is_empty() {
        more = more.plain(", ").code("longhaul report --pair A,B");
    }
    match weekly.events.len() {
        0 => more.plain("."),
        1 => more.plain(", and ").code("longhaul events").plain(" for the event of the week."),
        events => more
            .plain(", and ")
            .code("longhaul events")
            .plain(format!(" for the {events} events of the week.")),
    }
}

/// Returns the answers of all pairs, one line each, decided ones first.
pub fn answers(weekly: &WeeklySummary) -> Vec<String> {
    let mut pairs: Vec<&PairSummary> = weekly.pairs.iter().collect();
    pairs.sort_by_key(|pair| !pair.is_decided());
    pairs.into_iter().map(sentences::headline).collect()
}
