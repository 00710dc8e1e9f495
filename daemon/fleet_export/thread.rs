//! The loop of the thread: waits until an export is due and no round is running, and runs it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use longhaul_measure::platform;
use longhaul_service::config::FleetConfig;
use longhaul_service::status::FleetExportStatus;

use super::FleetExportDeps;
use super::process::ExportProcess;
use super::times::{ExportEnd, ExportTimes};

/// Interval at which it is checked whether an export is due.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Interval at which a running export is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time that an export may take.
const EXPORT_TIMEOUT: Duration = Duration::from_mins(10);
/// Time that a killed process has to end before the thread no longer waits for it.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// Code of the problem that no export was complete for days.
const PROBLEM: &str = "fleet-export";

/// State of the thread.
pub struct FleetThread {
    deps: FleetExportDeps,
    times: ExportTimes,
    /// Missing while no collection is configured.
    status: Option<FleetExportStatus>,
    /// A process that was killed and has not ended yet, because the share does not answer.
    stuck: Option<ExportProcess>,
}

impl FleetThread {
    /// Creates the state of a thread that is not configured.
    pub fn new(deps: FleetExportDeps) -> Self {
        Self { deps, times: ExportTimes::at_start(platform::wall_clock()), status: None, stuck: None }
    }

    /// Runs until the service stops.
    pub fn run(&mut self, configs: &Receiver<FleetConfig>) {
        let mut next = configs.recv().ok();
        while let Some(config) = next {
            self.configure(config.to);
            next = self.export_until_next(configs);
        }
    }

    fn configure(&mut self, to: Option<String>) {
        if self.status.as_ref().map(|status| &status.to) != to.as_ref() {
            self.deps.handle.clear_problem(PROBLEM);
            self.times = ExportTimes::at_start(platform::wall_clock());
            let next_try_us = Some(self.times.next);
            self.status = to.map(|to| FleetExportStatus { to, next_try_us, ..FleetExportStatus::default() });
        }
        self.publish();
    }

