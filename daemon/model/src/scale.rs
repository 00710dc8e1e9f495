//! Scale of a measurement.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;

/// Scale of a measurement: the size of the corpus and the length of a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray,
)]
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
