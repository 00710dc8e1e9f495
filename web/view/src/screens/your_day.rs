//! Agreement of a replay with its recording. It stands beside all figures of the replay.

use longhaul_analysis::summary::{ReplayFidelity, TargetReplays};
use longhaul_model::{Run, YOUR_DAY};

use crate::units;

/// Returns how long the recorded work took, and its replays on the targets with the same protocol.
pub fn fidelity(fidelity: &ReplayFidelity) -> String {
    let Some(recorded) = fidelity.recorded_seconds.map(units::seconds) else {
        let on = fidelity.recorded_on.as_ref().map_or(String::new(), |protocol| format!(" on {protocol}"));
        return format!("Your day: recorded{on}; how long it took there is not known.");
    };
    match (&fidelity.recorded_on, fidelity.replays.as_slice()) {
        (None, _) => format!("Your day: recorded: {recorded}; on which protocol is not known."),
        (Some(protocol), []) => {
            format!("Your day: recorded on {protocol}: {recorded}; not replayed on {protocol} yet.")
        }
        (Some(protocol), replays) => format!(
            "Your day: recorded on {protocol}: {recorded}; replayed on {protocol} with cold caches: {}.",
            replays.iter().map(replayed).collect::<Vec<_>>().join(", ")
        ),
    }
}

fn replayed(on: &TargetReplays) -> String {
    let TargetReplays { target, count, .. } = on;
    let sample = if *count == 1 { "one replay".to_owned() } else { format!("median of {count} replays") };
    format!("{} on {target} ({sample})", units::seconds(on.seconds))
}

/// Returns how long the work took that a run replays, and where; `None` for a run of another task.
pub fn recorded(run: &Run) -> Option<String> {
    if run.workload != YOUR_DAY.name() {
        return None;
    }
    let seconds = run.facts.get("recorded-total").and_then(|seconds| seconds.parse().ok());
    let on = run.facts.get("recorded-on").map_or(String::new(), |protocol| format!(" on {protocol}"));
    Some(match seconds {
        Some(seconds) => format!("Recorded{on}: {}.", units::seconds(seconds)),
        None => format!("Recorded{on}; how long it took there is not known."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fidelity_is_said_even_where_it_is_not_known() {
        let replays =
            |target: &str, seconds, count| TargetReplays { target: target.parse().unwrap(), seconds, count };
        let known = ReplayFidelity {
            recorded_on: Some("NFS 4.2".to_owned()),
            recorded_seconds: Some(41.0),
            replays: vec![replays("nas", 43.0, 3), replays("attic", 44.0, 1)],
        };
        assert_eq!(
            fidelity(&known),
            "Your day: recorded on NFS 4.2: 41.0 s; replayed on NFS 4.2 with cold caches: 43.0 s on nas (median of 3 replays), \
             44.0 s on attic (one replay)."
        );
        let elsewhere = ReplayFidelity { replays: vec![], ..known.clone() };
        assert!(fidelity(&elsewhere).ends_with("41.0 s; not replayed on NFS 4.2 yet."));
        let imported = ReplayFidelity { recorded_on: None, recorded_seconds: None, ..known };
        assert_eq!(fidelity(&imported), "Your day: recorded; how long it took there is not known.");
    }
}
