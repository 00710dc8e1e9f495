//! The status in words, the same in the terminal and on the page.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::status::{LastRound, ProbeState, State, Status, TargetState, TargetStatus};

/// What the service is doing.
pub fn state(status: &Status) -> String {
    match status.state {
        State::Measuring => "measuring".to_owned(),
        State::Waiting => "waiting for the next round".to_owned(),
        State::Paused { until_us: Some(until_us) } => {
            format!("paused until {}", moment(until_us, status.now_us))
        }
        State::Paused { until_us: None } => "paused until `longhaul resume`".to_owned(),
        State::SafeMode => "safe mode: makes no rounds until `longhaul resume`".to_owned(),
        State::Idle => "no target is configured: `longhaul init` helps".to_owned(),
        State::Stopping => "stopping".to_owned(),
    }
}

/// What goes on with a target.
pub fn target_state(target: &TargetStatus, now_us: i64) -> String {
    match &target.state {
        TargetState::Measuring { workload } => format!("measuring {workload}"),
        TargetState::Waiting { reason, until_us } => {
            let until = until_us.map_or(String::new(), |until_us| format!(", {}", moment(until_us, now_us)));
            format!("waiting for {reason}{until}")
        }
        TargetState::Hung { operation, since_us } => {
            let operation = operation.as_deref().unwrap_or("an operation");
            format!("hung: `{operation}` has not returned since {}", time(*since_us))
        }
        TargetState::Unavailable { reason } => format!("unavailable: {reason}"),
        TargetState::Blocked { reason } if reason.starts_with("blocked") => reason.clone(),
        TargetState::Blocked { reason } => format!("blocked: {reason}"),
    }
}

/// What a light probe does.
pub fn probe(probe: &ProbeState) -> String {
    match probe {
        ProbeState::Off => "off".to_owned(),
        ProbeState::Asking => "asks".to_owned(),
        ProbeState::Waiting => "waits until it is used".to_owned(),
        ProbeState::Lame { reason } => reason.clone(),
    }
}

/// The latest round: `number 12, 2026-11-12 09:31:05: ok`.
pub fn last_round(last: &LastRound) -> String {
    let reason = last.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    format!("number {}, {}: {}{reason}", last.number, time(last.ended_us), last.status.name())
}

/// How scheduled rounds ended, ever since.
pub fn rounds(status: &Status) -> String {
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

/// Local time, to the second.
pub fn time(us: i64) -> String {
    match Timestamp::from_microsecond(us) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "an unknown time".to_owned(),
    }
}

/// A moment to come, and how far away it is; one that has come is due.
pub fn moment(us: i64, now_us: i64) -> String {
    let away = match us.saturating_sub(now_us) / 1_000_000 {
        ..=0 => "due now".to_owned(),
        seconds @ 1..=119 => format!("in {seconds} s"),
        seconds @ 120..=7199 => format!("in {} min", seconds / 60),
        seconds => format!("in {} h", seconds / 3600),
    };
    format!("{}, {away}", time(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_800_000_000_000_000;

    #[test]
    fn a_moment_that_has_come_is_due_and_not_in_0_s() {
        for us in [NOW_US - 3_600_000_000, NOW_US - 1, NOW_US, NOW_US + 999_999] {
            assert_eq!(moment(us, NOW_US), format!("{}, due now", time(us)));
        }
    }

    #[test]
    fn a_moment_to_come_says_how_far_away_it_is() {
        for (seconds, away) in [(1, "1 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h")]
        {
            let us = NOW_US + seconds * 1_000_000;
            assert_eq!(moment(us, NOW_US), format!("{}, in {away}", time(us)));
        }
    }
}
