//! Screen that shows how long each task would take with another network or disk: `longhaul what-if`.

use std::collections::BTreeMap;

use longhaul_analysis::prediction::{Answer, AssumedChange, Dimension, NoPrediction, Prediction};
use longhaul_model::{WaitMetric, all_metrics};

use super::{NO_VALUE, words};
use crate::document::Document;
use crate::table::Table;
use crate::text::Text;
use crate::units;

/// Explains the interval.
const NOTE: &str = "The range contains the time of a typical run in about 19 of 20 cases. The prediction is fitted to your own rounds: \
     the time on this computer, round trips, bytes and requests to the disk. Photos, restored files and everything over SMB are the least \
     certain over a network that is much longer than yours.";

/// Heading of the screen.
const TITLE: &str = "What if";

/// Returns the part of a page before a question is asked.
pub fn without_question() -> Document {
    let mut document = Document::titled(TITLE);
    document.paragraph(
        "Choose another network or disk: the time of each task there is predicted from your own rounds.",
    );
    document
}

/// Returns the screen for the answers to a question, which names something that would change.
pub fn what_if(change: AssumedChange, answers: &[Answer]) -> Document {
    let mut document = Document::titled(TITLE);
    let runs = answers.iter().map(|one| one.runs).max().unwrap_or(0);
    if runs > 0 {
        document.paragraph(format!(
            "Predicted from up to {} of each task: {}.",
            units::count(runs, "run"),
            question(change)
        ));
    }
    let of_metric = |task: &str, metric: &WaitMetric| -> Vec<&Answer> {
        answers.iter().filter(|one| one.key.workload == task && one.key.metric == metric.name).collect()
    };
    let groups: Vec<(String, Vec<&Answer>)> = all_metrics()
        .map(|(task, metric)| {
            (words::with_cache(metric.activity, metric.cache), of_metric(task.name(), metric))
        })
        .filter(|(_, group)| !group.is_empty())
        .collect();
    if groups.iter().all(|(_, group)| group.iter().all(|one| one.changed.is_err())) {
        return no_prediction(document, answers);
    }
    let winners: Vec<Text> = groups.iter().filter_map(|(activity, group)| winner(activity, group)).collect();
    let predicted = |group: &[&Answer]| group.iter().filter(|one| one.changed.is_ok()).count();
    let compared = groups.iter().filter(|(_, group)| predicted(group) > 1).count();
    let open = match (winners.len(), compared) {
        (named, compared) if named == compared => None,
        (0, _) => Some("For no task is it certain which share would be fastest: the ranges overlap."),
        _ => Some("For some other tasks it is not certain which share would be fastest: the ranges overlap."),
    };
    document.list(winners.into_iter().chain(open.map(Text::from)));
    document.table(table(&groups));
    document.note(NOTE);
    document
}

/// Returns the question in words, such as "a round trip of 20 ms and 100 Mbit/s".
fn question(change: AssumedChange) -> String {
    let parts = [
        change.round_trip.map(|time| format!("a round trip of {}", units::seconds(time.as_secs_f64()))),
        change.bits_per_second.map(rate),
        change.disk.map(|time| {
            format!("{} for a request to the disk of the NAS", units::seconds(time.as_secs_f64()))
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" and ")
}

/// Returns a rate in the unit of its size, such as "50 Mbit/s" or "2.5 Gbit/s".
fn rate(bits_per_second: f64) -> String {
    let (value, unit) = match bits_per_second {
        1e9.. => (bits_per_second / 1e9, "Gbit/s"),
        1e6.. => (bits_per_second / 1e6, "Mbit/s"),
        _ => (bits_per_second / 1e3, "kbit/s"),
    };
    format!("{} {unit}", units::decimal(value, 2))
}

fn no_prediction(mut document: Document, answers: &[Answer]) -> Document {
    let reasons = reasons_by_target(answers);
    if reasons.is_empty() {
        document.paragraph(format!("No prediction yet: {}.", reason_text(NoPrediction::TooFewRuns)));
    }
    let mut targets_by_reason: Vec<(NoPrediction, Vec<&str>)> = vec![];
    for (target, reasons) in reasons {
        for reason in reasons {
            match targets_by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, targets)) => targets.push(target),
                None => targets_by_reason.push((reason, vec![target])),
            }
        }
    }
    document.list(targets_by_reason.into_iter().map(|(reason, targets)| {
        format!("No prediction yet for {}: {}.", targets.join(", "), reason_text(reason))
    }));
    document
}

