//! The status of the service and of its targets.

use jiff::tz::TimeZone;
use longhaul_model::status::{
    ChannelStatus, FailedTask, FleetExportStatus, HeartbeatStatus, LastRound, ProbeState, SignalStatus,
    State, Status, TargetState, TargetStatus,
};
use longhaul_model::{Role, Timestamp};

use crate::document::{Document, Fact};
use crate::screens::{or_no_value, words};
use crate::table::Table;
use crate::text::{Text, Tone};
use crate::{time, units};

/// Returns the whole status, problems first. Times are local times of `zone`, also in the other functions.
pub fn status(status: &Status, zone: &TimeZone) -> Document {
    let mut document = Document::new();
    let since = time::timestamp(status.started_us, zone);
    document
        .list(all_problems(status, zone))
        .paragraph(format!(
            "longhauld {} (process {}) since {since}: {}",
            status.version,
            status.pid,
            state(status, zone)
        ))
        .table(targets(status, zone))
        .facts(facts(status, zone));
    document
}

/// Returns all that is wrong now, one sentence each: ongoing stalls, problems of the service, and of targets.
pub fn all_problems(status: &Status, zone: &TimeZone) -> Vec<Text> {
    problems(status, zone).into_iter().chain(target_problems(status, zone)).collect()
}

/// Returns the ongoing stalls and the problems of the service, one sentence each.
pub fn problems(status: &Status, zone: &TimeZone) -> Vec<Text> {
    let ongoing = status.stalls.iter().filter(|stall| stall.ended_us.is_none());
    let stall = ongoing.map(|stall| {
        let since = time::timestamp(stall.started_us, zone);
        let text = bad("Stall: ").code(stall.target.as_str());
        text.plain(format!(": {} has not returned since {since}.", stall.operation))
    });
    let problem = status.problems.iter().map(|problem| {
        let since = time::timestamp(problem.since_us, zone);
        bad(&problem.code).plain(format!(" since {since}: {}", problem.text))
    });
    stall.chain(problem).collect()
}

/// Returns the targets that cannot be measured, and the tasks that failed on the others, one sentence each.
pub fn target_problems(status: &Status, zone: &TimeZone) -> Vec<Text> {
    let unusable = status.targets.iter().filter(|target| match target.state {
        TargetState::Measuring { .. } | TargetState::Waiting { .. } => false,
        TargetState::Hung { .. } | TargetState::Unavailable { .. } | TargetState::Blocked { .. } => true,
    });
    let text = |target: &TargetStatus| {
        bad(target.name.as_str()).plain(format!(": {}.", target_state(target, status.now_us, zone).content()))
    };
    let failed = status.targets.iter().flat_map(|target| {
        target.failed_tasks.iter().map(|failed| {
            let FailedTask { task, reason } = failed;
            bad(target.name.as_str()).plain(format!(": {task} failed in its last round: {reason}."))
        })
    });
    unusable.map(text).chain(failed).collect()
}

fn bad(text: &str) -> Text {
    Text::new().toned(text, Tone::Bad)
}

/// Describes the state of the service.
pub fn state(status: &Status, zone: &TimeZone) -> String {
    match status.state {
        State::Measuring if status.is_paused => "measuring; paused after this round".to_owned(),
        State::Measuring => "measuring".to_owned(),
        State::Waiting => "waiting for the next round".to_owned(),
        State::Paused { until_us: Some(until_us) } => {
            format!("paused until {}", time::until(until_us, status.now_us, zone))
        }
        State::Paused { until_us: None } => "paused until `longhaul resume`".to_owned(),
        State::SafeMode => "safe mode: no rounds until `longhaul resume`".to_owned(),
        State::Idle => "no target is configured: run `longhaul init`".to_owned(),
        State::Stopping => "stopping".to_owned(),
    }
}

/// Returns the table of the targets.
pub fn targets(status: &Status, zone: &TimeZone) -> Table {
    let mut table = Table::new("Targets").words([
        "target",
        "protocol",
        "state",
        "last round",
        "read and written in 24 h",
    ]);
    for target in &status.targets {
        let role = match target.role {
            Role::Share => "",
            Role::Baseline => " (baseline)",
        };
        table.row([
            Text::from(&target.name).plain(role),
            target_protocol(target).into(),
            short_state(target, status.now_us, zone),
            or_no_value(last_runs(target)).into(),
            budget(target).into(),
        ]);
    }
    table
}

