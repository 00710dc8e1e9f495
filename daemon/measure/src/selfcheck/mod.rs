//! The self-check: every platform call once, with its answer, what was expected, and the source of that expectation.
//!
//! [`target_checks`] need a target, so a worker makes them, in a scratch folder of the sandbox. [`machine_checks`] touch no
//! target and may be made in any process. No answer holds a name, a path or an address: they are made of fixed words,
//! numbers and names of errors, and [`Redaction`] replaces what slips through all the same.

mod attributes;
mod cache;
mod listing;
mod machine;
mod mount;
mod names;
mod redaction;
mod replace;
mod scratch;
mod shape;
mod surroundings;
mod tools;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::error::RunError;
use crate::model::{Mount, Protocol, Target};
use crate::platform::{self, SYSTEM, System, Tool};

pub use redaction::Redaction;
pub use scratch::{Scratch, owns};

/// The machine id in the name of a sandbox that is made for a self-check before there is a database with an id.
pub const MACHINE: &str = "selfcheck";

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The call or the tool.
    pub call: String,
    /// The answer, in words that name nobody and no place.
    pub answer: String,
    /// What was expected.
    pub expected: String,
    /// Whether the two agree.
    pub verdict: Verdict,
    /// Where the expectation comes from.
    pub source: String,
}

/// Whether an answer is as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is.
    Ok,
    /// It is not: what longhaul assumes is wrong here.
    Differs,
    /// There is no answer to judge.
    Unknown,
}

impl Verdict {
    /// The name that is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Differs => "differs",
            Self::Unknown => "unknown",
        }
    }
}

/// What a call answered, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The answer in words.
    pub text: String,
    /// Whether it is as expected.
    pub verdict: Verdict,
}

impl Answer {
    /// An answer as expected.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), verdict: Verdict::Ok }
    }

    /// An answer that contradicts the expectation.
    pub fn differs(text: impl Into<String>) -> Self {
        Self { text: text.into(), verdict: Verdict::Differs }
    }

    /// No answer to judge.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), verdict: Verdict::Unknown }
    }

    /// An answer that is as expected only if this holds.
    pub fn expect(holds: bool, text: impl Into<String>) -> Self {
        if holds { Self::ok(text) } else { Self::differs(text) }
    }

    /// A call that failed, where it was expected to work.
    pub fn failed(error: &RunError) -> Self {
        Self::differs(error_text(error))
    }
}

/// An error without the path that it is about.
pub fn error_text(error: &RunError) -> String {
    match error {
        RunError::Operation { operation, source, .. } => {
            let name = platform::error_name(source).unwrap_or_else(|| source.kind().to_string());
            format!("`{operation}` failed: {name}")
        }
        RunError::Refused(refusal) => format!("refused: {}", without_details(&refusal.reason)),
        RunError::Damaged { .. } => "a file reads back otherwise than it was written".to_owned(),
        RunError::Blocked { operation, .. } => format!("`{operation}` failed: blocked by privacy (EPERM)"),
        RunError::NotOurs { .. } => "a file of the sandbox is not longhaul's alone".to_owned(),
        RunError::Local { action, source, .. } => {
            let name = platform::error_name(source).unwrap_or_else(|| source.kind().to_string());
            format!("`{action}` on the local disk failed: {name}")
        }
        RunError::Stopped(_) => "it was stopped before it was done".to_owned(),
    }
}

/// A reason without what stands in backticks, which may be a name, and without an id in parentheses.
fn without_details(reason: &str) -> String {
    let quoted = reason.split('`').step_by(2).collect::<Vec<_>>().join("…");
    match quoted.split_once(" (") {
        Some((before, detail)) if !detail.contains(": E") => before.to_owned(),
        _ => quoted,
    }
}

/// What is expected of a call on one system, and where that is written.
#[derive(Debug, Clone, Copy)]
pub struct Expectation {
    /// The expected answer.
    pub text: &'static str,
    /// A manual page, or a file of the system's published source.
    pub source: &'static str,
}

/// What is expected of a call on each system.
#[derive(Debug, Clone, Copy)]
pub struct Expectations {
    /// On Linux.
    pub linux: Expectation,
    /// On macOS. None of it was seen on a Mac by its author.
    pub macos: Expectation,
}

impl Expectations {
    /// The expectation on this system.
    pub const fn here(&self) -> &Expectation {
        self.on(SYSTEM)
    }

    /// The expectation on a system.
    pub const fn on(&self, system: System) -> &Expectation {
        match system {
            System::Linux => &self.linux,
            System::MacOs => &self.macos,
        }
    }

