//! Agreement of a replay with its recording. It stands beside all figures of the replay.

use longhaul_analysis::summary::ReplayFidelity;
use longhaul_model::{Run, YOUR_DAY};

use crate::units;

/// Returns how long the recorded work took, and its replays on the same protocol.
pub fn fidelity(fidelity: &ReplayFidelity) -> String {
    let Some(recorded) = fidelity.recorded_seconds.map(units::seconds) else {
        let on = fidelity.recorded_on.as_ref().map_or(String::new(), |protocol| format!(" on {protocol}"));
        return format!("Your day: recorded{on}; how long it took there is not known.");
    };
    match (&fidelity.recorded_on, fidelity.replayed_seconds) {
        (None, _) => format!("Your day: recorded: {recorded}; on which protocol is not known."),
        (Some(protocol), None) => {
            format!("Your day: recorded on {protocol}: {recorded}; not replayed on {protocol} yet.")
        }
        (Some(protocol), Some(replayed)) => format!(
            "Your day: recorded on {protocol}: {recorded}; replayed on {protocol} with cold caches: {} ({}).",
            units::seconds(replayed),
            sample(fidelity.replays)
        ),
    }
}

fn sample(replays: usize) -> String {
    if replays == 1 { "one replay".to_owned() } else { format!("median of {replays} replays") }
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
        let known = ReplayFidelity {
            recorded_on: Some("NFS 4.2".to_owned()),
            recorded_seconds: Some(41.0),
            replayed_seconds: Some(43.0),
            replays: 3,
        };
        assert_eq!(
            fidelity(&known),
            "Your day: recorded on NFS 4.2: 41.0 s; replayed on NFS 4.2 with cold caches: 43.0 s (median of 3 replays)."
        );
        assert!(fidelity(&ReplayFidelity { replays: 1, ..known.clone() }).ends_with("43.0 s (one replay)."));
        let elsewhere = ReplayFidelity { replayed_seconds: None, replays: 0, ..known.clone() };
        assert!(fidelity(&elsewhere).ends_with("41.0 s; not replayed on NFS 4.2 yet."));
        let imported = ReplayFidelity { recorded_on: None, recorded_seconds: None, ..known };
        assert_eq!(fidelity(&imported), "Your day: recorded; how long it took there is not known.");
    }
}
