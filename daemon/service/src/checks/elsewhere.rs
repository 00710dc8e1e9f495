//! Reads wrong ranges again through the other targets that lead to the same folder: if they are correct there, the NAS
//! has the right bytes, and they were damaged on the way.

use std::time::Duration;

use longhaul_measure::checks::freshness::FreshnessSession;
use longhaul_measure::checks::integrity::OtherSandboxRange;
use longhaul_measure::worker::{FailureReport, FreshnessAnswer, FreshnessCommand};
use longhaul_model::{DamagePattern, Mismatch, MismatchReread, OtherReread};

use super::freshness::{STEP_TIMEOUT, StepLimits, new_session};
use crate::worker::{Interruption, RequestOptions, SilentObserver, Worker};

/// Number of bytes of one run that are read again through each other share.
const MAX_BYTES: u64 = 64 << 20;

/// Reading of wrong ranges through other shares.
#[derive(Clone, Copy)]
pub struct ReadElsewhere<'a> {
    /// Request to stop early.
    pub interruption: &'a Interruption,
    /// Time that a worker may take to stop before it is abandoned.
    pub stop_timeout: Duration,
}

impl ReadElsewhere<'_> {
    /// Reads the ranges that the worker at `finder` found, and adds the results to them.
    pub fn run(&self, workers: &mut [&mut Worker], finder: usize, mismatches: &mut [Mismatch]) {
        let (before, after) = workers.split_at_mut(finder);
        let Some((finder, after)) = after.split_first_mut() else { return };
        let others: Vec<&mut Worker> = before.iter_mut().chain(after).map(|worker| &mut **worker).collect();
        if mismatches.is_empty() || others.is_empty() {
            return;
        }
        // A folder with a random name shows which shares lead to the same folder.
        let session = new_session(finder, vec![]);
        if self.limits().send(finder, FreshnessCommand::Prepare(session.clone())).is_err() {
            return;
        }
        for other in others {
            if self.leads_to(&session, other) {
                self.read_all(&session, other, mismatches);
            }
        }
        self.limits().remove(&session, finder);
    }

    fn limits(&self) -> StepLimits<'_> {
        let Self { interruption, stop_timeout } = *self;
        StepLimits { interruption, limit: STEP_TIMEOUT, stop_timeout }
    }

    fn leads_to(&self, session: &FreshnessSession, other: &mut Worker) -> bool {
        matches!(
            self.limits().send(other, FreshnessCommand::Find(session.clone())),
            Ok(FreshnessAnswer::Done)
        )
    }

    fn read_all(&self, session: &FreshnessSession, other: &mut Worker, mismatches: &mut [Mismatch]) {
        let mut left = MAX_BYTES;
        for mismatch in mismatches {
            let Some(rest) = left.checked_sub(mismatch.length) else { continue };
            if self.interruption.is_requested() {
                return;
            }
            left = rest;
            let range = OtherSandboxRange {
                sandbox: session.sandbox.clone(),
                file: mismatch.file.clone(),
                offset: mismatch.offset,
                length: mismatch.length,
            };
            let mut options = RequestOptions {
                cap: STEP_TIMEOUT,
                stop_timeout: self.stop_timeout,
                interruption: self.interruption,
                observer: &mut SilentObserver,
            };
            let result = result(mismatch, &other.read_elsewhere(range, &mut options));
            mismatch.elsewhere.push(OtherReread {
                target: other.target().name.clone(),
                protocol: other.protocol.as_ref().map(ToString::to_string),
                result,
            });
        }
    }
}

/// Compares the fingerprint of what another share read (`None`: the file is missing there) with that of the range.
fn result(mismatch: &Mismatch, read: &Result<Option<u64>, FailureReport>) -> MismatchReread {
    let is_missing = mismatch.pattern == DamagePattern::Missing;
    match read {
        Err(_) => MismatchReread::Failed,
        Ok(None) if is_missing && mismatch.file.is_ascii() => MismatchReread::SameDamage,
        // Another protocol may show letters beyond ASCII in another form, and then the file under another name.
        Ok(None) => MismatchReread::Failed,
        Ok(found) if *found == mismatch.expected_fingerprint => MismatchReread::Correct,
        Ok(Some(found)) if !is_missing && *found == mismatch.fingerprint => MismatchReread::SameDamage,
        // It differs from the damage, but whether it is correct is not known.
        Ok(Some(_)) if mismatch.expected_fingerprint.is_none() => MismatchReread::Failed,
        Ok(Some(_)) => MismatchReread::OtherDamage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Timestamp;

    fn mismatch(pattern: DamagePattern) -> Mismatch {
        Mismatch {
            pattern,
            fingerprint: 1,
            expected_fingerprint: Some(2),
            ..Mismatch::new("photo-batch/16-0/IMG_0001.JPG".to_owned(), 4096, Timestamp::UNIX_EPOCH)
        }
    }

    #[test]
    fn what_another_share_read_is_compared_with_both_contents() {
        let zeros = mismatch(DamagePattern::Zeros);
        let of = |mismatch: &Mismatch, found| result(mismatch, &Ok(found));
        assert_eq!(of(&zeros, Some(1)), MismatchReread::SameDamage);
        assert_eq!(of(&zeros, Some(2)), MismatchReread::Correct);
        assert_eq!(of(&zeros, Some(3)), MismatchReread::OtherDamage);
        assert_eq!(of(&zeros, None), MismatchReread::Failed, "the file is not found there");
        let missing = mismatch(DamagePattern::Missing);
        assert_eq!(of(&missing, None), MismatchReread::SameDamage);
        assert_eq!(of(&missing, Some(2)), MismatchReread::Correct);
        let letters = Mismatch { file: "Bjørn.png".to_owned(), ..missing };
        assert_eq!(
            of(&letters, None),
            MismatchReread::Failed,
            "it may be there under another form of its name"
        );
        let unknown = Mismatch { expected_fingerprint: None, ..zeros };
        assert_eq!(of(&unknown, Some(3)), MismatchReread::Failed, "the correct content is not known");
        assert_eq!(of(&unknown, Some(1)), MismatchReread::SameDamage);
    }
}
