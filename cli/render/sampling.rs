//! What was sampled as text.

use comfy_table::Table;
use jiff::tz::TimeZone;
use longhaul_measure::model::{Beside, Covers, Stall, Step, TrafficStep};
use longhaul_measure::summary::{Felt, Sampled, WaitedFor};

use super::journal::time;
use super::table::{align_right_from, table};
use super::units;

const NOTHING: &str = "–";

/// A window as a whole.
pub fn sampled(sampled: &Sampled, step: Step) -> String {
    let hours = (sampled.span_us.1 - sampled.span_us.0) as f64 / 3.6e9;
    let mut out = format!("The last {} h, from steps of {}.\n", units::plain(hours, 1), step.name());
    out += "\nHow it felt: from the instant at which the light probe meant to ask until the answer\n";
    out += &if sampled.felt.is_empty() {
        "  No answer. By default the probe asks while somebody uses a share, or a round does: `longhaul status` says more.\n"
            .to_owned()
    } else {
        format!("{}\n", felt_table(&sampled.felt))
    };
    out += "\nWhat moved, as the system counts it\n";
    out += &if sampled.traffic.is_empty() {
        "  Nothing was counted.\n".to_owned()
    } else {
        format!("{}\n", traffic_table(&sampled.traffic))
    };
    if let Some(machine) = &sampled.machine {
        let share =
            |share: Option<f64>| share.map_or(NOTHING.to_owned(), |share| format!("{:.1} %", share * 100.0));
        out += &format!(
            "\nThe machine, {} looks: processors {} busy (most {}), load at most {}, memory free at least {}; the probes took {} of processor time.\n",
            machine.looks,
            share(machine.processor_share),
            share(machine.processor_peak),
            machine.load_most.map_or(NOTHING.to_owned(), |load| units::plain(load, 2)),
            machine.memory_least.map_or(NOTHING.to_owned(), |bytes| units::bytes(bytes as f64)),
            units::seconds(machine.probe_ns as f64 / 1e9),
        );
    }
    out + &waited(&sampled.waited)
}

/// How it felt, step by step.
pub fn series(steps: &[(i64, Vec<Felt>)], zone: &TimeZone) -> String {
    if steps.is_empty() {
        return "No answer of the probe in this time.\n".to_owned();
    }
    let mut table = felt_columns(&["begin"]);
    for (at_us, felt) in steps {
        for felt in felt {
            table.add_row(felt_row(felt, vec![time(*at_us, zone)]));
        }
    }
    align_right_from(&mut table, 4);
    format!("{table}\n")
}

fn felt_columns(before: &[&str]) -> Table {
    let columns = [
        "target", "asked", "beside", "answers", "p50", "p95", "p99", "longest", ">0.1 s", ">1 s", ">10 s",
        "lost", "errors",
    ];
    table(&[before, &columns].concat())
}

fn felt_row(felt: &Felt, mut row: Vec<String>) -> Vec<String> {
    let seconds = |value: Option<f64>| value.map_or(NOTHING.to_owned(), units::seconds);
    let beside = match felt.beside {
        Beside::Calm => "nothing of ours",
        Beside::Round => "a round",
    };
    row.extend([
        felt.target.to_string(),
        felt.kind.name().to_owned(),
        beside.to_owned(),
        felt.count.to_string(),
    ]);
    row.extend([seconds(felt.p50), seconds(felt.p95), seconds(felt.p99), seconds(felt.max)]);
    row.extend(felt.longer.iter().chain([&felt.lost, &felt.errors]).map(u64::to_string));
    row
}

fn felt_table(felt: &[Felt]) -> Table {
    let mut table = felt_columns(&[]);
    for felt in felt {
        table.add_row(felt_row(felt, vec![]));
    }
    align_right_from(&mut table, 3);
    table
}

fn traffic_table(traffic: &[TrafficStep]) -> Table {
    let columns = [
        "target",
        "source",
        "covers",
        "looked at",
        "others read",
        "others wrote",
        "longhaul read",
        "longhaul wrote",
        "requests",
        "mean answer",
        "sent again",
        "reconnects",
        "busiest",
        "used by others",
    ];
    let mut table = table(&columns);
    for step in traffic {
        table.add_row(traffic_row(step));
    }
    align_right_from(&mut table, 3);
    table
}

