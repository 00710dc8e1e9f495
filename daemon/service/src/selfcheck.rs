//! The self-check of the machine and its targets: a report that contains no private names and can be published.
//!
//! Every check has a timeout, and so has the whole report. Checks of a target run in its worker; if one does
//! not return, the rest of that target are skipped. Checks of the machine each run on their own thread.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use longhaul_measure::platform;
use longhaul_measure::selfcheck::{
    Check, CheckAnswer, CheckOutcome, MachineCheck, Redaction, TargetCheck, TargetCheckMethod,
    machine_checks, target_checks,
};
use longhaul_measure::worker::FailureReport;
use longhaul_model::{Mount, Outcome, ProtocolFamily, Target};

use crate::worker::{Interruption, Launcher, RequestOptions, SilentObserver, Worker, end_workers};

/// Time limit for all checks. With the last check, its grace time and the cleanup,
/// the report takes less than a minute.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(40);
/// Time limit for all checks of the machine; part of [`TOTAL_TIMEOUT`].
const MACHINE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time that a worker may take to stop after Ctrl-C, and to exit.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Name of the report's section about the machine.
const MACHINE_SUBJECT: &str = "machine";

/// Settings of a self-check.
pub struct SelfCheck<'a> {
    /// Settings for starting workers.
    pub launcher: &'a Launcher,
    /// Targets to check: those given by the user, those of the configuration, or a temporary folder.
    pub targets: &'a [Target],
    /// Mount table, which gives the protocols and the private names to remove.
    pub mounts: &'a [Mount],
    /// Timeout of one check.
    pub call_timeout: Duration,
    /// Request of the user to stop.
    pub interruption: &'a Interruption,
}

/// The checks of the machine or of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `machine`, or `target` and a number. Not the target's name, which may identify its owner.
    pub subject: String,
    /// Protocol of the target. `None`: unknown, or the section is about the machine.
    pub protocol: Option<String>,
    /// Results of the checks.
    pub checks: Vec<Check>,
}

