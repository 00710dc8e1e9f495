//! The self-check of a machine and its targets, as a report that can be published.
//!
//! Every call has a limit, and all together have one. Calls that need a target are made by its worker: one that does not
//! return is an answer, and nothing more is asked there. Calls of the machine each have a thread of their own.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use longhaul_measure::model::{Family, Mount, Outcome, Progress, Target, TargetName};
use longhaul_measure::platform;
use longhaul_measure::selfcheck::{
    Answer, Ask, Check, MachineCheck, Redaction, TargetCheck, Verdict, machine_checks, target_checks,
};
use longhaul_measure::worker::Ending;

use crate::worker::{Launcher, Observer, Watch, Worker};

/// How long everything may take, so that with a last call, its grace and the removal it ends within a minute.
const IN_ALL: Duration = Duration::from_secs(40);
/// How long the calls of the machine may take of it.
const FOR_MACHINE: Duration = Duration::from_secs(15);
/// How long a worker may take to stop after Ctrl-C, and to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The place of the calls that need no target.
const MACHINE: &str = "machine";

/// What a self-check works with.
pub struct SelfCheck<'a> {
    /// How workers are started.
    pub launcher: &'a Launcher,
    /// The targets, by the mount table and as they were given.
    pub targets: &'a [Target],
    /// The mount table, from which protocols and private names are known.
    pub mounts: &'a [Mount],
    /// How long a call may take.
    pub limit: Duration,
    /// Whether the user wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// The rows of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `machine`, or `target` and a number: the name of a target may say whose it is.
    pub place: String,
    /// The protocol of a target; `None` for the machine and where it is not known.
    pub protocol: Option<String>,
    /// The rows.
    pub checks: Vec<Check>,
}

impl SelfCheck<'_> {
    /// Makes every call, those that need no target first.
    pub fn run(&self, extra: &[MachineCheck]) -> Vec<Section> {
        let began = Instant::now();
        let mut sections = vec![self.machine(extra, began)];
        for (place, target) in self.targets.iter().enumerate() {
            sections.push(self.target(place + 1, target, began));
        }
        let redaction = self.redaction();
        for section in &mut sections {
            section.protocol = section.protocol.as_deref().map(|protocol| redaction.apply(protocol));
            section.checks.iter_mut().for_each(|check| check.answer = redaction.apply(&check.answer));
        }
        sections
    }

    fn machine(&self, extra: &[MachineCheck], began: Instant) -> Section {
        let checks = machine_checks().chain(extra.iter().copied());
        let checks = checks.map(|check| {
            let left = FOR_MACHINE.saturating_sub(began.elapsed()).min(self.limit);
            let answer = self.reason_to_skip(left).map_or_else(|| within(left, check), not_asked);
            check.expected.check(check.call, answer)
        });
        Section { place: MACHINE.to_owned(), protocol: None, checks: checks.collect() }
    }

    fn target(&self, number: usize, target: &Target, began: Instant) -> Section {
        let worker = Worker::new(target.clone(), self.launcher.clone());
        let mut asked = Asked { worker, any: false, hung: None };
        let checks = target_checks().map(|check| {
            let left = IN_ALL.saturating_sub(began.elapsed()).min(self.limit);
            self.ask(&mut asked, check, left)
        });
        let checks = checks.collect();
        asked.worker.dismiss();
        asked.worker.await_end(PATIENCE);
        let of_table = || Mount::of_path(self.mounts, &target.path).map(|mount| mount.protocol.clone());
        let protocol = asked.worker.protocol.or_else(of_table).map(|protocol| protocol.to_string());
        Section { place: format!("target {number}"), protocol, checks }
    }

    /// Why a call is not made; `None`: it is.
    fn reason_to_skip(&self, left: Duration) -> Option<&'static str> {
        match () {
            () if (self.interrupted)() => Some("stopped by the user"),
            () if left.is_zero() => Some("the time for all calls was over"),
            () => None,
        }
    }

    /// Has the worker make a call. What was made is removed whatever the time is, unless the target hangs.
    fn ask(&self, asked: &mut Asked, check: &TargetCheck, left: Duration) -> Check {
        let is_removal = matches!(check.ask, Ask::Remove) && asked.any;
        let skip = if is_removal { None } else { self.reason_to_skip(left) };
        if let Some(why) = asked.hung.or(skip) {
            return check.expected.check(check.call, not_asked(why));
        }
        asked.any = true;
        let limit = if is_removal { self.limit } else { left };
        let interrupted = || !is_removal && (self.interrupted)();
        let mut watch = Watch {
            cap: limit,
            patience: PATIENCE,
            interrupted: &interrupted,
            observer: &mut SilentObserver,
        };
        match asked.worker.self_check(check.call, &mut watch) {
            Ok(Some(found)) => found,
            Ok(None) => {
                check.expected.check(check.call, Answer::unknown("the worker does not know this call"))
            }
            Err(ending) => {
                if ending.outcome == Outcome::Hung {
                    asked.hung = Some("an earlier call has not returned");
                }
                check.expected.check(check.call, without_answer(&ending, limit))
            }
        }
    }

    /// The words on this machine that a published text must not hold.
    fn redaction(&self) -> Redaction {
        let folders = [Some(self.launcher.local.clone()), std::env::home_dir(), Some(std::env::temp_dir())];
        let targets = self.targets.iter().map(|target| target.path.clone());
        let points = self.mounts.iter().map(|mount| mount.point.clone());
        let paths = targets.chain(points).chain(folders.into_iter().flatten());
        let paths = paths.filter_map(|path| path.to_str().map(str::to_owned));
        Redaction::new(paths.chain(self.mounts.iter().flat_map(server_names)).chain(own_names()))
    }
}

