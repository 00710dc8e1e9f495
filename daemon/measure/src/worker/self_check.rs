//! The calls of a self-check that need the target: one command, one call, so that the supervisor can limit each.

use std::path::Path;

use super::Worker;
use crate::arena::{Arena, Mode};
use crate::error::RunError;
use crate::selfcheck::{
    self, Answer, Ask, Check, CheckedTarget, MACHINE, Scratch, TargetCheck, error_text, target_check,
};
use crate::{samplers, workloads};

/// Whether longhaul made a file of a sandbox: the path is relative to one of the folders in it.
pub(super) fn is_own(folder: &str, path: &Path) -> bool {
    workloads::owns(folder, path) || samplers::owns(folder, path) || selfcheck::owns(folder, path)
}

impl Worker {
    /// Makes one call; `None` if this worker does not know it.
    pub(super) fn self_check(&self, call: &str) -> Option<Check> {
        let check = target_check(call)?;
        Some(check.expected.check(check.call, self.answer(check)))
    }

    fn answer(&self, check: &TargetCheck) -> Answer {
        let context = self.context();
        let mount = self.mount.borrow();
        let reached = mount.as_ref().map(|reached| (&reached.mount, &reached.protocol));
        let on = CheckedTarget { context: &context, target: &self.setup.target, reached };
        match check.ask {
            Ask::Mount(ask) => ask(&on),
            Ask::Open => {
                self.open_sandbox().map_or_else(|error| Answer::failed(&error), |(_, answer)| answer)
            }
            Ask::Files(ask) => self.with_files(&on, ask),
            Ask::Remove => self.remove_sandbox().unwrap_or_else(|error| Answer::failed(&error)),
        }
    }

    /// Opens the sandbox, and remembers if there was none before.
    fn open_sandbox(&self) -> Result<(Arena, Answer), RunError> {
        let context = self.context();
        if let Some(arena) = Arena::open_existing(&self.claim(), &context)? {
            return Ok((arena, Answer::ok("opened")));
        }
        let arena = Arena::open(&self.claim(), &context)?;
        self.made_sandbox.set(true);
        Ok((arena, Answer::ok("made")))
    }

    fn with_files(
        &self,
        on: &CheckedTarget<'_>,
        ask: fn(&CheckedTarget<'_>, &Scratch) -> Result<Answer, RunError>,
    ) -> Answer {
        let opened = self.open_sandbox().and_then(|(arena, _)| Scratch::make(&arena, on.context));
        let scratch = match opened {
            Ok(scratch) => scratch,
            Err(error) => {
                return Answer::unknown(format!("not asked, without a folder: {}", error_text(&error)));
            }
        };
        let answer = ask(on, &scratch).unwrap_or_else(|error| Answer::failed(&error));
        match scratch.empty(on.context) {
            Ok(()) => answer,
            Err(error) => Answer::differs(format!("{}; its files stay: {}", answer.text, error_text(&error))),
        }
    }

    /// Removes the sandbox if this process made it, or if it belongs to self-checks alone; otherwise only the scratch folder.
    fn remove_sandbox(&self) -> Result<Answer, RunError> {
        let context = self.context();
        let Some(arena) = Arena::open_existing(&self.claim(), &context)? else {
            return Ok(Answer::ok("there is nothing to remove"));
        };
        // Before the sandbox: a share may show a removed file for a moment, which is waited for here.
        let removed = Scratch::make(&arena, &context)?.remove(&context);
        if !self.made_sandbox.get() && self.setup.machine != MACHINE {
            return removed
                .map(|()| Answer::ok("the scratch folder is gone, the sandbox stays as it was before"));
        }
        let report = arena.clean(Mode::Remove, &context, &is_own)?;
        let foreign = report.foreign.len();
        Ok(match report.arena_removed {
            true => Answer::ok("the sandbox is gone"),
            false => Answer::differs(format!("{foreign} files stay that longhaul does not know")),
        })
    }
}
