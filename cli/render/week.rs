//! The weekly summary, and one pair in depth, as text.

use anstyle::{AnsiColor, Style};
use jiff::civil::Date;
use longhaul_measure::model::{Role, TargetName};
use longhaul_measure::summary::{
    ALPHA, BeforeAfter, CAP_FACTOR, CAP_SECONDS, CONFOUNDED, Caching, Comparison, EARLY_DAYS, EARLY_RATIO,
    OPENING_DAYS, PairSummary, Scores, TargetLine, Times, Verdict, Weekly,
};
use longhaul_report::words::{change_cells, minutes, share, subject};

use super::table::{align_right_from, table};
use super::units;

/// The whole weekly summary, and whether each protocol is cached.
pub fn week(weekly: &Weekly, caching: &[Caching]) -> String {
    if weekly.table.is_empty() {
        let nothing = if weekly.left_out.is_empty() {
            "No run up to the end of this week. `longhaul run` makes rounds; `longhaul runs` lists what there is."
        } else {
            "Nothing to show yet: the first days of a target, mount or protocol settle in and do not count."
        };
        return format!("{}\n\n{nothing}\n\n{}\n", title(weekly), rounds(weekly));
    }
    let parts = [
        title(weekly),
        targets(weekly),
        answers(weekly),
        waiting(weekly),
        times(weekly),
        cached(caching),
        scores(&weekly.scores),
        "every figure here comes from tasks that longhaul did itself; how it felt meanwhile: `longhaul samples` and `longhaul stalls`."
            .to_owned(),
        rounds(weekly),
        events(weekly),
        method(weekly),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| part + "\n").collect::<Vec<_>>().join("\n")
}

fn title(weekly: &Weekly) -> String {
    let scale = weekly.scale.map_or(String::new(), |scale| format!(", {} scale", scale.name()));
    format!(
        "week {}, {} to {} ({:.0} hours){scale}",
        weekly.week, weekly.first_day, weekly.last_day, weekly.hours
    )
}