    /// The row of a call with this answer.
    pub fn check(&self, call: &str, answer: Answer) -> Check {
        let Expectation { text, source } = *self.here();
        Check {
            call: call.to_owned(),
            answer: answer.text,
            expected: text.to_owned(),
            verdict: answer.verdict,
            source: source.to_owned(),
        }
    }
}

/// A call that needs a target.
pub struct TargetCheck {
    /// The name of the call.
    pub call: &'static str,
    /// What it is expected to answer.
    pub expected: Expectations,
    /// How it is asked.
    pub ask: Ask,
}

/// How a target is asked.
#[derive(Clone, Copy)]
pub enum Ask {
    /// Opens the sandbox, or makes it. The worker does this one.
    Open,
    /// About the mount that the target lies on.
    Mount(fn(&CheckedTarget<'_>) -> Answer),
    /// With files in the scratch folder.
    Files(fn(&CheckedTarget<'_>, &Scratch) -> Result<Answer, RunError>),
    /// Removes what was made. The worker does this one.
    Remove,
}

/// What a check of a target works with.
pub struct CheckedTarget<'a> {
    /// The way to the target's files.
    pub context: &'a Context<'a>,
    /// The target.
    pub target: &'a Target,
    /// The mount that it lies on and the protocol that was negotiated there; `None` where no mount was found.
    pub reached: Option<(&'a Mount, &'a Protocol)>,
}

impl CheckedTarget<'_> {
    /// How the target is reached.
    fn protocol(&self) -> Option<&Protocol> {
        self.reached.map(|(_, protocol)| protocol)
    }
}

/// A call that needs no target.
#[derive(Clone, Copy)]
pub struct MachineCheck {
    /// The name of the call.
    pub call: &'static str,
    /// What it is expected to answer.
    pub expected: Expectations,
    /// How it is asked.
    pub question: Question,
}

/// How the machine is asked.
#[derive(Clone, Copy)]
pub enum Question {
    /// A call of this process.
    Call(fn() -> Answer),
    /// A tool of the operating system, as a child process.
    Tool(&'static Tool),
}

impl MachineCheck {
    /// Makes the call.
    pub fn answer(&self) -> Answer {
        match self.question {
            Question::Call(ask) => ask(),
            Question::Tool(tool) => tools::judge(tool, platform::ask_tool(tool).as_deref()),
        }
    }
}

/// The first check of a target.
const OPEN: TargetCheck = TargetCheck {
    call: "sandbox",
    expected: Expectations {
        linux: Expectation { text: "opened, or made", source: "mkdir(2), openat(2)" },
        macos: Expectation {
            text: "opened, or made; EPERM is a privacy refusal (Files & Folders)",
            source: "man mkdir(2), open(2); Apple TN3179 and public threads on TCC",
        },
    },
    ask: Ask::Open,
};

/// The last check of a target.
const REMOVE: TargetCheck = TargetCheck {
    call: "removal",
    expected: Expectations {
        linux: Expectation { text: "nothing that the self-check made stays", source: "unlink(2), rmdir(2)" },
        macos: Expectation {
            text: "nothing that the self-check made stays, no ._ file either",
            source: "xnu bsd/vfs/vfs_xattr.c, xattrfile_remove",
        },
    },
    ask: Ask::Remove,
};

/// Every call that needs a target, in the order in which they are made.
pub fn target_checks() -> impl Iterator<Item = &'static TargetCheck> {
    const GROUPS: [&[TargetCheck]; 8] = [
        mount::CHECKS,
        &[OPEN],
        listing::CHECKS,
        attributes::CHECKS,
        names::CHECKS,
        replace::CHECKS,
        cache::CHECKS,
        &[REMOVE],
    ];
    GROUPS.into_iter().flatten()
}

/// Every call that needs no target, in the order in which they are made.
pub fn machine_checks() -> impl Iterator<Item = MachineCheck> {
    machine::CHECKS.iter().chain(surroundings::CHECKS).copied().chain(tools::checks())
}

/// The check with this name.
pub fn target_check(call: &str) -> Option<&'static TargetCheck> {
    target_checks().find(|check| check.call == call)
}

/// Milliseconds since a reading of the monotonic clock.
fn milliseconds_since(began_ns: u64) -> String {
    let milliseconds = platform::monotonic_ns().saturating_sub(began_ns) as f64 / 1e6;
    if milliseconds < 10.0 { format!("{milliseconds:.2} ms") } else { format!("{milliseconds:.0} ms") }
}

#[cfg(test)]
mod tests;
