//! Screen that shows in which layer the time of each task is spent: `longhaul why`.

use longhaul_analysis::attribution::{Attribution, Layer};
use longhaul_analysis::summary::{Comparison, Confidence, WeeklySummary};
use longhaul_model::{TargetName, WaitMetric, all_metrics};

use super::{NO_VALUE, recommendation, sentences, words};
use crate::document::Document;
use crate::table::Table;
use crate::text::Text;
use crate::units;

/// Number of letters of a bar.
const BAR_LETTERS: usize = 20;
/// Letter for time that no source explains.
const UNKNOWN: char = '?';
/// Least ratio of the round trips on two shares for them to be named beside a difference in time: a smaller one explains little.
const MIN_RATIO_OF_TRIPS: f64 = 1.25;
/// Explains the bars.
const BAR_NOTE: &str = "Each letter of a bar is 5 % of the time: c this computer, q waiting to be sent, w network, s NAS, d disk of the NAS, \
     ? unknown. `longhaul why --json` has the intervals.";

/// Returns the screen for all attributions.
pub fn why(attributions: &[Attribution]) -> Document {
    let mut document = Document::titled("Why each task takes as long as it does");
    let is_known = |one: &Attribution| one.parts.iter().any(|part| part.seconds.is_some());
    if !attributions.iter().any(is_known) {
        document.paragraph(
            "No request times are known. longhaul reads them during each run on an NFS or SMB share, if the system counts them.",
        );
        return document;
    }
    for (task, metric) in all_metrics() {
        let of_metric = |one: &&Attribution| one.task == task.name() && one.metric == metric.name;
        let own: Vec<&Attribution> = attributions.iter().filter(of_metric).collect();
        if !own.is_empty() {
            document.append(metric_section(task.name(), metric, &own));
        }
    }
    let rounds = attributions.iter().map(|one| one.rounds).max().unwrap_or(0);
    document.note(format!("All values are medians of up to {}.", units::count(rounds, "round")));
    document.note(Text::constant(BAR_NOTE)).note(
        "NAS means the NAS with its disk, unless the NAS reports how busy its disk is. A part stands out if at least a quarter of \
         the time, and 0.1 s, would be saved with a good network, NAS or computer.",
    );
    document
}

fn metric_section(task: &str, metric: &WaitMetric, own: &[&Attribution]) -> Document {
    let mut document = Document::new();
    let heading = words::with_cache(metric.activity, metric.cache);
    document.section(format!("{task}-{}", metric.name), words::capitalized(&heading));
    document
        .list(own.iter().map(|one| Text::new().target(&one.target).plain(format!(": {}", statement(one)))));
    if let Some(trips) = round_trips(&heading, own) {
        document.paragraph(trips);
    }
    document.table(table(&heading, own));
    document
}

/// Returns what stands out on one target, as a sentence without its subject.
pub fn statement(one: &Attribution) -> String {
    let total = units::seconds(one.seconds);
    if one.parts.iter().all(|part| part.seconds.is_none()) {
        return format!("{total}; no request times are known.");
    }
    let Some((layer, part)) = one.largest.and_then(|layer| Some((layer, one.seconds_of(layer)?))) else {
        return format!("{total}; nothing stands out.");
    };
    let percent = (part / one.seconds * 100.0).round();
    // A layer that is as long on good equipment may take more of the time.
    format!("{} stands out: {} of {total} ({percent:.0} %).", layer_words(layer), units::seconds(part))
}

/// Layer that stands out most often in the times of a target.
struct Bottleneck<'a> {
    layer: Layer,
    /// Number of times in which it stands out.
    slowed: usize,
    /// Number of all measured times.
    all: usize,
    /// Time in which it is longest, of those that decidedly differ between shares if there is one.
    longest: &'a Attribution,
}

/// Returns true if an attribution is about the metric of a comparison.
fn is_about(one: &Attribution, task: &Comparison) -> bool {
    task.subject.key == format!("{}/{}", one.task, one.metric)
}

