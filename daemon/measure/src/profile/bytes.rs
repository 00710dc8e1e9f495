//! Numbers of bytes, as people write them.

use serde::{Deserialize, Serialize};

/// A number of bytes; in a profile `16384`, `"16 KiB"` or `"4 GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "u64")]
pub struct Bytes(pub u64);

/// The most that a profile may ask of one file: 16 TiB.
const MOST: u64 = 1 << 44;

const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("KB", 1000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

impl From<Bytes> for u64 {
    fn from(bytes: Bytes) -> Self {
        bytes.0
    }
}

impl std::str::FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no number of bytes: write it as \"16 KiB\", \"4 GB\" or 16384");
        let (number, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
        let (_, each) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.trim_end().parse().map_err(|_| wrong())?;
        number.checked_mul(*each).filter(|bytes| *bytes <= MOST).map(Self).ok_or_else(wrong)
    }
}

/// What stands in a profile.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes: write it as \"16 KiB\", \"4 GB\" or 16384")]
enum Written {
    Number(u64),
    Text(String),
}

impl TryFrom<Written> for Bytes {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(bytes) if bytes <= MOST => Ok(Self(bytes)),
            Written::Number(bytes) => Err(format!("{bytes} bytes are too many for one file")),
            Written::Text(text) => text.parse(),
        }
    }
}