fn traffic_row(step: &TrafficStep) -> Vec<String> {
    let sum = &step.traffic;
    let bytes = |count: Option<u64>| count.map_or(NOTHING.to_owned(), |bytes| units::bytes(bytes as f64));
    let count = |count: Option<u64>| count.map_or(NOTHING.to_owned(), |count| count.to_string());
    let covers = match sum.covers {
        Covers::Mount => "this mount",
        Covers::Server => "its server",
        Covers::Interface => "the interface",
        Covers::Process => "longhaul",
        Covers::Protocol => "its protocol",
    };
    let answer = sum.round_trips.filter(|(count, _)| *count > 0);
    let answer =
        answer.map_or(NOTHING.to_owned(), |(count, time)| units::seconds(time as f64 / count as f64 / 1e6));
    vec![
        step.target.as_ref().map_or("machine".to_owned(), ToString::to_string),
        sum.source.name().into_owned(),
        covers.to_owned(),
        span_of(sum.seconds),
        bytes(sum.user_read),
        bytes(sum.user_written),
        bytes(sum.own_read),
        bytes(sum.own_written),
        count(sum.requests),
        answer,
        count(sum.retransmissions),
        count(sum.reconnects),
        step.peak.map_or(NOTHING.to_owned(), |peak| format!("{}/s", units::bytes(peak))),
        span_of(step.busy_seconds),
    ]
}

/// The ledger of waits.
pub fn stalls(stalls: &[Stall], span_us: (i64, i64), zone: &TimeZone) -> String {
    if stalls.is_empty() {
        return "No call had to wait for more than a second in this time, as far as somebody looked.\n"
            .to_owned();
    }
    let mut table =
        table(&["began", "lasted", "target", "longest call", "calls", "errors", "who waited", "beside"]);
    for stall in stalls {
        table.add_row(stall_row(stall, span_us.1, zone));
    }
    let window = longhaul_measure::summary::Window { span_us, stalls: stalls.to_vec(), ..Default::default() };
    format!("{table}\n{}", waited(&longhaul_measure::summary::sampled(&window).waited))
}

fn stall_row(stall: &Stall, now_us: i64, zone: &TimeZone) -> Vec<String> {
    let lasted = span_of((stall.ended_us.unwrap_or(now_us) - stall.started_us) as f64 / 1e6);
    let lasted = match (stall.ended_us, stall.is_cut) {
        (None, _) => format!("{lasted} so far"),
        (Some(_), true) => format!("{lasted} or more"),
        (Some(_), false) => lasted,
    };
    let errors: Vec<String> = stall.errors.iter().map(|(error, count)| format!("{error} ×{count}")).collect();
    vec![
        time(stall.started_us, zone),
        lasted,
        stall.target.to_string(),
        format!("{} {}", stall.operation, span_of(stall.longest_ns as f64 / 1e9)),
        stall.calls.to_string(),
        if errors.is_empty() { NOTHING.to_owned() } else { errors.join(", ") },
        stall.who.join(", "),
        stall.beside.clone().unwrap_or_else(|| NOTHING.to_owned()),
    ]
}

fn waited(waited: &[WaitedFor]) -> String {
    let line = |waited: &WaitedFor| {
        let apart = match waited.in_runs_only {
            0 => String::new(),
            count => format!("; {count} more long calls of longhaul's own runs, which nobody else felt"),
        };
        let times = if waited.stalls == 1 { "1 stall" } else { &format!("{} stalls", waited.stalls) };
        format!("  {}: {} in {times}{apart}\n", waited.target, span_of(waited.seconds))
    };
    match waited {
        [] => String::new(),
        some => format!("\nTime lost waiting\n{}", some.iter().map(line).collect::<String>()),
    }
}

/// A stretch of time: `4.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
fn span_of(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..60 => format!("{} s", units::plain(seconds, 1)),
        60..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3_600),
    }
}
