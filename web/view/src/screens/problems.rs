//! Lists the problems of a week: failures, unavailable targets, lost rounds, and drifts that make an interval less
//! reliable.

use std::collections::BTreeMap;

use longhaul_analysis::summary::{Comparison, Failures, PairSummary, SoFar, WeeklySummary};
use longhaul_model::{Role, TargetName};

use super::checks::{damage, damaged_shares, statements};
use super::words;
use crate::document::{Details, Document};
use crate::text::{Text, Tone};
use crate::units;

/// Returns the problems of a week as a list, the most severe first, or a sentence that there are none. A page shows more than
/// `shown` of them only on request.
pub fn problems(weekly: &WeeklySummary, shown: usize) -> Document {
    let is_share = |name: &TargetName| {
        weekly.targets.iter().any(|target| target.name == *name && target.role == Role::Share)
    };
    let (shares, baselines): (Vec<&Failures>, Vec<&Failures>) =
        weekly.failures.iter().partition(|failures| is_share(&failures.target));
    let failure = |text: String| Text::new().toned("Failure: ", Tone::Bad).plain(text);
    let failing = damage(&damaged_shares(weekly)).into_iter();
    let failing = failing.chain(weekly.pairs.iter().filter_map(reliability_text));
    let failing = failing.chain(shares.into_iter().filter_map(failure_text));
    let failing = failing.chain(warm_up_failures(weekly)).map(failure);
    let failing_baselines = baselines.into_iter().filter_map(failure_text).map(failure);
    let stale = weekly.freshness.iter().filter_map(statements::staleness);
    let stale = stale.map(|text| Text::new().toned("Stale: ", Tone::Bad).plain(text));
    let unavailable = weekly.failures.iter().filter_map(unavailable_text);
    let drifting = weekly.pairs.iter().filter_map(|pair| drift_text(pair.headline.as_ref()?));
    let uncertain = unavailable.chain(drifting).chain(round_loss_text(weekly)).map(Text::from);
    let found: Vec<Text> = failing.chain(stale).chain(failing_baselines).chain(uncertain).collect();
    let mut document = Document::new();
    if found.is_empty() {
        document.paragraph(no_problems_text(weekly));
    }
    let (first, rest) = found.split_at(found.len().min(shown));
    let mut content = Document::new();
    content.list(rest.iter().cloned());
    document
        .list(first.iter().cloned())
        .details(Details { summary: format!("{} more", rest.len()), content });
    document
}

/// Returns the failures of shares that failed in no counted round, but in one of the warm-up.
fn warm_up_failures(weekly: &WeeklySummary) -> Vec<String> {
    let has_counted = |name: &TargetName| {
        weekly.failures.iter().any(|failures| failures.target == *name && failures.failed_rounds > 0)
    };
    let mut failed: BTreeMap<&TargetName, (usize, usize)> = BTreeMap::new();
    for headline in weekly.pairs.iter().filter_map(|pair| pair.headline.as_ref()) {
        let SoFar { rounds, failed_a, failed_b, .. } = headline.so_far;
        for (target, failures) in [(&headline.a, failed_a), (&headline.b, failed_b)] {
            if failures > 0 && !has_counted(target) {
                failed.insert(target, (failures, rounds));
            }
        }
    }
    let text = |(target, (failures, rounds)): (&TargetName, (usize, usize))| {
        format!(
            "{target} failed in {failures} of the {} so far, in the warm-up days.",
            units::count(rounds, "round")
        )
    };
    failed.into_iter().map(text).collect()
}

fn unavailable_text(failures: &Failures) -> Option<String> {
    let Failures { target, unavailable_rounds: rounds, .. } = failures;
    (*rounds > 0).then(|| format!("{target} was unavailable in {}.", units::count(*rounds, "round")))
}

fn no_problems_text(weekly: &WeeklySummary) -> String {
    let rounds = weekly.failures.iter().map(|failures| failures.rounds).max().unwrap_or(0);
    match rounds {
        0 => "No problems known: no round has been counted yet.".to_owned(),
        rounds => format!(
            "None: no failure in {}, and every round of the week was completed.",
            units::count(rounds, "round")
        ),
    }
}

fn failure_text(failures: &Failures) -> Option<String> {
    if failures.failed_rounds == 0 {
        return None;
    }
    let count = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let hung = match failures.hung_runs {
        0 => None,
        1 => Some(format!("1 run hung ({})", units::duration(failures.hung_seconds))),
        runs => Some(format!("{runs} runs hung ({} in total)", units::duration(failures.hung_seconds))),
    };
    let kinds = [hung, count(failures.error_runs, "ended with an error")];
    let episodes = units::count(failures.episodes, "episode");
    Some(format!(
        "{} failed in {} of {} rounds ({episodes}): {}.",
        failures.target,
        failures.failed_rounds,
        failures.rounds,
        kinds.into_iter().flatten().collect::<Vec<_>>().join("; ")
    ))
}

fn reliability_text(pair: &PairSummary) -> Option<String> {
    let worse = pair.less_reliable()?;
    let better = pair.other(worse);
    Some(format!(
        "{worse} fails more often than {better}: proven by the episodes in which only one of the two failed ({} {}, {} {}).",
        pair.a, pair.reliability.only_a, pair.b, pair.reliability.only_b
    ))
}

fn drift_text(headline: &Comparison) -> Option<String> {
    let drift = words::drift(headline)?;
    Some(format!(
        "The ratio of {} and {} drifts from day to day (autocorrelation {drift:.2}), so its interval may miss the truth more \
         often than stated.",
        headline.a, headline.b
    ))
}

fn round_loss_text(weekly: &WeeklySummary) -> Option<String> {
    let rounds = &weekly.rounds;
    let of = |status: &str| rounds.by_status.get(status).copied().unwrap_or(0);
    if rounds.planned == 0 {
        return Some("No rounds in this week.".to_owned());
    }
    let ended = rounds.planned - of("not-ended");
    let lost = ended - of("ok");
    if lost == 0 {
        return None;
    }
    let parts = rounds.by_status.iter().filter(|(status, _)| !matches!(**status, "ok" | "not-ended"));
    let parts: Vec<String> =
        parts.map(|(status, count)| format!("{count} {}", status.replace('-', " "))).collect();
    let reasons: Vec<String> = rounds
        .reasons
        .iter()
        .map(|(reason, count)| format!("{} ({count})", words::round_reason(reason)))
        .collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    Some(format!(
        "{lost} of the week's {} {} not completed ({}){reasons}.",
        units::count(ended, "round"),
        if lost == 1 { "was" } else { "were" },
        parts.join(", ")
    ))
}
