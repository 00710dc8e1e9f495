//! Single calls of a phase, stored as examples in addition to the histograms, which cover all calls.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::Operation;
use crate::names::stored_names;
use crate::varint;

/// Format version, the first byte of encoded calls.
const VERSION: u8 = 1;

/// One timed call of a phase, stored individually.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Kind of call.
    pub operation: Operation,
    /// Start of the call, in nanoseconds since the start of its phase.
    pub offset_ns: u64,
    /// Duration of the call, in nanoseconds.
    pub duration_ns: u64,
    /// True if the call failed.
    pub is_error: bool,
    /// Reason why this call is stored.
    pub keep_reason: KeepReason,
}

/// Reason why a single call of a phase is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum KeepReason {
    /// The call is one of the first failed calls of its phase.
    Failed,
    /// The call is one of the slowest calls of its phase.
    Slowest,
    /// The call was drawn at random; every call of the phase had the same chance.
    Sample,
}

impl KeepReason {
    /// Maximum number of calls that a phase stores for each reason.
    pub const CALLS_PER_REASON: usize = 8;
}

/// Encodes calls for storage, about nine bytes each. An operation is stored as its index in `operations`; a
/// call whose operation is not in that list is left out.
pub fn encode_calls(calls: &[Call], operations: &[Operation]) -> Vec<u8> {
    let mut out = vec![VERSION];
    for call in calls {
        let Some(index) = operations.iter().position(|operation| *operation == call.operation) else {
            continue;
        };
        // One integer holds three fields: error bit, reason (three values) and operation index.
        varint::put(&mut out, (index as u64 * 3 + call.keep_reason as u64) * 2 + u64::from(call.is_error));
        varint::put(&mut out, call.offset_ns);
        varint::put(&mut out, call.duration_ns);
    }
    out
}

/// Decodes calls that [`encode_calls`] wrote; `None` if the bytes are damaged or of another version.
pub fn decode_calls(bytes: &[u8], operations: &[Operation]) -> Option<Vec<Call>> {
    let (&VERSION, mut rest) = bytes.split_first()? else { return None };
    let mut calls = vec![];
    while !rest.is_empty() {
        let packed = varint::take(&mut rest)?;
        let index = usize::try_from(packed / 6).ok()?;
        calls.push(Call {
            operation: *operations.get(index)?,
            offset_ns: varint::take(&mut rest)?,
            duration_ns: varint::take(&mut rest)?,
            is_error: packed % 2 == 1,
            keep_reason: KeepReason::ALL[(packed / 2 % 3) as usize],
        });
    }
    Some(calls)
}

stored_names! { KeepReason }

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPERATIONS: [Operation; 3] = [Operation::Readdir, Operation::Read, Operation::Sync];

    prop_compose! {
        fn a_call()(operation in prop::sample::select(OPERATIONS.to_vec()),
            offset_ns: u64, duration_ns: u64, is_error: bool, keep_reason in prop::sample::select(KeepReason::ALL.to_vec())) -> Call {
            Call { operation, offset_ns, duration_ns, is_error, keep_reason }
        }
    }

    proptest! {
        #[test]
        fn decoding_returns_the_encoded_calls(calls in prop::collection::vec(a_call(), 0..30)) {
            prop_assert_eq!(decode_calls(&encode_calls(&calls, &OPERATIONS), &OPERATIONS), Some(calls));
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes: Vec<u8>) {
            let _ = decode_calls(&bytes, &OPERATIONS);
        }
    }
}