/// Returns the protocol of a target.
pub fn target_protocol(target: &TargetStatus) -> &str {
    target.protocol.as_deref().unwrap_or("not mounted")
}

/// Describes the state of a target.
pub fn target_state(target: &TargetStatus, now: Timestamp, zone: &TimeZone) -> Text {
    match &target.state {
        TargetState::Measuring { workload } => Text::new().toned(format!("measuring {workload}"), Tone::Good),
        TargetState::Waiting { reason, until_us } => {
            let until = until_us.map_or(String::new(), |at| format!(", {}", time::until(at, now, zone)));
            format!("waiting for {reason}{until}").into()
        }
        TargetState::Hung { operation, since_us } => {
            let operation = operation.as_deref().unwrap_or("an operation");
            let since = time::timestamp(*since_us, zone);
            bad(&format!("hung: `{operation}` has not returned since {since}"))
        }
        TargetState::Unavailable { reason, is_now } => {
            Text::new().toned(format!("{}: {reason}", unavailable(*is_now)), Tone::Warning)
        }
        TargetState::Blocked { reason } if reason.starts_with("blocked") => bad(reason),
        TargetState::Blocked { reason } => bad(&format!("blocked in its last round: {reason}")),
    }
}

const fn unavailable(is_now: bool) -> &'static str {
    if is_now { "unavailable now" } else { "failed in its last round" }
}

/// Describes the state of a target without its reason, which stands among the problems.
fn short_state(target: &TargetStatus, now: Timestamp, zone: &TimeZone) -> Text {
    match &target.state {
        TargetState::Measuring { .. } | TargetState::Waiting { .. } => target_state(target, now, zone),
        TargetState::Hung { .. } => bad("hung"),
        TargetState::Unavailable { is_now, .. } => Text::new().toned(unavailable(*is_now), Tone::Warning),
        TargetState::Blocked { .. } => bad("blocked in its last round"),
    }
}

/// Describes the runs of a target's last round; `None` if there was no round.
pub fn last_runs(target: &TargetStatus) -> Option<String> {
    target.last_runs.map(|(runs, ok)| match runs {
        0 => "no result".to_owned(),
        _ => format!("{ok} of {runs} runs ok"),
    })
}

/// Describes how much was read and written on a target in 24 hours, and its limit.
pub fn budget(target: &TargetStatus) -> String {
    let used = units::bytes(target.bytes_last_24h as f64);
    match target.bytes_limit {
        Some(allowed) => format!("{used} of {}", units::bytes(allowed as f64)),
        None => used,
    }
}

/// Describes the state of a latency probe.
pub fn probe(probe: &ProbeState) -> &str {
    match probe {
        ProbeState::Off => "off",
        ProbeState::Active => "active",
        ProbeState::Waiting => "waiting until the share is used",
        ProbeState::Failed { reason } => reason,
    }
}

/// Returns the start of the next round: during a pause no round starts, although its time is known. `None`: none is planned.
pub fn next_round(status: &Status, zone: &TimeZone) -> Option<String> {
    let next = status.next_round_us?;
    let at = |at| time::until(at, status.now_us, zone);
    Some(match status.state {
        State::Paused { until_us: Some(until) } if next < until => format!("after the pause, {}", at(until)),
        State::Paused { until_us: None } | State::SafeMode => "after `longhaul resume`".to_owned(),
        State::Measuring if status.is_paused => "after the pause".to_owned(),
        _ => at(next),
    })
}

/// Returns the state of the service with its next and last round.
pub fn in_short(status: &Status, zone: &TimeZone) -> Vec<Fact> {
    let next = next_round(status, zone).map(|next| format!("a round {next}"));
    let last = status.last_round.as_ref().map(|last| last_round(last, zone));
    let mut facts = vec![Fact::new("Service", state(status, zone))];
    facts.extend(next.map(|next| Fact::new("Next", next)));
    facts.extend(last.map(|last| Fact::new("Last", last)));
    facts
}

