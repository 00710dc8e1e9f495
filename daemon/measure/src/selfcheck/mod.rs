//! The self-check makes every platform call once, and reports the answer, the expected answer, and the source of
//! the expectation.
//!
//! [`target_checks`] need a target, so a worker process runs them in a scratch folder of the sandbox.
//! [`machine_checks`] access no target and can run in any process. Answers contain no name, path or address: they
//! consist of fixed words, numbers and error names. [`Redaction`] replaces private words that get into an answer
//! anyway.

mod attributes;
mod cache;
mod check;
mod environment;
mod listing;
mod machine;
mod mount;
mod redaction;
mod replacement;
mod scratch;
mod scratch_names;
mod shape;
mod tools;

pub(crate) use attributes::{TEST_TIME_NS, time_resolution};
pub use check::{
    Check, CheckAnswer, CheckOutcome, CheckedTarget, Expectation, Expectations, MachineCheck,
    MachineCheckMethod, TargetCheck, TargetCheckMethod, error_text,
};
pub(crate) use listing::finder_info;
pub use redaction::Redaction;
pub use scratch::{ListedEntry, ScratchFolder};
pub use scratch_names::owns;

/// Machine id in the name of a sandbox that a self-check creates while there is no database with a machine id yet.
pub const SELFCHECK_MACHINE_ID: &str = "selfcheck";

/// First check of a target that accesses files: opens or creates the sandbox.
const OPEN_CHECK: TargetCheck = TargetCheck::named("sandbox", TargetCheckMethod::Open)
    .linux("opened or created", "mkdir(2), openat(2)")
    .macos(
        "opened or created; EPERM means blocked by privacy settings (Files & Folders)",
        "man mkdir(2), open(2); Apple TN3179 and public threads on TCC",
    );

/// Last check of a target: removes everything that the self-check created.
const REMOVE_CHECK: TargetCheck = TargetCheck::named("removal", TargetCheckMethod::Remove)
    .linux("every file of the self-check is removed", "unlink(2), rmdir(2)")
    .macos(
        "every file of the self-check is removed, including ._ files",
        "xnu bsd/vfs/kpi_vfs.c:5285, xattrfile_remove",
    );

/// Returns all checks that need a target, in the order in which they run.
pub fn target_checks() -> impl Iterator<Item = &'static TargetCheck> {
    const GROUPS: [&[TargetCheck]; 7] = [
        mount::CHECKS,
        &[OPEN_CHECK],
        listing::CHECKS,
        attributes::CHECKS,
        replacement::CHECKS,
        cache::CHECKS,
        &[REMOVE_CHECK],
    ];
    GROUPS.into_iter().flatten()
}

/// Returns all checks that need no target, in the order in which they run.
pub fn machine_checks() -> impl Iterator<Item = MachineCheck> {
    machine::CHECKS.iter().chain(environment::CHECKS).copied().chain(tools::checks())
}

/// Returns the target check with this name; `None` if there is none.
pub fn target_check(call: &str) -> Option<&'static TargetCheck> {
    target_checks().find(|check| check.name == call)
}

#[cfg(test)]
mod tests;
