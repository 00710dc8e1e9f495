//! Scale of a measurement.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;

/// Scale of a measurement: the size of the corpus and the length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Scale {
    /// Scale for a first impression: takes minutes in total.
    Quick,
    /// Scale with the parameters of the reference workloads.
    Standard,
    /// Scale for large collections: 100,000 files.
    Large,
}

stored_names! { Scale }

impl Scale {
    /// Returns the scale that occurs most often; of two that occur as often, the one that occurs last.
    pub fn most_frequent(scales: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let count = |scale: Self| scales.clone().filter(|other| *other == scale).count();
        let last = |scale: Self| scales.clone().enumerate().filter(|(_, other)| *other == scale).last();
        let found = Self::ALL.into_iter().filter(|scale| count(*scale) > 0);
        found.max_by_key(|scale| (count(*scale), last(*scale).map(|(place, _)| place)))
    }
}