fn facts(status: &Status, zone: &TimeZone) -> Vec<Fact> {
    let next = next_round(status, zone);
    let size = status.database.bytes.map_or("unknown size".to_owned(), |bytes| units::bytes(bytes as f64));
    let database = format!("{} ({size})", status.database.path.display());
    let problem = status.telemetry.problem.as_ref();
    let signal = |signal: &SignalStatus| Fact::new(&signal.name, signal_text(signal, status.now_us, zone));
    let probe = |target: &TargetStatus| format!("{}: {}", target.name, probe(&target.probe));
    let probes: Vec<String> = status.targets.iter().map(probe).collect();
    let mut facts = vec![];
    facts.extend(status.last_round.as_ref().map(|last| Fact::new("last round", last_round(last, zone))));
    facts.push(Fact::new("next round", next.unwrap_or_else(|| "none planned".to_owned())));
    facts.push(Fact::new("rounds", rounds(status)));
    facts.push(Fact::new("database", database));
    facts.extend(problem.map(|problem| Fact::new("telemetry", format!("nothing is sent: {problem}"))));
    facts.extend(status.telemetry.signals.iter().map(signal));
    let channel = |channel: &ChannelStatus| {
        Fact::new(format!("notify {}", channel.name), channel_text(channel, status.now_us, zone))
    };
    facts.extend(status.notify.channels.iter().map(channel));
    let heartbeat = status.notify.heartbeat.as_ref();
    facts.extend(heartbeat.map(|heartbeat| Fact::new("heartbeat", heartbeat_text(heartbeat, zone))));
    let fleet_export = status.fleet_export.as_ref();
    facts.extend(
        fleet_export.map(|export| Fact::new("export", fleet_export_text(export, status.now_us, zone))),
    );
    if !probes.is_empty() {
        facts.push(Fact::new("probe", probes.join("; ")));
    }
    facts.extend(status.design.as_ref().map(|design| Fact::new("design", design.as_str())));
    facts
}

/// Describes the last round, such as `number 12, 2026-11-12 09:31:05: ok`.
pub fn last_round(last: &LastRound, zone: &TimeZone) -> String {
    let reason =
        last.reason.as_ref().map_or(String::new(), |reason| format!(" ({})", words::round_reason(reason)));
    let ended = time::timestamp(last.ended_us, zone);
    format!("number {}, {ended}: {}{reason}", last.number, last.status.name().replace('-', " "))
}

/// Describes the outcomes of all scheduled rounds since the database was created.
pub fn rounds(status: &Status) -> String {
    let rounds = &status.rounds;
    format!(
        "{} of {} done; {} void, {} cut short, {} skipped; rounds that you started are not counted",
        rounds.ok,
        units::count(rounds.planned(), "scheduled round"),
        rounds.void,
        rounds.cut_short,
        rounds.skipped
    )
}

/// Returns the unit in which the items of a signal of the telemetry export are counted.
pub fn item_unit(signal: &str) -> &'static str {
    if signal == "samples" { "five-minute steps" } else { "rounds" }
}

fn signal_text(signal: &SignalStatus, now: Timestamp, zone: &TimeZone) -> String {
    let SignalStatus { endpoint, pending, sent, rejected, expired, .. } = signal;
    let last =
        signal.last_sent_us.map_or(String::new(), |at| format!(", the last {}", time::timestamp(at, zone)));
    let items = item_unit(&signal.name);
    let mut text = format!(
        "{endpoint}: {sent} {items} sent{last}; {pending} pending, {rejected} rejected, {expired} expired"
    );
    if let Some(why) = &signal.last_failure {
        let next = signal
            .next_try_us
            .map_or(String::new(), |at| format!("; next try {}", time::until(at, now, zone)));
        text += &format!("; unreachable: {why}{next}");
    }
    if let Some(why) = &signal.last_rejection {
        text += &format!("; rejected: {why}");
    }
    text
}

/// Describes a channel of notifications, such as `ntfy, https://ntfy.sh: 3 sent, the last 2026-11-25 12:00:00; 0 pending`.
fn channel_text(channel: &ChannelStatus, now: Timestamp, zone: &TimeZone) -> String {
    let ChannelStatus { kind, sent, pending, .. } = channel;
    let receiver = channel.receiver.as_ref().map_or(String::new(), |receiver| format!(", {receiver}"));
    let last = channel.last_sent_us.map(|at| format!(", the last {}", time::timestamp(at, zone)));
    let mut text = format!("{kind}{receiver}: {sent} sent{}; {pending} pending", last.unwrap_or_default());
    let counts = [
        (channel.unanswered, "without an answer"),
        (channel.rejected, "refused"),
        (channel.expired, "expired"),
    ];
    for (count, word) in counts.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {word}");
    }
    text += &channel.last_failure.as_ref().map_or(String::new(), |why| format!("; failed: {why}"));
    let next = channel.next_try_us.map(|at| format!("; next try {}", time::until(at, now, zone)));
    text + &next.unwrap_or_default()
}