/// The names and the address of a server and its share; a local disk has none.
fn server_names(mount: &Mount) -> Vec<String> {
    if mount.protocol.family() != Family::Network {
        return vec![];
    }
    let names = mount.source.split(['/', ':', '@']).map(str::to_owned);
    names.chain(mount.server.map(|server| server.to_string())).collect()
}

/// The names of the user and of the machine.
fn own_names() -> impl Iterator<Item = String> {
    let users = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let host = platform::host_name();
    let short = host.split('.').next().unwrap_or_default().to_owned();
    users.chain([host, short])
}

/// A target that is asked.
struct Asked {
    worker: Worker,
    /// Whether anything was asked.
    any: bool,
    /// Why nothing more is asked; `None`: its calls return.
    hung: Option<&'static str>,
}

fn not_asked(why: &str) -> Answer {
    Answer::unknown(format!("not asked: {why}"))
}

fn did_not_return(limit: Duration) -> String {
    let seconds = limit.as_secs_f64();
    // A limit that the time for all calls cut short is no whole number.
    if limit.subsec_nanos() == 0 {
        format!("did not return within {seconds:.0} s")
    } else {
        format!("did not return within {seconds:.2} s")
    }
}

/// What there is to say of a call that a worker did not answer. Its message would name the target.
fn without_answer(ending: &Ending, limit: Duration) -> Answer {
    let operation = ending.failure.operation.map_or(String::new(), |operation| format!(" (`{operation}`)"));
    match ending.outcome {
        Outcome::Hung => Answer::differs(format!("{}{operation}", did_not_return(limit))),
        Outcome::Void => Answer::unknown("the worker ended, or was stopped, before it answered"),
        Outcome::Ok | Outcome::Error | Outcome::Unavailable => {
            Answer::differs(format!("the target could not be asked{operation}"))
        }
    }
}

