//! Usage: the requests that programs other than longhaul caused on a target, by kind, from the client's counters.

pub mod profile;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::step::sum_known;
use crate::{CounterSource, TargetName, Timestamp};

/// Kind of request from a client to a file server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RequestKind {
    /// Reads one batch of a folder's names.
    List,
    /// Opens a file. Over SMB 2 and 3 also what looks up a name, creates or removes something, because they open it.
    Open,
    /// Reads from a file.
    Read,
    /// Writes to a file.
    Write,
    /// Creates, renames, removes or changes attributes.
    Change,
    /// Reads attributes, or looks up a name.
    Attributes,
}

/// Number of kinds of request.
const KINDS: usize = RequestKind::ALL.len();

/// Number of requests by kind. A kind that the source does not count is unknown, which is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestCounts([Option<u64>; KINDS]);

impl RequestCounts {
    /// Returns the count of a kind; `None` if it is not known.
    pub fn get(&self, kind: RequestKind) -> Option<u64> {
        self.0[kind as usize]
    }

    /// Returns these counts with the count of one kind replaced.
    #[must_use]
    pub fn with(mut self, kind: RequestKind, count: Option<u64>) -> Self {
        self.0[kind as usize] = count;
        self
    }

    /// Adds requests to the count of a kind. A kind that was unknown is known afterwards.
    pub fn add(&mut self, kind: RequestKind, requests: u64) {
        let count = self.0[kind as usize].get_or_insert(0);
        *count = count.saturating_add(requests);
    }

    /// Adds all known counts of another part.
    pub fn merge(&mut self, other: &Self) {
        for kind in RequestKind::ALL {
            if let Some(requests) = other.get(kind) {
                self.add(kind, requests);
            }
        }
    }

    /// Combines the counts that both know, kind by kind; the others are unknown. `None` if `combine` returns `None`.
    pub fn combine(&self, other: &Self, combine: impl Fn(u64, u64) -> Option<u64>) -> Option<Self> {
        let mut combined = Self::default();
        for (kind, result) in combined.0.iter_mut().enumerate() {
            if let Some((one, another)) = self.0[kind].zip(other.0[kind]) {
                *result = Some(combine(one, another)?);
            }
        }
        Some(combined)
    }

    /// Returns true if no kind is known.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// Usage of a target by programs other than longhaul, in one step of time, from one source.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageStep {
    /// Target that was used.
    pub target: TargetName,
    /// Source of the counts.
    pub source: CounterSource,
    /// Start of the step.
    pub at: Timestamp,
    /// Time of the step in which requests were counted, in seconds.
    pub counted_seconds: f64,
    /// Time of the step that is left out because longhaul itself measured, in seconds.
    pub left_out_seconds: f64,
    /// Requests in the counted time.
    pub requests: RequestCounts,
    /// About how many files were opened and read in the counted time; `None` if unknown.
    pub files_read: Option<u64>,
    /// Bytes received in the counted time; `None` if unknown.
    pub read_bytes: Option<u64>,
    /// Bytes sent in the counted time; `None` if unknown.
    pub written_bytes: Option<u64>,
}

impl UsageStep {
    /// Returns a step in which nothing was counted.
    pub fn new(target: TargetName, source: CounterSource, at: Timestamp) -> Self {
        Self {
            target,
            source,
            at,
            counted_seconds: 0.0,
            left_out_seconds: 0.0,
            requests: RequestCounts::default(),
            files_read: None,
            read_bytes: None,
            written_bytes: None,
        }
    }

    /// Adds the values of another part of the same step.
    pub fn merge(&mut self, other: &Self) {
        self.counted_seconds += other.counted_seconds;
        self.left_out_seconds += other.left_out_seconds;
        self.requests.merge(&other.requests);
        for (sum, more) in [
            (&mut self.files_read, other.files_read),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.written_bytes, other.written_bytes),
        ] {
            *sum = sum_known(*sum, more);
        }
    }
}

stored_names! { RequestKind }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_counts_keeps_unknown_kinds_unknown() {
        let mut counts = RequestCounts::default().with(RequestKind::Read, Some(2));
        counts.merge(
            &RequestCounts::default().with(RequestKind::Read, Some(3)).with(RequestKind::List, Some(1)),
        );
        let found = [RequestKind::Read, RequestKind::List, RequestKind::Open].map(|kind| counts.get(kind));
        assert_eq!(found, [Some(5), Some(1), None]);
    }

    #[test]
    fn combined_counts_need_both_and_may_fail() {
        let of = |read, list| {
            RequestCounts::default().with(RequestKind::Read, Some(read)).with(RequestKind::List, list)
        };
        let grown = of(7, Some(1)).combine(&of(5, None), u64::checked_sub);
        assert_eq!(grown, Some(RequestCounts::default().with(RequestKind::Read, Some(2))));
        assert_eq!(of(4, None).combine(&of(5, None), u64::checked_sub), None);
    }
}
