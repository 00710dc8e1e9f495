//! The parts of a check: its answer, what is expected, and how it is made.

use serde::{Deserialize, Serialize};

use super::scratch::ScratchFolder;
use crate::error::RunError;
use crate::platform::{self, SYSTEM, System, Tool};
use crate::timed_fs::TimedFs;
use longhaul_model::{Mount, Protocol, Target};

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the check: a call, or a tool of the operating system.
    pub name: String,
    /// Answer as text without names, paths and addresses.
    pub answer: String,
    /// Expected answer as text.
    pub expected: String,
    /// Verdict on the answer.
    pub verdict: CheckOutcome,
    /// Source of the expectation, such as a manual page.
    pub source: String,
}

/// Verdict on the answer of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutcome {
    /// The answer is as expected.
    Ok,
    /// The answer contradicts the expectation: an assumption of longhaul is wrong on this machine.
    Differs,
    /// No answer that can be judged.
    Unknown,
}

impl From<bool> for CheckOutcome {
    /// Converts whether the answer is as expected.
    fn from(is_expected: bool) -> Self {
        if is_expected { Self::Ok } else { Self::Differs }
    }
}

impl CheckOutcome {
    /// Returns the name that is shown to users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Differs => "differs",
            Self::Unknown => "unknown",
        }
    }
}

/// Answer of a call, with its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckAnswer {
    /// Answer as text.
    pub text: String,
    /// Verdict on the answer.
    pub verdict: CheckOutcome,
}

impl CheckAnswer {
    /// Creates an answer that is as expected.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(CheckOutcome::Ok, text)
    }

    /// Creates an answer that contradicts the expectation.
    pub fn differs(text: impl Into<String>) -> Self {
        Self::new(CheckOutcome::Differs, text)
    }

    /// Creates an answer that cannot be judged.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self::new(CheckOutcome::Unknown, text)
    }

    /// Creates an answer with this verdict.
    pub fn new(verdict: CheckOutcome, text: impl Into<String>) -> Self {
        Self { text: text.into(), verdict }
    }

    /// Creates the answer of a call that failed although it was expected to succeed.
    pub fn failed(error: &RunError) -> Self {
        Self::differs(error_text(error))
    }
}

/// Returns the text of an error, without paths and names.
pub fn error_text(error: &RunError) -> String {
    match error {
        RunError::Operation { operation, source, .. } | RunError::AccessDenied { operation, source, .. } => {
            let name = platform::error_name(source).unwrap_or_else(|| source.kind().to_string());
            format!("`{operation}` failed: {name}")
        }
        RunError::Refused(refusal) => format!("refused: {}", without_details(&refusal.reason)),
        RunError::Damaged { .. } => "the content of a file differs from what was written".to_owned(),
        RunError::PrivacyBlocked { operation, .. } => {
            format!("`{operation}` failed: blocked by privacy (EPERM)")
        }
        RunError::NotExclusive { .. } => "a file in the sandbox does not belong to longhaul alone".to_owned(),
        RunError::LocalDisk { action, source, .. } => {
            let name = platform::error_name(source).unwrap_or_else(|| source.kind().to_string());
            format!("`{action}` on the local disk failed: {name}")
        }
        RunError::Stopped(_) => "stopped before it was finished".to_owned(),
    }
}

/// Returns a reason without text in backticks, which may be a name, and without an id in parentheses.
fn without_details(reason: &str) -> String {
    let quoted = reason.split('`').step_by(2).collect::<Vec<_>>().join("…");
    match quoted.split_once(" (") {
        // Parentheses with an error name, such as `(mkdir: EROFS)`, contain nothing private.
        Some((before, detail)) if !detail.contains(": E") => before.to_owned(),
        _ => quoted,
    }
}

/// Expected answer of a check on one operating system, with its source.
#[derive(Debug, Clone, Copy)]
pub struct Expectation {
    /// Expected answer as text.
    pub text: &'static str,
    /// Source of the expectation: a manual page, or a file of the operating system's published source code.
    pub source: &'static str,
}

/// Expected answers of a check on each operating system.
#[derive(Debug, Clone, Copy)]
pub struct Expectations {
    /// Expectation on Linux.
    pub linux: Expectation,
    /// Expectation on macOS. Its author has not verified it on a Mac.
    pub macos: Expectation,
}

