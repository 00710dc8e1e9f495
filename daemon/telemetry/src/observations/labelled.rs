//! Values with the labels of their series.

use crate::attributes::Labels;
use crate::values::Value;

/// Values of an instrument, each with the labels of its series.
pub type Observations = Vec<(Labels, Value)>;

/// Returns the labels with one more label.
pub fn with_label(labels: &Labels, key: &'static str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.insert(key.into(), value.to_owned());
    labels
}
