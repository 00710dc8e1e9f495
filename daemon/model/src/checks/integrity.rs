//! Integrity of the data on a target: the amount that was verified, and what did not match.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::time::DAY;
use crate::{CacheState, Protocol, TargetName, Timestamp};

/// Group of ages of data, from its writing to its reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DataAge {
    /// Less than a day.
    Hours,
    /// From one day to less than a week.
    Days,
    /// From one week to less than 30 days.
    Weeks,
    /// 30 days and more.
    Months,
    /// The time of writing is not recorded.
    Unknown,
}

impl DataAge {
    /// Returns the group of data that was written at a time and read at another; `None`: not recorded.
    pub fn between(written: Option<Timestamp>, read: Timestamp) -> Self {
        let Some(written) = written else { return Self::Unknown };
        let age: Duration = read.since(written);
        match age {
            _ if age < DAY => Self::Hours,
            _ if age < 7 * DAY => Self::Days,
            _ if age < 30 * DAY => Self::Weeks,
            _ => Self::Months,
        }
    }
}

/// Data of one age that a phase read back and compared with what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedData {
    /// Age of the data.
    pub age: DataAge,
    /// Number of bytes that were compared.
    pub bytes: u64,
    /// Number of times that a file was compared up to its end.
    pub files: u64,
}

/// Pattern of a wrong range: the relation of its bytes to those that were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DamagePattern {
    /// All bytes are zero.
    Zeros,
    /// The bytes belong to another place in the same file.
    Shifted {
        /// Number of bytes from the place where they were found to the place where they belong.
        bytes: i64,
    },
    /// The bytes are those of an earlier version of the same file.
    OldVersion,
    /// The bytes are those of another file.
    OtherFile {
        /// Name of that file.
        name: String,
    },
    /// Few bits differ.
    BitFlips {
        /// Number of bits that differ.
        bits: u64,
    },
    /// The file ends where the range begins.
    Truncated,
    /// The file has bytes after its end.
    TooLong,
    /// The whole file is missing.
    Missing,
    /// The bytes have no known relation to those that were written.
    Unknown,
}

/// Result of reading a wrong range again, from the same target and past this machine's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MismatchReread {
    /// The same wrong bytes were read again.
    SameDamage,
    /// The right bytes were read.
    Correct,
    /// Other wrong bytes were read.
    OtherDamage,
    /// The range could not be read again.
    Failed,
}

/// Result of reading a wrong range again through another share that leads to the same folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OtherReread {
    /// Target through which the range was read.
    pub target: TargetName,
    /// Protocol of that target; `None` if it could not be determined.
    pub protocol: Option<String>,
    /// Content that was read, compared with what was written.
    pub result: MismatchReread,
}

/// A contiguous range of a file whose content differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Path of the file in the sandbox.
    pub file: String,
    /// Offset of the first wrong byte.
    pub offset: u64,
    /// Number of bytes from the first to the last wrong byte.
    pub length: u64,
    /// Pattern of the range.
    pub pattern: DamagePattern,
    /// Time at which it was found.
    pub found_us: Timestamp,
    /// Time at which the data was written; `None` if that is not recorded.
    pub written_us: Option<Timestamp>,
    /// Time of the last reading of the whole file that found it correct; `None` if there was none.
    pub last_good_us: Option<Timestamp>,
    /// Phase that read it; `None` if the totals of a folder or a preparation led to it.
    pub phase: Option<String>,
    /// Cache state of that phase.
    pub cache: Option<CacheState>,
    /// Result of reading the range again.
    pub reread: MismatchReread,
    /// Results of reading the range again through other shares that lead to the same folder.
    pub elsewhere: Vec<OtherReread>,
    /// Digest of all bytes that were found in the range.
    pub fingerprint: u64,
    /// Digest of all bytes that were written to the range; `None` if they are not known.
    pub expected_fingerprint: Option<u64>,
    /// Start of the bytes that were written; at most [`Mismatch::MAX_EVIDENCE_BYTES`].
    pub expected: Vec<u8>,
    /// Start of the bytes that were found; at most [`Mismatch::MAX_EVIDENCE_BYTES`].
    pub found: Vec<u8>,
}

impl Mismatch {
    /// Maximum number of bytes that are kept of what was written, and of what was found.
    pub const MAX_EVIDENCE_BYTES: usize = 4096;
    /// Kind of the event in the event log.
    pub const EVENT: &'static str = "mismatch";

