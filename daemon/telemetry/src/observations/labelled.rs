//! Values with the labels of their series.

use longhaul_model::TargetName;

use crate::attributes::Labels;
use crate::values::Value;

/// Values of an instrument, each with the labels of its series.
pub type Observations = Vec<(Labels, Value)>;

/// Adds up the values that have the same labels.
pub fn merged(values: impl Iterator<Item = (Labels, Value)>) -> Observations {
    let mut found = Observations::new();
    for (labels, value) in values {
        match found.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, sum)) => sum.add(&value),
            None => found.push((labels, value)),
        }
    }
    found
}

/// Returns the label of a target.
pub fn target_labels(target: &TargetName) -> Labels {
    [("longhaul.target".into(), target.to_string())].into()
}

/// Returns the labels with one more label.
pub fn with_label(labels: &Labels, key: &'static str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.insert(key.into(), value.to_owned());
    labels
}