fn heartbeat_text(heartbeat: &HeartbeatStatus, zone: &TimeZone) -> String {
    let receiver = heartbeat.receiver.as_deref().unwrap_or("address not known");
    let last = heartbeat.last_sent_us.map_or_else(
        || "none accepted yet".to_owned(),
        |at| format!("the last accepted {}", time::timestamp(at, zone)),
    );
    let failure = heartbeat.last_failure.as_ref().map_or(String::new(), |why| format!("; failed: {why}"));
    format!("{receiver}: {last}{failure}")
}

/// Describes the exports into a collection, such as `/Volumes/fleet: the last 2026-11-25 12:00:00; next try in 3 h`.
fn fleet_export_text(export: &FleetExportStatus, now: Timestamp, zone: &TimeZone) -> String {
    let FleetExportStatus { to, last_export_us, last_failure, next_try_us } = export;
    let last = last_export_us.map_or_else(
        || "none since the service started".to_owned(),
        |at| format!("the last {}", time::timestamp(at, zone)),
    );
    let failure = last_failure.as_ref().map_or(String::new(), |why| format!("; failed: {why}"));
    let next = next_try_us.map_or(String::new(), |at| format!("; next try {}", time::until(at, now, zone)));
    format!("{to}: {last}{failure}{next}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longhaul_model::Stall;
    use longhaul_model::status::{DatabaseStatus, ExportStatus};

    use super::*;
    use crate::render::terminal::render;

    const NOW: Timestamp = Timestamp::from_us(60_000_000);

    fn example() -> Status {
        let database = DatabaseStatus { path: "/d".into(), bytes: None };
        Status {
            version: "1.2.3".into(),
            pid: 7,
            started_us: Timestamp::UNIX_EPOCH,
            slices: 4,
            ..Status::new(database, NOW)
        }
    }

    fn stall(started: Timestamp) -> Stall {
        Stall { calls: 1, ..Stall::new("smb".parse().unwrap(), started, "read") }
    }

    #[test]
    fn no_round_is_announced_during_a_pause() {
        let next = |state| {
            let status = Status { state, next_round_us: Some(NOW + Duration::from_secs(40)), ..example() };
            next_round(&status, &TimeZone::UTC).unwrap()
        };
        let until = NOW + Duration::from_secs(3600);
        assert_eq!(
            next(State::Paused { until_us: Some(until) }),
            "after the pause, 1970-01-01 01:01:00, in 1 h"
        );
        assert_eq!(next(State::Paused { until_us: None }), "after `longhaul resume`");
        assert_eq!(next(State::Waiting), "1970-01-01 00:01:40, in 40 s");
    }

    #[test]
    fn pause_is_shown_during_a_round_that_the_user_started() {
        let soon = Some(NOW + Duration::from_secs(40));
        let of = |is_paused| Status { state: State::Measuring, is_paused, next_round_us: soon, ..example() };
        let shown = |status: &Status| (state(status, &TimeZone::UTC), next_round(status, &TimeZone::UTC));
        let expected = ("measuring; paused after this round".to_owned(), Some("after the pause".to_owned()));
        assert_eq!(shown(&of(true)), expected);
        assert_eq!(shown(&of(false)).0, "measuring");
    }

    #[test]
    fn times_in_the_past_are_not_shown_as_future() {
        let past = NOW - Duration::from_secs(7);
        let signal = SignalStatus {
            name: "traces".to_owned(),
            last_failure: Some("no answer".to_owned()),
            next_try_us: Some(past),
            ..SignalStatus::default()
        };
        let status = Status {
            stalls: vec![stall(past)],
            next_round_us: Some(past),
            telemetry: ExportStatus { signals: vec![signal], problem: None },
            ..example()
        };
        let text = render(&super::status(&status, &TimeZone::UTC));
        assert!(!text.contains(", in "), "{text}");
        for part in [
            "`smb`: read has not returned since 1970-01-01 00:00:53.",
            "next try 1970-01-01 00:00:53, due now",
            "next round  1970-01-01 00:00:53, due now\n",
        ] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }
}