    /// Exports whenever it is due, until the next configuration. `None`: the service has stopped.
    fn export_until_next(&mut self, configs: &Receiver<FleetConfig>) -> Option<FleetConfig> {
        loop {
            let config = match self.status {
                None => configs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => configs.recv_timeout(POLL_INTERVAL),
            };
            match config {
                Ok(config) => return Some(config),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.is_due() => {
                    if let Err(next) = self.export(configs) {
                        return next;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns whether to export now: no process is left, and it is time.
    fn is_due(&mut self) -> bool {
        let has_ended = self.stuck.as_mut().is_none_or(|process| process.ended().is_some());
        if has_ended {
            self.stuck = None;
        }
        has_ended && self.times.is_due(platform::wall_clock())
    }

    /// Runs an export, unless a round is running or about to start. The next configuration, or the stop of the
    /// service (`None`), ends it and is returned as the error.
    fn export(&mut self, configs: &Receiver<FleetConfig>) -> Result<(), Option<FleetConfig>> {
        let handle = Arc::clone(&self.deps.handle);
        handle.export_pause.set_next_round(handle.status().and_then(|status| status.next_round_us));
        let Some(_permit) = handle.export_pause.try_acquire() else { return Ok(()) };
        let end = match ExportProcess::start(&self.deps) {
            Ok(process) => self.wait(process, configs)?,
            Err(error) => ExportEnd::Failed(format!("cannot start {}: {error}", self.deps.program.display())),
        };
        self.record(&end);
        Ok(())
    }

    /// Waits for the end of an export, and ends it when a round begins, a configuration arrives, the service stops, or its
    /// time is over.
    fn wait(
        &mut self,
        mut process: ExportProcess,
        configs: &Receiver<FleetConfig>,
    ) -> Result<ExportEnd, Option<FleetConfig>> {
        let started = Instant::now();
        loop {
            if let Some(end) = process.ended() {
                return Ok(end);
            }
            let next = configs.recv_timeout(CHECK_INTERVAL);
            if matches!(next, Err(RecvTimeoutError::Timeout)) {
                let end = if self.deps.handle.export_pause.is_paused() {
                    ExportEnd::Interrupted
                } else if started.elapsed() >= EXPORT_TIMEOUT {
                    ExportEnd::Failed(format!(
                        "it was not complete after {} min",
                        EXPORT_TIMEOUT.as_secs() / 60
                    ))
                } else {
                    continue;
                };
                self.kill(process);
                return Ok(end);
            }
            self.kill(process);
            return Err(next.ok());
        }
    }

    /// Ends a process, and keeps it if it does not end.
    fn kill(&mut self, mut process: ExportProcess) {
        process.kill();
        let killed = Instant::now();
        while process.ended().is_none() {
            if killed.elapsed() >= KILL_TIMEOUT {
                self.stuck = Some(process);
                return;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Records the end of an export: in the status, in the log, and as a problem if none was complete for days.
    fn record(&mut self, end: &ExportEnd) {
        let now = platform::wall_clock();
        self.times = self.times.after(end, now);
        let Some(status) = &mut self.status else { return };
        status.next_try_us = Some(self.times.next);
        match end {
            ExportEnd::Complete => {
                (status.last_export_us, status.last_failure) = (Some(now), None);
                self.deps.handle.clear_problem(PROBLEM);
                tracing::info!(to = status.to, "results exported");
            }
            ExportEnd::Interrupted => {
                tracing::debug!(to = status.to, "a round interrupted the export of results")
            }
            ExportEnd::Failed(reason) => {
                status.last_failure = Some(reason.clone());
                tracing::info!(to = status.to, reason, "results were not exported");
            }
        }
        if self.times.is_problem(now) {
            let reason = status.last_failure.as_deref().unwrap_or("a round began during each export");
            let text = format!("no complete export of results to {} for three days: {reason}", status.to);
            self.deps.handle.raise_problem(PROBLEM, text, now);
        }
        self.publish();
    }

    fn publish(&self) {
        self.deps.handle.set_fleet_export(self.status.clone());
    }
}

impl Drop for FleetThread {
    fn drop(&mut self) {
        if let Some(process) = &mut self.stuck {
            process.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::sync::mpsc::channel;

    use longhaul_service::handle::ServiceHandle;

    use super::*;

    /// Returns a thread whose exports are this shell script, in this folder.
    fn thread(folder: &Path, script: &str) -> FleetThread {
        let program = folder.join("longhaul");
        let text = format!("#!/bin/sh\ncd {}\n{script}\n", folder.display());
        // Written by another process: a program that any process has open for writing cannot be started (ETXTBSY), and a process
        // that another test starts inherits what is open here.
        let write = "printf %s \"$1\" >\"$0\" && chmod 700 \"$0\"";
        let written = Command::new("sh").args(["-c", write]).arg(&program).arg(text).status().unwrap();
        assert!(written.success());
        let (handle, database) = (Arc::new(ServiceHandle::default()), folder.join("longhaul.sqlite"));
        let mut thread = FleetThread::new(FleetExportDeps { handle, database, config: None, program });
        thread.configure(Some("/Volumes/fleet".to_owned()));
        thread
    }

    /// Runs an export that never ends by itself, and calls `interrupt` once it is running.
    fn interrupted(
        interrupt: impl FnOnce(&ServiceHandle, &std::sync::mpsc::Sender<FleetConfig>),
    ) -> (FleetThread, Result<(), Option<FleetConfig>>) {
        let folder = tempfile::tempdir().unwrap();
        let mut thread = thread(folder.path(), "touch started; exec sleep 1000");
        let handle = Arc::clone(&thread.deps.handle);
        let (sender, configs) = channel();
        let export = std::thread::spawn(move || {
            let end = thread.export(&configs);
            (thread, end)
        });
        while !folder.path().join("started").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        interrupt(&handle, &sender);
        export.join().unwrap()
    }

    #[test]
    fn round_ends_a_running_export() {
        let before = platform::wall_clock();
        // The pause returns when the export has ended; without that the test would hang.
        let (thread, end) =
            interrupted(|handle, _| drop(handle.export_pause.pause(Duration::from_secs(1000))));
        assert!(end.is_ok() && thread.stuck.is_none());
        let status = thread.status.as_ref().unwrap();
        assert!(status.last_failure.is_none() && status.last_export_us.is_none());
        assert!(thread.times.next.since(before) < Duration::from_hours(1), "it is continued soon");
    }

    #[test]
    fn configuration_ends_a_running_export() {
        let (thread, end) = interrupted(|_, configs| configs.send(FleetConfig::default()).unwrap());
        assert!(end == Err(Some(FleetConfig::default())) && thread.stuck.is_none());
    }

    #[test]
    fn failed_export_tells_its_reason_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut thread =
            thread(folder.path(), "echo 'longhaul: no folder' >&2; echo '  mount it' >&2; exit 1");
        let (_sender, configs) = channel();
        assert!(thread.export(&configs).is_ok());
        assert_eq!(thread.status.as_ref().unwrap().last_failure.as_deref(), Some("no folder: mount it"));
        std::fs::remove_file(&thread.deps.program).unwrap();
        assert!(thread.export(&configs).is_ok());
        let reason = thread.status.as_ref().unwrap().last_failure.clone().unwrap();
        assert!(reason.starts_with("cannot start") && reason.contains("/longhaul: No such file"), "{reason}");
    }

    #[test]
    fn export_with_more_messages_than_a_pipe_holds_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut thread = thread(folder.path(), "head -c 200000 /dev/zero | tr '\\0' a >&2; exit 1");
        let (_sender, configs) = channel();
        assert!(thread.export(&configs).is_ok());
        let reason = thread.status.as_ref().unwrap().last_failure.clone().unwrap();
        assert_eq!(reason, "a".repeat(4096), "the first messages");
    }

    #[test]
    fn exports_that_rounds_interrupt_for_days_are_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let mut thread = thread(folder.path(), "");
        thread.deps.handle.publish(longhaul_demo::status(&folder.path().join("longhaul.sqlite")));
        let codes = |thread: &FleetThread| {
            let problems = thread.deps.handle.status().unwrap().problems;
            problems.into_iter().map(|problem| problem.code).collect::<Vec<_>>()
        };
        thread.record(&ExportEnd::Interrupted);
        assert_eq!(codes(&thread), [""; 0]);
        thread.times = ExportTimes::at_start(platform::wall_clock() - Duration::from_hours(73));
        thread.record(&ExportEnd::Interrupted);
        assert_eq!(codes(&thread), [PROBLEM]);
        thread.record(&ExportEnd::Complete);
        assert_eq!(codes(&thread), [""; 0]);
    }

    #[test]
    fn no_export_begins_during_a_round() {
        let folder = tempfile::tempdir().unwrap();
        let mut thread = thread(folder.path(), "touch started");
        let handle = Arc::clone(&thread.deps.handle);
        let (_sender, configs) = channel();
        let round = handle.export_pause.pause(Duration::ZERO);
        assert!(thread.export(&configs).is_ok() && !folder.path().join("started").exists());
        drop(round);
        assert!(thread.export(&configs).is_ok() && folder.path().join("started").exists());
    }
}
