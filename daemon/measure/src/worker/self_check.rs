//! The checks of a self-check that need the target. Each command runs one check, so that the supervisor can apply
//! a timeout to each of them.

use super::state::Worker;
use crate::error::RunError;
use crate::sandbox::{CleanMode, Sandbox};
use crate::selfcheck::{
    Check, CheckAnswer, CheckedTarget, SELFCHECK_MACHINE_ID, ScratchFolder, TargetCheck, TargetCheckMethod,
    error_text, target_check,
};

impl Worker {
    /// Runs one check; returns `None` if this worker does not know a check with this name.
    pub fn self_check(&self, call: &str) -> Option<Check> {
        let check = target_check(call)?;
        Some(check.expected.to_check(check.name, self.answer(check)))
    }

    fn answer(&self, check: &TargetCheck) -> CheckAnswer {
        let context = self.timed_fs();
        let mount = self.mount.borrow();
        let found = mount.as_ref().map(|found| (&found.mount, &found.protocol));
        let on = CheckedTarget { context: &context, target: &self.setup.target, mount: found };
        match check.method {
            TargetCheckMethod::Mount(run) => run(&on),
            TargetCheckMethod::Open => {
                self.open_sandbox().map_or_else(|error| CheckAnswer::failed(&error), |(_, answer)| answer)
            }
            TargetCheckMethod::Files(run) => self.with_files(&on, run),
            TargetCheckMethod::Remove => {
                self.remove_sandbox().unwrap_or_else(|error| CheckAnswer::failed(&error))
            }
        }
    }

    /// Opens the sandbox, or creates it and remembers that this process created it.
    pub(super) fn open_sandbox(&self) -> Result<(Sandbox, CheckAnswer), RunError> {
        let context = self.timed_fs();
        if let Some(sandbox) = Sandbox::open_existing(&self.sandbox_location(), &context)? {
            return Ok((sandbox, CheckAnswer::ok("opened")));
        }
        let sandbox = self.mounted_sandbox()?;
        self.made_sandbox.set(true);
        Ok((sandbox, CheckAnswer::ok("created")))
    }

    fn with_files(
        &self,
        on: &CheckedTarget<'_>,
        run: fn(&CheckedTarget<'_>, &ScratchFolder) -> Result<CheckAnswer, RunError>,
    ) -> CheckAnswer {
        let opened = self.open_sandbox().and_then(|(sandbox, _)| ScratchFolder::create(&sandbox, on.context));
        let scratch = match opened {
            Ok(scratch) => scratch,
            Err(error) => {
                return CheckAnswer::unknown(format!(
                    "not checked, because there is no scratch folder: {}",
                    error_text(&error)
                ));
            }
        };
        let answer = run(on, &scratch).unwrap_or_else(|error| CheckAnswer::failed(&error));
        match scratch.empty(on.context) {
            Ok(()) => answer,
            Err(error) => {
                CheckAnswer::differs(format!("{}; files not removed: {}", answer.text, error_text(&error)))
            }
        }
    }

    /// Removes the sandbox if this process created it, or if it is only used by self-checks; otherwise removes
    /// only the scratch folder.
    fn remove_sandbox(&self) -> Result<CheckAnswer, RunError> {
        let context = self.timed_fs();
        let Some(sandbox) = Sandbox::open_existing(&self.sandbox_location(), &context)? else {
            return Ok(CheckAnswer::ok("there is nothing to remove"));
        };
        // The scratch folder is removed before the sandbox, because a share may list a removed file for a moment
        // longer, and `ScratchFolder::remove` waits until it has disappeared.
        let removed = ScratchFolder::create(&sandbox, &context)?.remove(&context);
        if !self.made_sandbox.get() && self.setup.machine != SELFCHECK_MACHINE_ID {
            return removed.map(|()| {
                CheckAnswer::ok("the scratch folder is removed, the sandbox stays as it was before")
            });
        }
        let report = sandbox.clean(CleanMode::Remove, &context, &|folder, path| self.owns(folder, path))?;
        let foreign = report.foreign_count;
        Ok(match report.sandbox_removed {
            true => CheckAnswer::ok("the sandbox is removed"),
            false => CheckAnswer::differs(format!("the sandbox stays: it contains {foreign} foreign files")),
        })
    }
}
