//! The status of the service as text: problems first.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul_measure::model::Role;
use longhaul_service::status::{LastRound, ProbeState, State, Status, TargetState, TargetStatus};
use longhaul_store::Signal;
use longhaul_telemetry::status::SignalStatus;

use super::table::table;
use super::units;

/// The whole status.
pub fn status(status: &Status) -> String {
    let red = AnsiColor::Red.on_default();
    let mut out = String::new();
    for problem in &status.problems {
        out += &format!("{red}{}{red:#} since {}: {}\n", problem.word, time(problem.since_us), problem.text);
    }
    for stall in &status.stalls {
        let since = moment(stall.started_us, status.now_us);
        out += &format!(
            "{red}stall{red:#} `{}` keeps a {} waiting since {since}\n",
            stall.target, stall.operation
        );
    }
    out += &format!("{}\n\n{}\n\n", head(status), targets(status));
    if let Some(last) = &status.last {
        out += &format!("last round  {}\n", last_round(last));
    }
    out += &format!(
        "next round  {}\n",
        status.next_us.map_or("none is planned".to_owned(), |us| moment(us, status.now_us))
    );
    out += &format!("rounds      {}\n", rounds(status));
    let size = status.database.bytes.map_or("size not known".to_owned(), |bytes| units::bytes(bytes as f64));
    out += &format!("database    {} ({size})\n", status.database.path.display());
    out += &telemetry(status);
    out += &format!("probe       {}\n", probes(status));
    if let Some(design) = &status.design {
        out += &format!("design      {design}\n");
    }
    out
}

/// How it stands with the export; nothing where nothing is exported.
fn telemetry(status: &Status) -> String {
    let problem =
        status.telemetry.problem.iter().map(|problem| format!("telemetry   nothing is sent: {problem}\n"));
    let signals = status.telemetry.signals.iter();
    problem
        .chain(signals.map(|signal| format!("{:<12}{}\n", signal.name, signal_state(signal, status.now_us))))
        .collect()
}

/// What a signal is made of.
pub fn items(signal: &str) -> &'static str {
    if signal == Signal::Samples.name() { "five-minute steps" } else { "rounds" }
}

fn signal_state(signal: &SignalStatus, now_us: i64) -> String {
    let SignalStatus { endpoint, waiting, sent, rejected, expired, .. } = signal;
    let last = signal.last_sent_us.map_or(String::new(), |us| format!(", the last {}", time(us)));
    let items = items(&signal.name);
    let mut text = format!(
        "{endpoint}: {sent} {items} sent{last}; {waiting} waiting, {rejected} rejected, {expired} expired"
    );
    if let Some(why) = &signal.failing {
        let next =
            signal.next_try_us.map_or(String::new(), |us| format!("; next try {}", moment(us, now_us)));
        text += &format!("\n            does not answer: {why}{next}");
    }
    if let Some(why) = &signal.last_rejection {
        text += &format!("\n            rejected: {why}");
    }
    text
}

fn head(status: &Status) -> String {
    let state = match status.state {
        State::Measuring => "measuring".to_owned(),
        State::Waiting => "waiting for the next round".to_owned(),
        State::Paused { until_us: Some(until_us) } => {
            format!("paused until {}", moment(until_us, status.now_us))
        }
        State::Paused { until_us: None } => "paused until `longhaul resume`".to_owned(),
        State::SafeMode => "safe mode: makes no rounds until `longhaul resume`".to_owned(),
        State::Idle => "no target is configured: `longhaul init` helps".to_owned(),
        State::Stopping => "stopping".to_owned(),
    };
    format!(
        "longhauld {} (process {}) since {}: {state}",
        status.version,
        status.pid,
        time(status.started_us)
    )
}

fn targets(status: &Status) -> String {
    let mut table = table(&["target", "reached by", "state", "last round", "in 24 hours"]);
    for target in &status.targets {
        let role = match target.role {
            Role::Share => "",
            Role::Baseline => " (baseline)",
        };
        let (style, text) = target_state(target, status.now_us);
        table.add_row([
            format!("{}{role}", target.name),
            target.protocol.clone().unwrap_or_else(|| "not mounted".to_owned()),
            format!("{style}{text}{style:#}"),
            target.last_runs.map_or("–".to_owned(), |(runs, ok)| format!("{ok} of {runs} runs ok")),
            used(target),
        ]);
    }
    table.to_string()
}

/// What the light probes do: `asks smb; waits until nfs is used`.
fn probes(status: &Status) -> String {
    let of_target = |target: &TargetStatus| match &target.probe {
        ProbeState::Off => format!("{}: off", target.name),
        ProbeState::Asking => format!("{}: asks", target.name),
        ProbeState::Waiting => format!("{}: waits until it is used", target.name),
        ProbeState::Lame { reason } => format!("{}: {reason}", target.name),
    };
    status.targets.iter().map(of_target).collect::<Vec<_>>().join("; ")
}

fn used(target: &TargetStatus) -> String {
    let used = units::bytes(target.bytes_per_day as f64);
    match target.bytes_allowed {
        Some(allowed) => format!("{used} of {}", units::bytes(allowed as f64)),
        None => used,
    }
}

/// The colour and the words for what goes on with a target.
pub fn target_state(target: &TargetStatus, now_us: i64) -> (Style, String) {
    let colour = |colour: AnsiColor| colour.on_default();
    match &target.state {
        TargetState::Measuring { workload } => (colour(AnsiColor::Green), format!("measuring {workload}")),
        TargetState::Waiting { reason, until_us } => {
            let until = until_us.map_or(String::new(), |until_us| format!(", {}", moment(until_us, now_us)));
            (Style::new(), format!("waiting for {reason}{until}"))
        }
        TargetState::Hung { operation, since_us } => {
            let operation = operation.as_deref().unwrap_or("an operation");
            let text = format!("hung: `{operation}` has not returned since {}", time(*since_us));
            (colour(AnsiColor::Red), text)
        }
        TargetState::Unavailable { reason } => (colour(AnsiColor::Yellow), format!("unavailable: {reason}")),
        TargetState::Blocked { reason } => (colour(AnsiColor::Red), format!("blocked: {reason}")),
    }
}

fn last_round(last: &LastRound) -> String {
    let reason = last.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    format!("number {}, {}: {}{reason}", last.number, time(last.ended_us), last.status.name())
}

fn rounds(status: &Status) -> String {
    let rounds = &status.rounds;
    format!(
        "{} done of {} planned; {} void, {} cut short, {} skipped",
        rounds.ok,
        rounds.planned(),
        rounds.void,
        rounds.cut_short,
        rounds.skipped
    )
}

/// Local time, with the day if it is another.
pub fn time(us: i64) -> String {
    match Timestamp::from_microsecond(us) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "an unknown time".to_owned(),
    }
}

/// A moment to come, and how far away it is.
pub fn moment(us: i64, now_us: i64) -> String {
    let seconds = (us - now_us).max(0) / 1_000_000;
    let away = match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    };
    format!("{}, in {away}", time(us))
}
