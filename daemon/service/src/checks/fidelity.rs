//! Checks which properties of files a target keeps: every property in turn, within a minute.

use std::time::{Duration, Instant};

use longhaul_measure::worker::{FailureReport, FidelityStep};
use longhaul_model::{
    Finding, KeepResult, Outcome, Property, ReadBack, TargetFidelity, TargetName, Timestamp,
};

use crate::worker::{FidelityAnswer, Interruption, RequestOptions, SilentObserver, Worker};

/// Time after which no further property of a target is checked. With the last one, its grace time and the removal of the
/// files, a check takes about a minute at most.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(50);
/// Time limit of one operation.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(12);
/// Pause between two looks whether an abandoned process has ended.
const EXIT_INTERVAL: Duration = Duration::from_millis(50);
/// Time that a worker may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Check of one target.
pub struct FidelityCheck<'a> {
    /// Request of the user or the service to stop.
    pub interruption: &'a Interruption,
    /// Maximum number of operations per second. `None`: no limit.
    pub operations_per_second: Option<u32>,
    /// Time of the check.
    pub at: Timestamp,
}

/// Result of the check of one target.
#[derive(Debug)]
pub struct CheckedFidelity {
    /// Findings of all properties.
    pub fidelity: TargetFidelity,
    /// Number of bytes written to the target.
    pub bytes_written: u64,
}

/// State of a check in progress.
struct CheckProgress {
    started: Instant,
    findings: Vec<Finding>,
    bytes_written: u64,
    /// True after an operation did not return: the target is not touched any more.
    has_hung: bool,
}

impl FidelityCheck<'_> {
    /// Checks all properties and removes everything that was created. A lock is also tried through `others` that lead to the
    /// same folder.
    ///
    /// # Errors
    ///
    /// If the target cannot be used, or the check was interrupted: nothing is known then.
    pub fn run(
        &self,
        worker: &mut Worker,
        others: &mut [&mut Worker],
    ) -> Result<CheckedFidelity, FailureReport> {
        let mut progress =
            CheckProgress { started: Instant::now(), findings: vec![], bytes_written: 0, has_hung: false };
        let started = progress.started;
        let checked = Property::ALL.into_iter().try_for_each(|property| {
            let mut check = || match property {
                Property::LockAcrossMounts => self.lock_across_mounts(worker, others, started),
                _ => self.step(worker, FidelityStep::Check(property)),
            };
            self.check_property(property, &mut check, &mut progress)
        });
        self.finish(worker);
        checked?;
        let CheckProgress { findings, bytes_written, .. } = progress;
        Ok(CheckedFidelity { fidelity: self.fidelity(worker, findings), bytes_written })
    }

    /// Returns the findings of a check that failed: nothing could be tested.
    pub fn failed(&self, worker: &Worker, failure: &FailureReport) -> TargetFidelity {
        let reason = short_reason(failure);
        let findings = Property::ALL.into_iter().map(|property| Finding::not_tested(property, &reason));
        self.fidelity(worker, findings.collect())
    }

    fn fidelity(&self, worker: &Worker, findings: Vec<Finding>) -> TargetFidelity {
        let protocol = worker.protocol.as_ref().map(ToString::to_string);
        TargetFidelity { target: worker.target().name.clone(), protocol, at: self.at, findings }
    }

    /// Checks one property. Fails if the target cannot be used at all, or if the check was interrupted.
    fn check_property(
        &self,
        property: Property,
        check: &mut dyn FnMut() -> Result<FidelityAnswer, FailureReport>,
        progress: &mut CheckProgress,
    ) -> Result<(), FailureReport> {
        if let Some(reason) = reason_to_skip(progress) {
            progress.findings.push(Finding::not_tested(property, reason));
            return Ok(());
        }
        match check() {
            Ok(answer) => {
                progress.bytes_written += answer.bytes_written;
                let missing = || Finding::not_tested(property, "the worker does not know this property");
                progress.findings.push(answer.finding.unwrap_or_else(missing));
                Ok(())
            }
            Err(failure) if failure.outcome == Outcome::Hung => {
                progress.has_hung = true;
                progress.findings.push(hung_finding(property, &failure));
                Ok(())
            }
            Err(failure) if self.interruption.is_requested() || progress.findings.is_empty() => Err(failure),
            Err(failure) => {
                progress.findings.push(Finding::not_tested(property, short_reason(&failure)));
                Ok(())
            }
        }
    }

    /// Holds a lock through one worker, and tries it through the others that lead to the same folder, until the time of the
    /// check is over. Another target that cannot be used says nothing about this one.
    fn lock_across_mounts(
        &self,
        holder: &mut Worker,
        others: &mut [&mut Worker],
        started: Instant,
    ) -> Result<FidelityAnswer, FailureReport> {
        let (mut held, sandbox) = (FidelityAnswer::default(), holder.sandbox_name());
        if !others.is_empty() {
            held = self.step(holder, FidelityStep::HoldLock)?;
        }
        if held.finding.is_some() {
            return Ok(held);
        }
        let tried = |other: &mut &mut Worker| {
            let answer = self.step(other, FidelityStep::TryLock(sandbox.clone())).ok()?;
            Some((other.target().name.clone(), answer.finding?))
        };
        let in_time = others.iter_mut().take_while(|_| started.elapsed() < TOTAL_TIMEOUT);
        let tried: Vec<_> = in_time.filter_map(tried).collect();
        Ok(FidelityAnswer { finding: Some(across_mounts(&tried)), ..held })
    }

    /// Removes everything that the check created: also after an interruption or a hang, once the abandoned process has
    /// ended.
    fn finish(&self, worker: &mut Worker) {
        let start = Instant::now();
        while worker.is_stuck() && start.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(EXIT_INTERVAL);
        }
        let never = Interruption::default();
        let finished = self.interruptible_step(worker, FidelityStep::Finish, &never);
        if let Err(failure) = finished {
            tracing::warn!(error = failure.failure.message, "files of a check of fidelity are left");
        }
    }

    fn step(&self, worker: &mut Worker, step: FidelityStep) -> Result<FidelityAnswer, FailureReport> {
        self.interruptible_step(worker, step, self.interruption)
    }

    fn interruptible_step(
        &self,
        worker: &mut Worker,
        step: FidelityStep,
        interruption: &Interruption,
    ) -> Result<FidelityAnswer, FailureReport> {
        let mut options = RequestOptions {
            cap: OPERATION_TIMEOUT,
            stop_timeout: STOP_TIMEOUT,
            interruption,
            observer: &mut SilentObserver,
        };
        worker.check_fidelity(step, self.operations_per_second, &mut options)
    }
}

