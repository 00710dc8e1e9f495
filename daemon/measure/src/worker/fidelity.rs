//! The steps of a check of fidelity: one property each, and the removal of everything that was created.

use super::message::FidelityStep;
use super::state::Worker;
use crate::checks::fidelity::{self, PropertyFolder};
use crate::error::RunError;
use crate::sandbox::{CleanMode, Sandbox};
use crate::selfcheck::error_text;
use longhaul_model::{Finding, Property};

impl Worker {
    /// Makes one step and returns its finding; `None` if it checks no property.
    pub fn check_fidelity(&self, step: FidelityStep) -> Result<Option<Finding>, RunError> {
        self.held_lock.take();
        match step {
            FidelityStep::Check(property) => self.check_property(property).map(Some),
            FidelityStep::HoldLock => self.with_sandbox(|sandbox| self.hold_lock(sandbox)),
            FidelityStep::TryLock(sandbox) => {
                fidelity::try_lock(&self.untracked_fs(), &self.setup.target.path, &sandbox)
            }
            FidelityStep::Finish => self.finish_fidelity().map(|()| None),
        }
    }

    fn check_property(&self, property: Property) -> Result<Finding, RunError> {
        if let Some(finding) = fidelity::untestable(property) {
            return Ok(finding);
        }
        self.with_sandbox(|sandbox| self.check_in(sandbox, property))
    }

    /// Does something in the sandbox, which stays open for the next step.
    fn with_sandbox<T>(&self, work: impl FnOnce(&Sandbox) -> Result<T, RunError>) -> Result<T, RunError> {
        // Opening the sandbox reads its marker and its manifest: too many requests to repeat for each property.
        let sandbox = match self.checked_sandbox.take() {
            Some(sandbox) => sandbox,
            None => self.open_sandbox()?.0,
        };
        // An error drops the sandbox, so that it is opened again after a reconnect.
        let done = work(&sandbox)?;
        self.checked_sandbox.replace(Some(sandbox));
        Ok(done)
    }

    /// Holds a lock until the next step. Returns a finding if the target refuses it.
    fn hold_lock(&self, sandbox: &Sandbox) -> Result<Option<Finding>, RunError> {
        let context = self.untracked_fs();
        let place = PropertyFolder::create(sandbox, Property::LockAcrossMounts, None, &context)?;
        match fidelity::hold_lock(&place)? {
            Ok(file) => self.held_lock.replace(Some(file)),
            Err(finding) => return Ok(Some(finding)),
        };
        Ok(None)
    }

    fn check_in(&self, sandbox: &Sandbox, property: Property) -> Result<Finding, RunError> {
        let context = self.untracked_fs();
        let mount = self.mount.borrow();
        let protocol = mount.as_ref().map(|mount| &mount.protocol);
        let mut place = PropertyFolder::create(sandbox, property, protocol, &context)?;
        let found = fidelity::check(property, &mut place);
        let removed = place.remove();
        let mut finding = found?;
        if let Err(error) = removed {
            finding.detail = format!("{}; files not removed: {}", finding.detail, error_text(&error));
            finding.detail = finding.detail.trim_start_matches("; ").to_owned();
        }
        Ok(finding)
    }

    /// Removes what is left of the check, and the sandbox if this process created it for the check.
    fn finish_fidelity(&self) -> Result<(), RunError> {
        self.checked_sandbox.take();
        let context = self.untracked_fs();
        let Some(sandbox) = Sandbox::open_existing(&self.sandbox_location(), &context)? else {
            return Ok(());
        };
        fidelity::remove(&sandbox, &context)?;
        if self.made_sandbox.replace(false) {
            sandbox.clean(CleanMode::Remove, &context, &|folder, path| self.owns(folder, path))?;
        }
        Ok(())
    }
}
