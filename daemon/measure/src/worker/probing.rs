//! The probe beside the worker's own work.

use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};

use super::{Task, Worker};
use crate::arena::Arena;
use crate::context::Context;
use crate::error::RunError;
use crate::samplers::{Probe, elsewhere};

impl Worker {
    /// Starts the probe if there is a plan for it, and says which file system the target lies on.
    pub(super) fn start_probe(&self, tasks: mpsc::Sender<Task>) -> io::Result<Option<u64>> {
        let Some(plan) = self.setup.probe.clone() else { return Ok(None) };
        let target = &self.setup.target;
        let device = device_of(&target.path, &self.bare_context()).ok();
        let probe = Probe {
            plan,
            path: target.path.clone(),
            target: target.name.clone(),
            machine: self.setup.machine.clone(),
            recorder: Arc::clone(&self.recorder),
            gate: Arc::clone(&self.gate),
            telling: Arc::clone(&self.telling),
            device,
            // That the worker ends is no failure of the probe.
            claim: Box::new(move || drop(tasks.send(Task::Claim))),
        };
        probe.start()?;
        Ok(device)
    }

    /// Makes an arena for the probe, unless the share went meanwhile: then what is there is another file system.
    pub(super) fn claim_for_probe(&self, device: Option<u64>) {
        let context = self.bare_context();
        let path = &self.setup.target.path;
        let claimed = match device_of(path, &context) {
            Ok(found) if device.is_some_and(|known| known != found) => Err(elsewhere(path)),
            _ => Arena::open(&self.claim(), &context).map(drop),
        };
        if let Err(error) = claimed {
            self.telling.lame(error.failure().message);
        }
    }
}

fn device_of(path: &Path, context: &Context<'_>) -> Result<u64, RunError> {
    let folder = context.open_folder_path(path)?;
    folder.device()
}