/// Returns the round trips that a task needs on the recommended share and on the next one, as a sentence. The task is the one with the
/// largest decided difference among those that need more of them on the slower share. `None` if there is none, or if the
/// recommendation is not decided. The sentence says what was counted; whether that makes the difference is not tested.
pub fn counted_round_trips(weekly: &WeeklySummary, attributions: &[Attribution]) -> Option<String> {
    let is_decided = weekly.recommendation.confidence == Some(Confidence::Decided);
    let best = weekly.recommendation.target.as_ref().filter(|_| is_decided)?;
    let pair = recommendation::main_pair(weekly).filter(|pair| pair.includes(best))?;
    let other = pair.other(best);
    let is_won = |task: &&Comparison| {
        task.winner() == Some(best)
            && !task.is_instant()
            && !task.is_contradicted_by_mean()
            && !sentences::always_failed(task)
    };
    let of = |task: &Comparison, target: &TargetName| {
        let one = attributions.iter().find(|one| one.target == *target && is_about(one, task))?;
        Some((one.round_trips?, one.rounds))
    };
    let counted = pair.tasks.iter().filter(is_won).filter_map(|task| {
        let ((fewer, rounds), (more, other_rounds)) = (of(task, best)?, of(task, other)?);
        let is_more = more > fewer && more >= fewer * MIN_RATIO_OF_TRIPS;
        is_more.then_some((task, fewer, more, rounds.max(other_rounds)))
    });
    let difference = |task: &Comparison| task.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
    let (task, fewer, more, rounds) =
        counted.max_by(|(one, ..), (next, ..)| difference(one).total_cmp(&difference(next)))?;
    let what = words::subject(&task.subject);
    let comma = if what == task.subject.activity { "" } else { "," };
    Some(format!(
        "{what}{comma} needs {} over {other}, {} over {best} (medians of up to {}).",
        counted_trips(more),
        trips_text(fewer),
        units::count(rounds, "round")
    ))
}

/// Returns the layer that stands out most often in the times of each target, in the order of the targets. Targets without one are
/// left out.
fn bottlenecks_of<'a>(
    weekly: &'a WeeklySummary,
    attributions: &'a [Attribution],
) -> impl Iterator<Item = Bottleneck<'a>> {
    // A task that is equally fast on all shares would be an example of something else.
    let differs = move |one: &Attribution| {
        let pairs = weekly.pairs.iter().filter(|pair| pair.includes(&one.target));
        pairs.flat_map(|pair| &pair.tasks).any(|task| task.winner().is_some() && is_about(one, task))
    };
    attributions.chunk_by(|one, next| one.target == next.target).filter_map(move |own| {
        let slowed = |layer: Layer| own.iter().filter(move |one| one.largest == Some(layer));
        let layer = Layer::ALL.into_iter().max_by_key(|layer| slowed(*layer).count())?;
        let seconds = |one: &Attribution| one.seconds_of(layer).unwrap_or(0.0);
        let longest = slowed(layer).max_by(|one, other| {
            differs(one).cmp(&differs(other)).then(seconds(one).total_cmp(&seconds(other)))
        })?;
        Some(Bottleneck { layer, slowed: slowed(layer).count(), all: own.len(), longest })
    })
}

/// Returns what stands out on each target, one sentence each, with an example. If round trips are counted, only their two shares are
/// included, to keep the first screen short.
pub fn bottlenecks(weekly: &WeeklySummary, attributions: &[Attribution]) -> Vec<Text> {
    let is_counted = counted_round_trips(weekly, attributions).is_some();
    let pair = recommendation::main_pair(weekly).filter(|_| is_counted);
    let is_shown = |found: &Bottleneck<'_>| pair.is_none_or(|pair| pair.includes(&found.longest.target));
    let sentence = |found: Bottleneck<'_>| {
        let Bottleneck { layer, slowed, all, longest } = found;
        let mut metrics = all_metrics();
        let (_, metric) =
            metrics.find(|(task, metric)| task.name() == longest.task && metric.name == longest.metric)?;
        let text = format!(
            ": {} stands out in {slowed} of {}; {}: {} of {} (median of {}).",
            layer_words(layer),
            units::count(all, "metric"),
            words::with_cache(metric.activity, metric.cache),
            units::seconds_or_none(longest.seconds_of(layer)),
            units::seconds(longest.seconds),
            units::count(longest.rounds, "round"),
        );
        Some(Text::new().target(&longest.target).plain(text))
    };
    bottlenecks_of(weekly, attributions).filter(is_shown).filter_map(sentence).collect()
}

