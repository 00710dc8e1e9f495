//! Metric values of the service's current state.

use super::labelled::{Observations, target_labels};
use crate::attributes::Labels;
use crate::current_state::{CurrentState, CurrentTarget};
use crate::values::Value;

/// Returns a number for each target for which `value` is known.
pub fn per_target(now: &CurrentState, value: fn(&CurrentTarget) -> Option<f64>) -> Observations {
    let targets = now.targets.iter();
    targets.filter_map(|target| Some((target_labels(&target.name), Value::Number(value(target)?)))).collect()
}

/// Returns the number of scheduled rounds by status.
pub fn scheduled_rounds(now: &CurrentState) -> Observations {
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

/// Returns the number of outbox items by signal and delivery status.
pub fn outbox_items(now: &CurrentState) -> Observations {
    let of_signal = |signal: &longhaul_model::status::SignalStatus| {
        let counts = [
            ("pending", signal.pending),
            ("sent", signal.sent),
            ("rejected", signal.rejected),
            ("expired", signal.expired),
        ];
        let labels = |status: &str| -> Labels {
            [("longhaul.signal", signal.name.as_str()), ("longhaul.delivery.status", status)]
                .map(|(key, value)| (key.into(), value.to_owned()))
                .into()
        };
        counts.map(|(status, count)| (labels(status), Value::Number(count as f64)))
    };
    now.signals.iter().flat_map(of_signal).collect()
}