/// Returns the reasons why nothing can be predicted for each target. Too few runs are a reason only if no metric has enough: a metric
/// that has them tells what else is missing.
fn reasons_by_target(answers: &[Answer]) -> BTreeMap<&str, Vec<NoPrediction>> {
    let mut by_target: BTreeMap<&str, Vec<NoPrediction>> = BTreeMap::new();
    for answer in answers {
        let reasons = by_target.entry(answer.key.target.as_str()).or_default();
        let new = answer.changed.err().filter(|reason| !reasons.contains(reason));
        reasons.extend(new);
    }
    for reasons in by_target.values_mut().filter(|reasons| reasons.len() > 1) {
        reasons.retain(|reason| *reason != NoPrediction::TooFewRuns);
    }
    by_target
}

/// Returns the reason why nothing can be predicted, with what would change that.
fn reason_text(reason: NoPrediction) -> &'static str {
    match reason {
        NoPrediction::TooFewRuns => {
            "at least 12 rounds with a known round trip time, bandwidth and traffic are needed for each target"
        }
        NoPrediction::NeverVaried(Dimension::RoundTrip) => {
            "the round trip time was nearly the same in all rounds, so its effect is not known. Measure over Wi-Fi or a VPN for \
             some rounds, too"
        }
        NoPrediction::NeverVaried(Dimension::Disk) => {
            "the disk of the NAS is not known, or was equally fast in all rounds. Name the NAS in [nas], so that its disk is \
             read with each run"
        }
    }
}

/// Returns a sentence if one target would be faster than all others beyond the ranges. Says so if another one cannot be predicted.
fn winner(activity: &str, group: &[&Answer]) -> Option<Text> {
    let mut predicted: Vec<(&Answer, Prediction)> =
        group.iter().filter_map(|one| Some((*one, one.changed.ok()?))).collect();
    predicted.sort_by(|one, other| one.1.seconds.total_cmp(&other.1.seconds));
    let [(first, best), (_, second), ..] = predicted[..] else { return None };
    let is_clear = predicted[1..].iter().all(|(_, other)| best.high < other.low);
    let among = if predicted.len() < group.len() { " of those that can be predicted" } else { "" };
    is_clear.then(|| {
        Text::from(format!("For {activity}, ")).target(&first.key.target).plain(format!(
            " would be the fastest{among}: about {} instead of {} on the next best.",
            units::seconds(best.seconds),
            units::seconds(second.seconds)
        ))
    })
}

fn table(groups: &[(String, Vec<&Answer>)]) -> Table {
    let mut table = Table::new("predicted times")
        .words(["task", "target"])
        .figures(["usually", "then", "range"])
        .words(["note"]);
    for (activity, group) in groups {
        for answer in group {
            let usual = answer.usual.map_or(NO_VALUE.to_owned(), |usual| units::seconds(usual.seconds));
            let (then, range, note) = match answer.changed {
                Ok(changed) => (
                    units::seconds(changed.seconds),
                    format!("{} to {}", units::seconds(changed.low), units::seconds(changed.high)),
                    if changed.is_extrapolated { "far outside the measured range" } else { "" },
                ),
                Err(reason) => (NO_VALUE.to_owned(), NO_VALUE.to_owned(), short_reason(reason)),
            };
            table.row([
                Text::from(activity.as_str()),
                Text::new().target(&answer.key.target),
                usual.into(),
                then.into(),
                range.into(),
                note.into(),
            ]);
        }
    }
    table
}

const fn short_reason(reason: NoPrediction) -> &'static str {
    match reason {
        NoPrediction::TooFewRuns => "too few rounds with known round trip, bandwidth and traffic",
        NoPrediction::NeverVaried(Dimension::RoundTrip) => "the round trip time never varied",
        NoPrediction::NeverVaried(Dimension::Disk) => "the disk is not known",
    }
}