impl SelfCheck<'_> {
    /// Runs all checks, those of the machine first, and removes private names from the results.
    pub fn run(&self, extra: &[MachineCheck]) -> Vec<Section> {
        let started = Instant::now();
        let mut sections = vec![self.check_machine(extra, started)];
        for (index, target) in self.targets.iter().enumerate() {
            sections.push(self.check_target(index + 1, target, started));
        }
        let redaction = self.redaction();
        for section in &mut sections {
            section.protocol = section.protocol.as_deref().map(|protocol| redaction.apply(protocol));
            section.checks.iter_mut().for_each(|check| check.answer = redaction.apply(&check.answer));
        }
        sections
    }

    fn check_machine(&self, extra: &[MachineCheck], started: Instant) -> Section {
        let checks = machine_checks().chain(extra.iter().copied());
        let checks = checks.map(|check| {
            let left = MACHINE_TIMEOUT.saturating_sub(started.elapsed()).min(self.call_timeout);
            let answer =
                self.reason_to_skip(left).map_or_else(|| run_with_timeout(left, check), skipped_answer);
            check.expected.to_check(check.name, answer)
        });
        Section { subject: MACHINE_SUBJECT.to_owned(), protocol: None, checks: checks.collect() }
    }

    fn check_target(&self, number: usize, target: &Target, started: Instant) -> Section {
        let worker = Worker::new(target.clone(), self.launcher.clone());
        let mut checked = CheckedTarget { worker, was_called: false, hung_reason: None };
        let checks = target_checks().map(|check| {
            let left = TOTAL_TIMEOUT.saturating_sub(started.elapsed()).min(self.call_timeout);
            self.call_worker(&mut checked, check, left)
        });
        let checks = checks.collect();
        end_workers([&mut checked.worker], STOP_TIMEOUT);
        let from_mount = || Mount::for_path(self.mounts, &target.path).map(|mount| mount.protocol.clone());
        let protocol = checked.worker.protocol.or_else(from_mount).map(|protocol| protocol.to_string());
        Section { subject: format!("target {number}"), protocol, checks }
    }

    /// Returns the reason to skip a check. `None`: the check is run.
    fn reason_to_skip(&self, left: Duration) -> Option<&'static str> {
        match () {
            () if self.interruption.is_requested() => Some("stopped by the user"),
            () if left.is_zero() => Some("the time limit of all checks was reached"),
            () => None,
        }
    }

    /// Lets the worker run one check. The removal of test files is run even if the time
    /// is up, unless the target hangs.
    fn call_worker(&self, checked: &mut CheckedTarget, check: &TargetCheck, left: Duration) -> Check {
        // Test files are removed even after an interruption, so that no sandbox is left on the target.
        let is_removal = matches!(check.method, TargetCheckMethod::Remove) && checked.was_called;
        let skip = if is_removal { None } else { self.reason_to_skip(left) };
        if let Some(reason) = checked.hung_reason.or(skip) {
            return check.expected.to_check(check.name, skipped_answer(reason));
        }
        checked.was_called = true;
        let limit = if is_removal { self.call_timeout } else { left };
        let never = Interruption::default();
        let mut options = RequestOptions {
            cap: limit,
            stop_timeout: STOP_TIMEOUT,
            interruption: if is_removal { &never } else { self.interruption },
            observer: &mut SilentObserver,
        };
        match checked.worker.self_check(check.name, &mut options) {
            Ok(Some(found)) => found,
            Ok(None) => check
                .expected
                .to_check(check.name, CheckAnswer::unknown("the worker does not know this check")),
            Err(failure) => {
                if failure.outcome == Outcome::Hung {
                    checked.hung_reason = Some("an earlier call has not returned");
                }
                check.expected.to_check(check.name, failure_answer(&failure, limit))
            }
        }
    }

    /// Returns the names on this machine that a published report must not contain.
    fn redaction(&self) -> Redaction {
        let folders =
            [Some(self.launcher.local_folder.clone()), std::env::home_dir(), Some(std::env::temp_dir())];
        let targets = self.targets.iter().map(|target| target.path.clone());
        let points = self.mounts.iter().map(|mount| mount.point.clone());
        let paths = targets.chain(points).chain(folders.into_iter().flatten());
        let paths = paths.filter_map(|path| path.to_str().map(str::to_owned));
        Redaction::new(paths.chain(self.mounts.iter().flat_map(server_names)).chain(local_names()))
    }
}

/// Returns the names and the address in a network mount's source. Empty for a local disk.
fn server_names(mount: &Mount) -> Vec<String> {
    if mount.protocol.family() != ProtocolFamily::Network {
        return vec![];
    }
    let names = mount.source.split(['/', ':', '@']).map(str::to_owned);
    names.chain(mount.server.map(|server| server.to_string())).collect()
}

/// Returns the names of the user and of the machine.
fn local_names() -> impl Iterator<Item = String> {
    let users = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let host = platform::host_name();
    let short = host.split('.').next().unwrap_or_default().to_owned();
    users.chain([host, short])
}

/// A target during its checks.
struct CheckedTarget {
    worker: Worker,
    /// True if any check was sent to the worker.
    was_called: bool,
    /// Reason to skip the remaining checks. `None`: the worker responds.
    hung_reason: Option<&'static str>,
}

fn skipped_answer(reason: &str) -> CheckAnswer {
    CheckAnswer::unknown(format!("not checked: {reason}"))
}

fn timeout_text(limit: Duration) -> String {
    let seconds = limit.as_secs_f64();
    // A timeout shortened by the limit for all checks is not a whole number of seconds.
    if limit.subsec_nanos() == 0 {
        format!("did not return within {seconds:.0} s")
    } else {
        format!("did not return within {seconds:.2} s")
    }
}

/// Describes a check that the worker did not answer. The failure's own message is
/// left out, because it names the target.
fn failure_answer(report: &FailureReport, limit: Duration) -> CheckAnswer {
    let operation = report.failure.operation.map_or(String::new(), |operation| format!(" (`{operation}`)"));
    match report.outcome {
        Outcome::Hung => CheckAnswer::differs(format!("{}{operation}", timeout_text(limit))),
        Outcome::Void => CheckAnswer::unknown("the worker ended, or was stopped, before it answered"),
        Outcome::Ok | Outcome::Error | Outcome::Unavailable => {
            CheckAnswer::differs(format!("the target could not be checked{operation}"))
        }
    }
}

