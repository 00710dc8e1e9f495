//! What is wrong: failures, waiting, rounds that gave nothing, and whatever weakens a figure. Derived, never judged.

use longhaul_measure::stats::DaySeries;
use longhaul_measure::summary::{Comparison, Failures, PairSummary, ReliabilityVerdict, Weekly};

use crate::charts::days::day_of;
use crate::{private, words};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Somebody waited in vain or lost something.
    Serious,
    /// Figures carry less than they could.
    Caveat,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub weight: Weight,
    /// What it is, in a sentence.
    pub text: String,
}

/// Everything that is wrong, the worst first.
pub fn findings(weekly: &Weekly) -> Vec<Finding> {
    let serious = |text| Finding { weight: Weight::Serious, text };
    let caveat = |text| Finding { weight: Weight::Caveat, text };
    let failing = weekly.failures.iter().filter_map(failed);
    let proven = weekly.pairs.iter().filter_map(fails_more);
    let away = weekly.failures.iter().filter(|failures| failures.unavailable_rounds > 0).map(|failures| {
        format!("{} was not there in {} rounds.", failures.target, failures.unavailable_rounds)
    });
    let wandering = weekly.pairs.iter().filter_map(|pair| wanders(pair.headline.as_ref()?));
    let mut all: Vec<Finding> = failing.chain(proven).map(serious).collect();
    all.extend(away.chain(wandering).chain(without_result(weekly)).map(caveat));
    all
}

/// What to say if nothing is wrong.
pub fn all_is_well(weekly: &Weekly) -> String {
    let rounds = weekly.failures.iter().map(|failures| failures.rounds).max().unwrap_or(0);
    match rounds {
        0 => "No round counts yet, so nothing is known to be wrong.".to_owned(),
        rounds => format!("Nothing: no failure in {rounds} rounds, and every round of the week was made."),
    }
}

fn failed(failures: &Failures) -> Option<String> {
    if failures.failed_rounds == 0 {
        return None;
    }
    let count = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let hung = match failures.hung_runs {
        0 => None,
        1 => Some(format!("1 run hung, for {}", words::waited(failures.hung_seconds))),
        runs => Some(format!("{runs} runs hung, for {} in all", words::waited(failures.hung_seconds))),
    };
    let kinds = [hung, count(failures.error_runs, "ended with an error")];
    let episodes = if failures.episodes == 1 {
        "1 episode".to_owned()
    } else {
        format!("{} episodes", failures.episodes)
    };
    Some(format!(
        "{} failed in {} of {} rounds ({episodes}): {}.",
        failures.target,
        failures.failed_rounds,
        failures.rounds,
        kinds.into_iter().flatten().collect::<Vec<_>>().join("; ")
    ))
}

fn fails_more(pair: &PairSummary) -> Option<String> {
    let (worse, better) = match pair.reliability.verdict {
        ReliabilityVerdict::WorseA => (&pair.a, &pair.b),
        ReliabilityVerdict::WorseB => (&pair.b, &pair.a),
        ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => return None,
    };
    Some(format!(
        "{worse} fails more often than {better}: proven by the episodes in which one failed alone ({} {}, {} {}).",
        pair.a, pair.reliability.only_a, pair.b, pair.reliability.only_b
    ))
}

fn wanders(headline: &Comparison) -> Option<String> {
    let days: Vec<(i64, f64)> =
        headline.days.iter().filter_map(|day| Some((day_of(&day.date)?, day.ratio.ln()))).collect();
    let series = DaySeries::of(&days).filter(DaySeries::wanders)?;
    Some(format!(
        "The ratio of {} and {} itself wanders: neighbouring days share {:.0} % of what moves it, so its interval holds \
         less well than it says.",
        headline.a,
        headline.b,
        series.corrected_autocorrelation() * 100.0
    ))
}

fn without_result(weekly: &Weekly) -> Option<String> {
    let rounds = &weekly.rounds;
    let whole = rounds.by_status.get("ok").copied().unwrap_or(0);
    if rounds.planned == 0 {
        return Some("The week has no round.".to_owned());
    }
    if whole == rounds.planned {
        return None;
    }
    let parts = rounds.by_status.iter().filter(|(status, _)| **status != "ok");
    let parts: Vec<String> = parts.map(|(status, count)| format!("{count} {status}")).collect();
    let reasons: Vec<String> = rounds
        .reasons
        .iter()
        .map(|(reason, count)| format!("{} ({count})", private::prose(reason)))
        .collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    Some(format!(
        "{} of the week's {} rounds were not made whole ({}){reasons}.",
        rounds.planned - whole,
        rounds.planned,
        parts.join(", ")
    ))
}
