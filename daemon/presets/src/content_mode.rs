//! The content that a preset writes.

use serde::{Deserialize, Serialize};

/// The name suffix of a preset variant that writes the same content as the original tool.
pub const AS_ORIGINAL_SUFFIX: &str = "-as-original";

/// The content that a preset writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentMode {
    /// Content that cannot be compressed.
    Incompressible,
    /// Zeros, as the original tool writes.
    AsOriginal,
}

impl ContentMode {
    /// Returns the suffix that this mode adds to a preset's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Incompressible => "",
            Self::AsOriginal => AS_ORIGINAL_SUFFIX,
        }
    }
}