/// Runs a check of the machine on its own thread, which is abandoned if the check does not return in time.
fn run_with_timeout(limit: Duration, check: MachineCheck) -> CheckAnswer {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("self-check".to_owned()).spawn(move || {
        // Fails if the timeout has passed and the receiver is gone.
        let _ = sender.send(check.answer());
    });
    match thread.map(|_| receiver.recv_timeout(limit)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(RecvTimeoutError::Timeout)) => CheckAnswer::differs(timeout_text(limit)),
        Ok(Err(RecvTimeoutError::Disconnected)) => CheckAnswer::differs("longhaul itself failed"),
        Err(error) => {
            CheckAnswer::unknown(format!("not checked: no thread could be started ({})", error.kind()))
        }
    }
}

/// Returns the number of checks with a verdict.
pub fn count_checks(sections: &[Section], verdict: CheckOutcome) -> usize {
    let checks = sections.iter().flat_map(|section| &section.checks);
    checks.filter(|check| check.verdict == verdict).count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use longhaul_measure::selfcheck::{Expectation, Expectations, MachineCheckMethod};
    use longhaul_model::{Failure, Operation, Protocol};

    const EXPECTED: Expectation = Expectation { text: "an answer", source: "a manual" };

    fn check(call: fn() -> CheckAnswer) -> MachineCheck {
        let expected = Expectations { linux: EXPECTED, macos: EXPECTED };
        MachineCheck { name: "call", expected, method: MachineCheckMethod::Call(call) }
    }

    #[test]
    fn hanging_check_of_the_machine_is_abandoned() {
        let hangs = || {
            std::thread::park();
            CheckAnswer::ok("late")
        };
        let answer = run_with_timeout(Duration::from_millis(20), check(hangs));
        assert_eq!(answer, CheckAnswer::differs("did not return within 0.02 s"));
        assert_eq!(
            run_with_timeout(Duration::from_secs(60), check(|| CheckAnswer::ok("here"))),
            CheckAnswer::ok("here")
        );
        let panics = || panic!("a bug in the check");
        assert_eq!(run_with_timeout(Duration::from_secs(60), check(panics)).text, "longhaul itself failed");
    }

    fn failure(outcome: Outcome) -> FailureReport {
        let message = "`lookup` on /Volumes/anna has not returned".to_owned();
        let details = Failure {
            operation: Some(Operation::Lookup),
            path: Some("/Volumes/anna".to_owned()),
            error: None,
            message,
        };
        FailureReport { outcome, failure: details }
    }

    #[test]
    fn hang_is_reported_with_its_operation_but_without_its_path() {
        let answer = |outcome| failure_answer(&failure(outcome), Duration::from_secs(5));
        assert_eq!(answer(Outcome::Hung), CheckAnswer::differs("did not return within 5 s (`lookup`)"));
        assert_eq!(answer(Outcome::Void).verdict, CheckOutcome::Unknown);
        assert!(!answer(Outcome::Unavailable).text.contains("anna"));
    }

    fn mount(point: &str, source: &str, protocol: Protocol) -> Mount {
        Mount::new(point, source, protocol)
    }

    #[test]
    fn server_names_are_removed_from_the_report() {
        let mounts = [
            mount("/Volumes/media", "//diskstation.local/films", Protocol::Smb(None)),
            mount("/proc", "proc", Protocol::Other("proc".to_owned())),
        ];
        let database = Path::new("/srv/longhaul/longhaul.sqlite");
        let launcher = Launcher::for_database("/opt/longhaul".into(), database, "m");
        let limit = Duration::from_secs(1);
        let self_check = SelfCheck {
            launcher: &launcher,
            targets: &[],
            mounts: &mounts,
            call_timeout: limit,
            interruption: &Interruption::default(),
        };
        let redacted =
            self_check.redaction().apply("diskstation.local and films at /Volumes/media, not proc");
        assert_eq!(redacted, "(name) and (name) at (name), not proc");
    }
}
