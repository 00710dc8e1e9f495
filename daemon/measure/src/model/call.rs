//! Single calls of a phase, kept as witnesses beside the histograms, which hold all of them.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::stats::varint;

/// First byte of the stored form.
const VERSION: u8 = 1;

/// A call of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Which.
    pub operation: Operation,
    /// When it began, in nanoseconds since its phase did.
    pub after_ns: u64,
    /// How long it took, in nanoseconds.
    pub nanoseconds: u64,
    /// Whether it failed.
    pub is_error: bool,
    /// What it is a witness of.
    pub kept: Kept,
}

/// Why a call is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// It is among the first that failed.
    Failed,
    /// It is among the slowest.
    Slowest,
    /// It was drawn, each call with the same chance.
    Sample,
}

impl Kept {
    /// How many calls of a phase are kept for each reason.
    pub const EACH: usize = 8;

    /// Every reason, the most telling first.
    pub const ALL: [Kept; 3] = [Self::Failed, Self::Slowest, Self::Sample];

    /// The name that is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Slowest => "slowest",
            Self::Sample => "sample",
        }
    }
}

/// Calls as they are stored, some nine bytes each: an operation is named by its place among those of the phase. One that is
/// not among them is left out.
pub fn encode_calls(calls: &[Call], operations: &[Operation]) -> Vec<u8> {
    let mut out = vec![VERSION];
    for call in calls {
        let Some(place) = operations.iter().position(|operation| *operation == call.operation) else {
            continue;
        };
        varint::put(&mut out, (place as u64 * 3 + call.kept as u64) * 2 + u64::from(call.is_error));
        varint::put(&mut out, call.after_ns);
        varint::put(&mut out, call.nanoseconds);
    }
    out
}

/// Reads them back; `None` for what is damaged or of another version.
pub fn decode_calls(bytes: &[u8], operations: &[Operation]) -> Option<Vec<Call>> {
    let (&VERSION, mut rest) = bytes.split_first()? else { return None };
    let mut calls = vec![];
    while !rest.is_empty() {
        let what = varint::take(&mut rest)?;
        let place = usize::try_from(what / 6).ok()?;
        calls.push(Call {
            operation: *operations.get(place)?,
            after_ns: varint::take(&mut rest)?,
            nanoseconds: varint::take(&mut rest)?,
            is_error: what % 2 == 1,
            kept: Kept::ALL[(what / 2 % 3) as usize],
        });
    }
    Some(calls)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPERATIONS: [Operation; 3] = [Operation::Readdir, Operation::Read, Operation::Sync];

    prop_compose! {
        fn a_call()(operation in prop::sample::select(OPERATIONS.to_vec()),
            after_ns: u64, nanoseconds: u64, is_error: bool, kept in prop::sample::select(Kept::ALL.to_vec())) -> Call {
            Call { operation, after_ns, nanoseconds, is_error, kept }
        }
    }

    proptest! {
        #[test]
        fn what_is_stored_comes_back(calls in prop::collection::vec(a_call(), 0..30)) {
            prop_assert_eq!(decode_calls(&encode_calls(&calls, &OPERATIONS), &OPERATIONS), Some(calls));
        }

        #[test]
        fn any_bytes_end_without_panic(bytes: Vec<u8>) {
            let _ = decode_calls(&bytes, &OPERATIONS);
        }
    }
}
