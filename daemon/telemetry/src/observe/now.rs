//! What is so just now.

use super::Observed;
use crate::attributes::Labels;
use crate::now::{Now, TargetNow};
use crate::values::Value;

/// A number of each target, where it is known.
pub fn of_targets(now: &Now, value: fn(&TargetNow) -> Option<f64>) -> Observed {
    let labels = |target: &TargetNow| [("longhaul.target".into(), target.name.to_string())].into();
    let targets = now.targets.iter();
    targets.filter_map(|target| Some((labels(target), Value::Number(value(target)?)))).collect()
}

/// Rounds by how they ended.
pub fn schedule(now: &Now) -> Observed {
    let Some(rounds) = now.rounds else { return vec![] };
    let counts = [
        ("ok", rounds.ok),
        ("void", rounds.void),
        ("cut-short", rounds.cut_short),
        ("skipped", rounds.skipped),
    ];
    let labels = |status: &str| [("longhaul.round.status".into(), status.to_owned())].into();
    counts.into_iter().map(|(status, count)| (labels(status), Value::Number(count as f64))).collect()
}

/// Items by what became of them.
pub fn outboxes(now: &Now) -> Observed {
    let of_signal = |signal: &crate::status::SignalStatus| {
        let fates = [
            ("waiting", signal.waiting),
            ("sent", signal.sent),
            ("rejected", signal.rejected),
            ("expired", signal.expired),
        ];
        let labels = |fate: &str| -> Labels {
            [("longhaul.signal", signal.name.as_str()), ("longhaul.fate", fate)]
                .map(|(key, value)| (key.into(), value.to_owned()))
                .into()
        };
        fates.map(|(fate, count)| (labels(fate), Value::Number(count as f64)))
    };
    now.signals.iter().flat_map(of_signal).collect()
}