fn targets(weekly: &Weekly) -> String {
    let line = |target: &TargetLine| {
        let protocol = target.protocol.as_deref().unwrap_or("protocol not known");
        let role = match target.role {
            Role::Share => "",
            Role::Baseline => ", beside the comparison",
        };
        let epochs = match target.epochs {
            0 | 1 => String::new(),
            more => format!(", epoch {more}"),
        };
        format!("  {:<12}{protocol}{role}{epochs}", target.name)
    };
    weekly.targets.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether each target's protocol is cached by the client; nothing while that is not known of any.
pub fn cached(caching: &[Caching]) -> String {
    caching.iter().map(|target| target.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// First the answers: per pair, then task by task.
fn answers(weekly: &Weekly) -> String {
    if weekly.pairs.is_empty() {
        return "There is one share only, so there is nothing to compare: a second `[targets.NAME]` in the configuration \
                changes that."
            .to_owned();
    }
    weekly.pairs.iter().map(pair).collect::<Vec<_>>().join("\n\n")
}

fn pair(pair: &PairSummary) -> String {
    let mut lines = vec![headline(pair)];
    lines.extend(pair.by_presence.iter().map(|part| format!("  {}", part.text)));
    lines.extend(pair.tasks.iter().map(|task| format!("  {}", sentence(task))));
    lines.extend(pair.minutes_a_week.map(|costs| format!("  {}", minutes(pair, &costs))));
    if !pair.sequential.is_empty() {
        let texts = pair.sequential.iter().map(|weeks| weeks.text(pair.a.as_str(), pair.b.as_str()));
        lines.extend(texts.map(|text| format!("  {text}")));
        lines.push(format!("  {CONFOUNDED}"));
    }
    lines.join("\n")
}

/// The answer of a pair, its failures, and what it rests on.
pub fn headline(pair: &PairSummary) -> String {
    let text = match &pair.headline {
        Some(headline) => sentence(headline),
        None => format!("{} and {}: no round so far has all tasks on both.", pair.a, pair.b),
    };
    let rests = pair.headline.as_ref().map(|headline| format!("\n{}", basis(headline))).unwrap_or_default();
    format!("{text}\n{}{rests}", pair.reliability_text)
}

/// What a comparison rests on.
fn basis(comparison: &Comparison) -> String {
    let rounds = comparison.rounds;
    let wanders = match comparison.autocorrelation {
        Some(shared) if shared > 0.3 => "; the ratio itself wanders from day to day",
        Some(_) | None => "",
    };
    format!(
        "Rests on {} days and {} of {} planned rounds ({} days with too few rounds, {} rounds in which both failed); {} % \
         interval, valid whenever looked at{wanders}.",
        comparison.days.len(),
        rounds.complete,
        rounds.planned,
        comparison.thin_days,
        rounds.both_failed,
        units::plain((1.0 - comparison.alpha) * 100.0, 1),
    )
}

fn sentence(comparison: &Comparison) -> String {
    let style = style(comparison.verdict);
    format!("{style}{}{style:#}", comparison.text)
}

/// Decided stands out; what is not decided does not.
fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::AlreadyClear | Verdict::Faster | Verdict::ClearlyFaster => {
            AnsiColor::Green.on_default().bold()
        }
        Verdict::TooSmall | Verdict::NoRealDifference => AnsiColor::Cyan.on_default(),
        Verdict::NotEnoughData => Style::new(),
    }
}

/// Failures of each target, and the time that somebody waited for hung runs.
fn waiting(weekly: &Weekly) -> String {
    let mut table = table(&[
        "failures since settled",
        "rounds",
        "failed",
        "episodes",
        "hung runs",
        "errors",
        "hung for",
        "not there",
    ]);
    for failures in &weekly.failures {
        table.add_row([
            failures.target.to_string(),
            failures.rounds.to_string(),
            failures.failed_rounds.to_string(),
            failures.episodes.to_string(),
            failures.hung_runs.to_string(),
            failures.error_runs.to_string(),
            units::seconds(failures.hung_seconds),
            format!("{} rounds", failures.unavailable_rounds),
        ]);
    }
    align_right_from(&mut table, 1);
    table.to_string()
}

fn times(weekly: &Weekly) -> String {
    let columns =
        ["time", "target", "this week", "days from .. to", "n", "since settled", "p95", "n", "failed"];
    let mut table = table(&columns);
    for row in &weekly.table {
        for (place, on) in row.targets.iter().enumerate() {
            let name = if place == 0 { subject(&row.subject) } else { String::new() };
            table.add_row([
                name,
                on.target.to_string(),
                known(on.week.median),
                days_range(&on.week),
                on.week.times.to_string(),
                known(on.epoch.median),
                known(on.epoch.p95),
                on.epoch.times.to_string(),
                on.epoch.failed.to_string(),
            ]);
        }
    }
    table.to_string()
}

fn known(seconds: Option<f64>) -> String {
    seconds.map_or("–".to_owned(), units::seconds)
}

fn days_range(times: &Times) -> String {
    times.days_range.map_or("–".to_owned(), |(low, high)| {
        format!("{} .. {}", units::seconds(low), units::seconds(high))
    })
}

fn scores(scores: &[Scores]) -> String {
    if scores.is_empty() {
        return String::new();
    }
    let mut table = table(&["three numbers, never one", "speed", "smoothness", "reliability", "place"]);
    for score in scores {
        let speed = score.speed.map_or("reference or not known yet".to_owned(), |speed| {
            format!("{:.0} ({:.0} to {:.0}; {} days)", speed.value, speed.low, speed.high, speed.days)
        });
        let place = match score.rank {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        };
        table.add_row([
            score.target.to_string(),
            speed,
            share(score.smoothness),
            share(score.reliability),
            place,
        ]);
    }
    table.to_string()
}

fn rounds(weekly: &Weekly) -> String {
    let ended: Vec<String> =
        weekly.rounds.by_status.iter().map(|(status, rounds)| format!("{rounds} {status}")).collect();
    let mut lines =
        vec![format!("rounds of the week: {} planned: {}", weekly.rounds.planned, ended.join(", "))];
    lines.extend(weekly.rounds.reasons.iter().map(|(reason, rounds)| format!("  {rounds}: {reason}")));
    lines.extend(
        weekly
            .left_out
            .iter()
            .map(|left| format!("left out of the verdicts: {} runs {}", left.runs, left.reason)),
    );
    lines.join("\n")
}

fn events(weekly: &Weekly) -> String {
    if weekly.events.is_empty() {
        return "events of the week: none recorded".to_owned();
    }
    let line = |event: &longhaul_measure::summary::JournalEntry| {
        let target = event.target.as_ref().map_or("machine", |target| target.as_str());
        format!("  {}  {target:<12}{:<14}{}", event.at, event.kind, event.detail)
    };
    format!("events of the week\n{}", weekly.events.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn method(weekly: &Weekly) -> String {
    let threshold = (weekly.premises.threshold - 1.0) * 100.0;
    format!(
        "A verdict rests on all days of the current protocol, options and path up to the end of this week; a week alone gets \
         none.\nA day is the median of its rounds' ratios, both shares minutes apart in drawn order; verdicts open at \
         {OPENING_DAYS} days (from {EARLY_DAYS} on if\nthe whole interval lies beyond ±{:.0} %); {threshold:.0} % matters; all \
         intervals together miss with at most {:.0} %, however often you look.\nFailures count as {CAP_FACTOR:.0} times the usual \
         time, within {:.0} to {:.0} s. Cold and warm, and epochs, are never pooled.",
        (EARLY_RATIO - 1.0) * 100.0,
        ALPHA * 100.0,
        CAP_SECONDS.start(),
        CAP_SECONDS.end(),
    )
}

/// One pair in depth.
pub fn pair_in_depth(weekly: &Weekly, summary: &PairSummary, since: Option<Date>) -> String {
    let mut out = String::new();
    if let Some(since) = since {
        out += &format!(
            "Only rounds since {since}. An interval keeps its promise only if that day was chosen before looking.\n\n"
        );
    }
    out += &format!("{}\n", pair(summary));
    for comparison in summary.headline.iter().chain(&summary.by_presence).chain(&summary.tasks) {
        out += &format!("\n{}\n", in_depth(comparison));
    }
    format!("{out}\n{}\n", method(weekly))
}

fn in_depth(comparison: &Comparison) -> String {
    let style = Style::new().bold();
    let mut lines = vec![format!("{style}{}{style:#}", subject(&comparison.subject)), basis(comparison)];
    if let Some((a, b)) = comparison.typical_seconds {
        let (of_a, of_b) = (units::seconds(a), units::seconds(b));
        lines.push(format!("usual time: {} {of_a}, {} {of_b}", comparison.a, comparison.b));
    }
    if let Some(ratio) = comparison.ratio {
        lines.push(format!(
            "{} takes {:.3}× the time of {} ({:.3} to {:.3})",
            comparison.b, ratio.value, comparison.a, ratio.low, ratio.high
        ));
    }
    let rounds = comparison.rounds;
    lines.push(format!(
        "rounds won: {} {}, {} {}",
        comparison.a, rounds.won_by_a, comparison.b, rounds.won_by_b
    ));
    lines.extend(comparison.visible_ratio.map(|ratio| {
        format!("with your noise so far, differences from {:.1} % on show now", (ratio - 1.0) * 100.0)
    }));
    lines.extend(comparison.days_still_needed.map(|days| format!("about {days} more days to a decision")));
    lines.extend(comparison.is_steady.map(|steady| {
        format!("over the last five days the ratio was {}", if steady { "steady" } else { "not steady" })
    }));
    lines.extend(rows_of_days(comparison));
    lines.join("\n")
}

/// The ratio of each day, seven to a line.
fn rows_of_days(comparison: &Comparison) -> Vec<String> {
    let row = |days: &[longhaul_measure::summary::DayRatio]| {
        let ratios: Vec<String> = days.iter().map(|day| format!("{:.2}", day.ratio)).collect();
        format!("  {}  {}", days[0].date, ratios.join("  "))
    };
    comparison.days.chunks(7).map(row).collect()
}

/// A pair before and after a moment.
pub fn before_after(what: &str, (a, b): (&TargetName, &TargetName), around: &[BeforeAfter]) -> String {
    let heading = format!("before and after {what}");
    let (level_a, level_b) = (format!("{a}, before → after"), format!("{b}, before → after"));
    let ratio = format!("{b} in times of {a}");
    let mut table = table(&[&heading, &ratio, "", "days", &level_a, &level_b]);
    for row in around {
        table.add_row(change_cells(row));
    }
    format!(
        "\n{table}\nThe ratio is tested at a chance of 1 % of a false alarm. Levels are a description: they drift by themselves, \
         and what changes both\nshares alike shows in them only.\n"
    )
}
