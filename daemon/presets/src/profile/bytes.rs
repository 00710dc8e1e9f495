//! Sizes in bytes, with their notation in profiles.

use serde::{Deserialize, Serialize};

/// A size in bytes, written in a profile as `16384`, `"16 KiB"` or `"4 GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "BytesLiteral", into = "u64")]
pub struct ByteSize(pub u64);

/// The maximum size of one file in a profile, in bytes: 16 TiB.
const MAX_BYTES: u64 = 1 << 44;

const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("KB", 1000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

impl ByteSize {
    /// Returns the size of a call if a profile gives none: 1 MiB.
    pub(super) const fn default_block() -> Self {
        Self(1 << 20)
    }
}

impl From<ByteSize> for u64 {
    fn from(bytes: ByteSize) -> Self {
        bytes.0
    }
}

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("`{text}` is not a size: write it as \"16 KiB\", \"4 GB\" or 16384");
        let (number, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
        let (_, each) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        let number: u64 = number.trim_end().parse().map_err(|_| invalid())?;
        number.checked_mul(*each).filter(|bytes| *bytes <= MAX_BYTES).map(Self).ok_or_else(invalid)
    }
}

/// A size as it is written in a profile: a number, or text with a unit.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a size: write it as \"16 KiB\", \"4 GB\" or 16384")]
enum BytesLiteral {
    Number(u64),
    Text(String),
}

impl TryFrom<BytesLiteral> for ByteSize {
    type Error = String;

    fn try_from(written: BytesLiteral) -> Result<Self, String> {
        match written {
            BytesLiteral::Number(bytes) if bytes <= MAX_BYTES => Ok(Self(bytes)),
            BytesLiteral::Number(bytes) => {
                Err(format!("{bytes} bytes are too many for one file: the maximum is 16 TiB"))
            }
            BytesLiteral::Text(text) => text.parse(),
        }
    }
}
