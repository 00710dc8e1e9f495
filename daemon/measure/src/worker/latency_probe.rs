//! The latency probe of a worker, and the sandbox that the probe needs.

use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};

use super::state::{LeaderTask, Worker};
use crate::error::RunError;
use crate::samplers::{Probe, file_system_changed};
use crate::sandbox::Sandbox;
use crate::timed_fs::TimedFs;

impl Worker {
    /// Starts the latency probe if the setup contains a probe plan. Returns the device number of the target's file
    /// system; `None` if no probe was started or the number is unknown.
    pub fn start_probe(&self, tasks: mpsc::Sender<LeaderTask>) -> io::Result<Option<u64>> {
        let Some(plan) = self.setup.probe.clone() else { return Ok(None) };
        let target = &self.setup.target;
        let device = device_of(&target.path, &self.untracked_fs()).ok();
        let probe = Probe {
            plan,
            path: target.path.clone(),
            target: target.name.clone(),
            machine: self.setup.machine.clone(),
            recorder: Arc::clone(&self.recorder),
            switch: Arc::clone(&self.probe_switch),
            reporter: Arc::clone(&self.reporter),
            device,
            // Sending fails only while the worker is exiting, which the probe can ignore.
            request_sandbox: Box::new(move || drop(tasks.send(LeaderTask::CreateSandbox))),
        };
        probe.start()?;
        Ok(device)
    }

    /// Creates a sandbox for the latency probe. If the share was unmounted in the meantime, the path belongs to
    /// another file system (`device` differs) and no sandbox is created.
    pub fn create_sandbox_for_probe(&self, device: Option<u64>) {
        let context = self.untracked_fs();
        let path = &self.setup.target.path;
        let created = match device_of(path, &context) {
            Ok(found) if device.is_some_and(|known| known != found) => Err(file_system_changed(path)),
            _ => Sandbox::open_if(&self.sandbox_location(), &context, || self.check_mounted()).map(drop),
        };
        if let Err(error) = created {
            self.reporter.report_disabled(error.failure().message);
        }
    }
}

fn device_of(path: &Path, context: &TimedFs<'_>) -> Result<u64, RunError> {
    let folder = context.open_folder_path(path)?;
    folder.device()
}