/// The answer of a call of the machine, on a thread that is left behind if it does not return.
fn within(limit: Duration, check: MachineCheck) -> Answer {
    let (sender, receiver) = channel();
    let asked = std::thread::Builder::new().name("self-check".to_owned()).spawn(move || {
        // The receiver is gone where the limit is over.
        let _ = sender.send(check.answer());
    });
    match asked.map(|_| receiver.recv_timeout(limit)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(RecvTimeoutError::Timeout)) => Answer::differs(did_not_return(limit)),
        Ok(Err(RecvTimeoutError::Disconnected)) => Answer::differs("longhaul itself failed"),
        Err(error) => Answer::unknown(format!("not asked: no thread can be started ({})", error.kind())),
    }
}

/// The number of rows with a verdict.
pub fn count(sections: &[Section], verdict: Verdict) -> usize {
    let checks = sections.iter().flat_map(|section| &section.checks);
    checks.filter(|check| check.verdict == verdict).count()
}

/// The workers of a self-check report to no one.
struct SilentObserver;

impl Observer for SilentObserver {
    fn progress(&mut self, _: &TargetName, _: &Progress) {}
    fn phase_began(&mut self, _: &TargetName, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_measure::model::{Failure, Negotiated, Operation, Protocol};
    use longhaul_measure::selfcheck::{Expectation, Expectations, Question};

    const EXPECTED: Expectation = Expectation { text: "an answer", source: "a manual" };

    fn check(ask: fn() -> Answer) -> MachineCheck {
        let expected = Expectations { linux: EXPECTED, macos: EXPECTED };
        MachineCheck { call: "call", expected, question: Question::Call(ask) }
    }

    #[test]
    fn a_call_of_the_machine_that_hangs_is_left_behind() {
        let hangs = || {
            std::thread::park();
            Answer::ok("late")
        };
        let answer = within(Duration::from_millis(20), check(hangs));
        assert_eq!(answer, Answer::differs("did not return within 0.02 s"));
        assert_eq!(within(Duration::from_secs(60), check(|| Answer::ok("here"))), Answer::ok("here"));
        let panics = || panic!("a fault of its own");
        assert_eq!(within(Duration::from_secs(60), check(panics)).text, "longhaul itself failed");
    }

    fn ending(outcome: Outcome) -> Ending {
        let message = "`lookup` on /Volumes/anna has not returned".to_owned();
        let failure = Failure {
            operation: Some(Operation::Lookup),
            path: Some("/Volumes/anna".to_owned()),
            error: None,
            message,
        };
        Ending { outcome, failure }
    }

    #[test]
    fn a_hang_is_told_with_its_call_and_without_its_path() {
        let told = |outcome| without_answer(&ending(outcome), Duration::from_secs(5));
        assert_eq!(told(Outcome::Hung), Answer::differs("did not return within 5 s (`lookup`)"));
        assert_eq!(told(Outcome::Void).verdict, Verdict::Unknown);
        assert!(!told(Outcome::Unavailable).text.contains("anna"));
    }

    fn mount(point: &str, source: &str, protocol: Protocol) -> Mount {
        Mount {
            point: point.into(),
            source: source.to_owned(),
            protocol,
            negotiated: Negotiated::new(),
            read_only: false,
            free_bytes: None,
            total_bytes: None,
            server: None,
            device: None,
        }
    }

    #[test]
    fn the_names_of_every_server_are_hidden() {
        let mounts = [
            mount("/Volumes/media", "//diskstation.local/films", Protocol::Smb(None)),
            mount("/proc", "proc", Protocol::Other("proc".to_owned())),
        ];
        let launcher = Launcher {
            program: "/opt/longhaul".into(),
            arguments: vec![],
            machine: "m".to_owned(),
            local: "/srv/longhaul/local".into(),
            probe: None,
            samples: None,
        };
        let limit = Duration::from_secs(1);
        let self_check =
            SelfCheck { launcher: &launcher, targets: &[], mounts: &mounts, limit, interrupted: &|| false };
        let redacted =
            self_check.redaction().apply("diskstation.local and films at /Volumes/media, not proc");
        assert_eq!(redacted, "(name) and (name) at (name), not proc");
    }
}