impl Expectations {
    /// Expectations of a check that has none yet.
    const EMPTY: Self = {
        let empty = Expectation { text: "", source: "" };
        Self { linux: empty, macos: empty }
    };

    /// Returns the expectation on this operating system.
    pub const fn current(&self) -> &Expectation {
        self.for_system(SYSTEM)
    }

    /// Returns the expectation on an operating system.
    pub const fn for_system(&self, system: System) -> &Expectation {
        match system {
            System::Linux => &self.linux,
            System::MacOs => &self.macos,
        }
    }

    /// Returns the result of a check from its name and its answer.
    pub fn to_check(&self, call: &str, answer: CheckAnswer) -> Check {
        let Expectation { text, source } = *self.current();
        Check {
            name: call.to_owned(),
            answer: answer.text,
            expected: text.to_owned(),
            verdict: answer.verdict,
            source: source.to_owned(),
        }
    }
}

/// Check with its expected answers. A test requires that every check of a table has them.
#[derive(Clone, Copy)]
pub struct ExpectedCheck<M> {
    /// Name of the check.
    pub name: &'static str,
    /// Expected answer on each operating system.
    pub expected: Expectations,
    /// Method of the check.
    pub method: M,
}

/// Check that needs a target.
pub type TargetCheck = ExpectedCheck<TargetCheckMethod>;

/// Check that needs no target.
pub type MachineCheck = ExpectedCheck<MachineCheckMethod>;

impl TargetCheck {
    /// Begins a check.
    pub(super) const fn named(name: &'static str, method: TargetCheckMethod) -> Self {
        Self { name, expected: Expectations::EMPTY, method }
    }
}

impl MachineCheck {
    /// Begins a check that makes a call.
    pub const fn call(name: &'static str, run: fn() -> CheckAnswer) -> Self {
        Self { name, expected: Expectations::EMPTY, method: MachineCheckMethod::Call(run) }
    }
}

impl<M: Copy> ExpectedCheck<M> {
    /// Adds the expectation on Linux and its source.
    pub const fn linux(mut self, text: &'static str, source: &'static str) -> Self {
        self.expected.linux = Expectation { text, source };
        self
    }

    /// Adds the expectation on macOS and its source.
    pub const fn macos(mut self, text: &'static str, source: &'static str) -> Self {
        self.expected.macos = Expectation { text, source };
        self
    }
}

/// Method of a check that needs a target.
#[derive(Clone, Copy)]
pub enum TargetCheckMethod {
    /// Opens or creates the sandbox. Implemented by the worker.
    Open,
    /// Checks the mount of the target, without using files.
    Mount(fn(&CheckedTarget<'_>) -> CheckAnswer),
    /// Uses files in the scratch folder.
    Files(fn(&CheckedTarget<'_>, &ScratchFolder) -> Result<CheckAnswer, RunError>),
    /// Removes everything that the self-check created. Implemented by the worker.
    Remove,
}

/// Target that is being checked, with everything that its checks need.
pub struct CheckedTarget<'a> {
    /// File operations on the target.
    pub context: &'a TimedFs<'a>,
    /// Target that is being checked.
    pub target: &'a Target,
    /// Mount that contains the target, and the negotiated protocol of the mount; `None` if no mount was found.
    pub mount: Option<(&'a Mount, &'a Protocol)>,
}

impl CheckedTarget<'_> {
    /// Returns the protocol of the target; `None` if no mount was found.
    pub(super) fn protocol(&self) -> Option<&Protocol> {
        self.mount.map(|(_, protocol)| protocol)
    }
}

/// Method of a check that needs no target.
#[derive(Clone, Copy)]
pub enum MachineCheckMethod {
    /// Function that makes the call in this process.
    Call(fn() -> CheckAnswer),
    /// Tool of the operating system, run as a child process.
    Tool(&'static Tool),
}

/// Returns the time since a reading of the monotonic clock, as text in milliseconds.
pub(super) fn milliseconds_since(start_ns: u64) -> String {
    let milliseconds = platform::monotonic_ns().saturating_sub(start_ns) as f64 / 1e6;
    if milliseconds < 10.0 { format!("{milliseconds:.2} ms") } else { format!("{milliseconds:.0} ms") }
}