    /// Returns the mismatch of a whole file that is missing.
    pub fn new(file: String, length: u64, found_us: Timestamp) -> Self {
        Self {
            file,
            offset: 0,
            length,
            pattern: DamagePattern::Missing,
            found_us,
            written_us: None,
            last_good_us: None,
            phase: None,
            cache: None,
            reread: MismatchReread::SameDamage,
            elsewhere: vec![],
            fingerprint: 0,
            expected_fingerprint: None,
            expected: vec![],
            found: vec![],
        }
    }
}

/// A mismatch in the database, without its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StoredMismatch {
    /// Number of the mismatch in this database, from 1.
    pub number: i64,
    /// Target on which it was found.
    pub target: TargetName,
    /// Protocol of the target at that time; `None` if it could not be determined.
    pub protocol: Option<String>,
    /// Number of the run that found it first.
    pub run: i64,
    /// Path of the file in the sandbox.
    pub file: String,
    /// Offset of the first wrong byte.
    pub offset: u64,
    /// Number of bytes from the first to the last wrong byte.
    pub length: u64,
    /// Pattern of the range.
    pub pattern: DamagePattern,
    /// Time at which it was found first, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub found_us: Timestamp,
    /// Time at which it was found last, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub last_found_us: Timestamp,
    /// Number of runs that found it.
    pub times_found: u64,
    /// Time at which the data was written, in microseconds since 1970 UTC; `None` if that is not recorded.
    #[schema(value_type = Option<i64>)]
    pub written_us: Option<Timestamp>,
    /// Time of the last reading that found the whole file correct, in microseconds since 1970 UTC; `None` if there was
    /// none.
    #[schema(value_type = Option<i64>)]
    pub last_good_us: Option<Timestamp>,
    /// Phase that read it; `None` if the totals of a folder led to it.
    pub phase: Option<String>,
    /// Cache state of that phase.
    pub cache: Option<CacheState>,
    /// Result of reading the range again.
    pub reread: MismatchReread,
    /// Results of reading the range again through other shares that lead to the same folder.
    pub elsewhere: Vec<OtherReread>,
}

impl StoredMismatch {
    /// Returns the mismatch of a file that was missing once; the rest is unknown.
    pub fn new(number: i64, target: TargetName, file: &str) -> Self {
        Self {
            number,
            target,
            protocol: None,
            run: 0,
            file: file.to_owned(),
            offset: 0,
            length: 0,
            pattern: DamagePattern::Missing,
            found_us: Timestamp::UNIX_EPOCH,
            last_found_us: Timestamp::UNIX_EPOCH,
            times_found: 1,
            written_us: None,
            last_good_us: None,
            phase: None,
            cache: None,
            reread: MismatchReread::SameDamage,
            elsewhere: vec![],
        }
    }
}

/// Sum of the verified data of one target, protocol and age.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedTotal {
    /// Target from which the data was read.
    pub target: TargetName,
    /// Protocol of the target; `None` if it could not be determined.
    pub protocol: Option<Protocol>,
    /// Age of the data.
    pub age: DataAge,
    /// Number of bytes that were compared.
    pub bytes: u64,
    /// Number of times that a file was compared up to its end.
    pub files: u64,
    /// Number of those bytes that are known to have come from the server or disk and not from a cache of this machine.
    pub wire_bytes: u64,
    /// Start of the first run that counted.
    pub first: Timestamp,
    /// Start of the last run that counted.
    pub last: Timestamp,
}

stored_names! { DataAge MismatchReread }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_grouped_by_days_weeks_and_months() {
        let written = Timestamp::UNIX_EPOCH;
        let of = |age: Duration| DataAge::between(Some(written), written + age);
        let second = Duration::from_secs(1);
        assert_eq!([of(second), of(DAY - second)], [DataAge::Hours; 2]);
        assert_eq!([of(DAY), of(7 * DAY - second)], [DataAge::Days; 2]);
        assert_eq!([of(7 * DAY), of(30 * DAY - second)], [DataAge::Weeks; 2]);
        assert_eq!(of(30 * DAY), DataAge::Months);
        assert_eq!(DataAge::between(None, written), DataAge::Unknown);
    }
}