/// Returns the finding about a lock that other targets tried.
fn across_mounts(tried: &[(TargetName, Finding)]) -> Finding {
    let property = Property::LockAcrossMounts;
    let through = |result: KeepResult| {
        let names = tried.iter().filter(|(_, finding)| finding.result == result);
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let finding = |result, detail| Finding { property, result, detail, read_back: ReadBack::Client };
    if let Some(names) = through(KeepResult::Lost) {
        return finding(KeepResult::Lost, format!("another program took the same lock through {names}"));
    }
    if let Some(names) = through(KeepResult::Kept) {
        return finding(KeepResult::Kept, format!("against programs that use {names}"));
    }
    match through(KeepResult::Refused) {
        Some(names) => Finding::not_tested(property, format!("{names} refuses locks")),
        None => Finding::not_tested(property, "needs a second mount of the same folder"),
    }
}

fn reason_to_skip(progress: &CheckProgress) -> Option<&'static str> {
    match () {
        () if progress.has_hung => Some("an earlier operation has not returned"),
        () if progress.started.elapsed() >= TOTAL_TIMEOUT => {
            Some("the time limit of all properties was reached")
        }
        () => None,
    }
}

fn hung_finding(property: Property, failure: &FailureReport) -> Finding {
    let operation = failure.failure.operation.map_or("an operation".to_owned(), |name| format!("`{name}`"));
    let detail = format!("{operation} did not return within {:.0} s", OPERATION_TIMEOUT.as_secs_f64());
    Finding { property, result: KeepResult::Hung, detail, read_back: ReadBack::Client }
}

/// Returns the reason of a failure without paths, which stored details do not contain.
fn short_reason(failure: &FailureReport) -> String {
    let operation = failure.failure.operation.map(|name| format!("`{name}` failed"));
    let operation = operation.unwrap_or_else(|| "the share could not be used".to_owned());
    match &failure.failure.error {
        Some(error) => format!("{operation}: {error}"),
        None => operation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{Failure, Operation};

    #[test]
    fn details_of_failures_contain_no_paths() {
        let failure = FailureReport {
            outcome: Outcome::Hung,
            failure: Failure {
                operation: Some(Operation::Rename),
                path: Some("/nas/anna".to_owned()),
                error: Some("EIO".to_owned()),
                message: "rename /nas/anna: EIO".to_owned(),
            },
        };
        assert_eq!(short_reason(&failure), "`rename` failed: EIO");
        let hung = hung_finding(Property::Colon, &failure);
        assert_eq!(hung.detail, "`rename` did not return within 12 s");
    }
}
