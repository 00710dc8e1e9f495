//! The status of the service as text: problems first.

use anstyle::{AnsiColor, Style};
use longhaul_measure::model::Role;
use longhaul_service::status::{Status, TargetState, TargetStatus};
use longhaul_service::words::{self, moment, time};
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
        let since = time(stall.started_us);
        out += &format!(
            "{red}stall{red:#} `{}` keeps a {} waiting since {since}\n",
            stall.target, stall.operation
        );
    }
    out += &format!("{}\n\n{}\n\n", head(status), targets(status));
    if let Some(last) = &status.last {
        out += &format!("last round  {}\n", words::last_round(last));
    }
    out += &format!(
        "next round  {}\n",
        status.next_us.map_or("none is planned".to_owned(), |us| moment(us, status.now_us))
    );
    out += &format!("rounds      {}\n", words::rounds(status));
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
    let state = words::state(status);
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

/// What the light probes do: `smb: asks; nfs: waits until it is used`.
fn probes(status: &Status) -> String {
    let of_target = |target: &TargetStatus| format!("{}: {}", target.name, words::probe(&target.probe));
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
    let style = match &target.state {
        TargetState::Measuring { .. } => AnsiColor::Green.on_default(),
        TargetState::Waiting { .. } => Style::new(),
        TargetState::Unavailable { .. } => AnsiColor::Yellow.on_default(),
        TargetState::Hung { .. } | TargetState::Blocked { .. } => AnsiColor::Red.on_default(),
    };
    (style, words::target_state(target, now_us))
}

#[cfg(test)]
mod tests {
    use longhaul_measure::model::Stall;

    use super::super::top::tests::status as example;
    use super::*;

    #[test]
    fn no_time_that_has_passed_is_said_to_come() {
        let mut status = example();
        let past_us = status.now_us - 7_000_000;
        let signal = SignalStatus {
            name: "traces".to_owned(),
            endpoint: "http://collector".to_owned(),
            waiting: 1,
            sent: 0,
            rejected: 0,
            expired: 0,
            last_sent_us: None,
            last_rejection: None,
            failing: Some("no answer".to_owned()),
            next_try_us: Some(past_us),
        };
        let stall = Stall {
            target: "smb".parse().unwrap(),
            opened_us: past_us,
            started_us: past_us,
            ended_us: None,
            is_cut: false,
            operation: "read".to_owned(),
            calls: 1,
            longest_ns: 0,
            errors: Default::default(),
            who: vec![],
            beside: None,
        };
        (status.telemetry.signals, status.stalls, status.next_us) =
            (vec![signal], vec![stall], Some(past_us));
        let text = super::status(&status);
        assert!(!text.contains(", in "), "{text}");
        for part in [
            format!("keeps a read waiting since {}\n", time(past_us)),
            format!("next try {}, due now", time(past_us)),
            format!("next round  {}, due now", time(past_us)),
        ] {
            assert!(text.contains(&part), "`{part}` is not in: {text}");
        }
    }
}