/// Returns what was counted where the recommended share is faster and what stands out on the targets, in one paragraph with a link;
/// `None` if there is neither.
pub fn bottlenecks_in_brief(weekly: &WeeklySummary, attributions: &[Attribution]) -> Option<Text> {
    let counted = counted_round_trips(weekly, attributions);
    let found: Vec<Bottleneck<'_>> = bottlenecks_of(weekly, attributions).collect();
    if counted.is_none() && found.is_empty() {
        return None;
    }
    let mut line =
        counted.map_or_else(Text::new, |counted| format!("{} ", words::capitalized(&counted)).into());
    for (place, Bottleneck { layer, slowed, all, longest }) in found.iter().enumerate() {
        let text = format!(": {} in {slowed} of {}", layer_words(*layer), units::count(*all, "metric"));
        let opening = if place == 0 { "Stands out on " } else { "; on " };
        line = line.plain(opening).target(&longest.target).plain(text);
    }
    if !found.is_empty() {
        let rounds = attributions.iter().map(|one| one.rounds).max().unwrap_or(0);
        line = line.plain(format!(" (medians of up to {}). ", units::count(rounds, "round")));
    }
    Some(line.plain("Each task: ").link("why", "/why").plain("."))
}

/// Returns the sentence that compares round trips, such as "opening a large folder: 9 round trips over nfs, 27 over smb".
pub fn round_trips(heading: &str, own: &[&Attribution]) -> Option<String> {
    let known: Vec<(&Attribution, f64)> =
        own.iter().filter_map(|one| Some((*one, one.round_trips?))).collect();
    let count = |(one, trips): &(&Attribution, f64)| {
        let name = one.protocol.as_ref().map_or(String::new(), |protocol| format!(" ({protocol})"));
        (trips_text(*trips), format!("over {}{name}", one.target))
    };
    let mut counts = known.iter().map(count);
    let (first, target) = counts.next()?;
    let unit = if first == "1" { "round trip" } else { "round trips" };
    let rest: String = counts.map(|(trips, target)| format!(", {trips} {target}")).collect();
    Some(format!("{}: {first} {unit} {target}{rest}.", words::capitalized(heading)))
}

/// Formats a number of round trips with its unit.
fn counted_trips(trips: f64) -> String {
    match trips_text(trips).as_str() {
        "1" => "1 round trip".to_owned(),
        number => format!("{number} round trips"),
    }
}

/// Formats a number of round trips: whole, unless there are less than ten.
fn trips_text(trips: f64) -> String {
    match trips {
        ..9.95 => units::decimal(trips, 1),
        ..100.0 => units::decimal(trips, 0),
        _ => units::grouped(trips.round()),
    }
}

fn table(heading: &str, own: &[&Attribution]) -> Table {
    let caption = format!("where the time goes: {heading}");
    let mut table = Table::new(caption)
        .words(["target"])
        .figures(["time"])
        .words(["where it goes"])
        .figures(["computer", "queue", "network", "NAS", "NAS disk", "round trips"]);
    for one in own {
        let trips = one.round_trips.map_or(NO_VALUE.to_owned(), trips_text);
        let mut cells = vec![
            Text::new().target(&one.target),
            Text::from(units::seconds(one.seconds)),
            Text::new().code(bar(one)),
        ];
        cells.extend(one.parts.iter().map(|part| Text::from(units::seconds_or_none(part.seconds))));
        cells.push(trips.into());
        table.row(cells);
    }
    table
}

/// Returns the bar of an attribution: letters for the layers, from the user to the disk.
pub fn bar(one: &Attribution) -> String {
    let letters = |seconds: f64| seconds / one.seconds * BAR_LETTERS as f64;
    let (mut bar, mut end) = (String::new(), 0.0);
    for part in &one.parts {
        end += letters(part.seconds.unwrap_or(0.0));
        let length = (end.round() as usize).min(BAR_LETTERS);
        bar.extend(std::iter::repeat_n(letter(part.layer), length.saturating_sub(bar.len())));
    }
    let missing = BAR_LETTERS - bar.len();
    bar.extend(std::iter::repeat_n(UNKNOWN, missing));
    bar
}

const fn letter(layer: Layer) -> char {
    match layer {
        Layer::Client => 'c',
        Layer::Queue => 'q',
        Layer::Wire => 'w',
        Layer::Server => 's',
        Layer::ServerDisk => 'd',
    }
}

/// Returns the layer as users call it.
pub const fn layer_words(layer: Layer) -> &'static str {
    match layer {
        Layer::Client => "this computer",
        Layer::Queue => "waiting to be sent",
        Layer::Wire => "the network",
        Layer::Server => "the NAS",
        Layer::ServerDisk => "the disk of the NAS",
    }
}
