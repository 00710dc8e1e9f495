//! The steps of a freshness session. The supervisor sends each step to the worker that writes or to those that watch.

use super::message::{FreshnessAnswer, FreshnessCommand};
use super::state::Worker;
use crate::checks::freshness::{FOLDER, FreshnessSession, WatchLimit, Watcher, Writer};
use crate::error::RunError;
use crate::sandbox::Sandbox;

impl Worker {
    /// Does one step of a freshness session.
    pub fn freshness(&self, command: &FreshnessCommand) -> Result<FreshnessAnswer, RunError> {
        self.probe_switch.set_running(FOLDER);
        let answer = self.try_freshness(command);
        self.reporter.report_slow_calls(Some(FOLDER));
        self.probe_switch.set_idle();
        answer
    }

    fn try_freshness(&self, command: &FreshnessCommand) -> Result<FreshnessAnswer, RunError> {
        let context = self.timed_fs();
        let done = |()| FreshnessAnswer::Done;
        match command {
            FreshnessCommand::Prepare(session) => self.new_writer()?.prepare(session, &context).map(done),
            FreshnessCommand::Find(session) => self.find_session(session),
            FreshnessCommand::Make(session, after) => {
                self.writer()?.make(session, after, &context).map(FreshnessAnswer::Made)
            }
            FreshnessCommand::Watch(session, limit) => self.watch(session, *limit),
            FreshnessCommand::Confirm(session) => {
                self.writer()?.confirm(session, &context).map(FreshnessAnswer::Confirmed)
            }
            FreshnessCommand::CompareClocks(session) => {
                self.writer()?.compare_clocks(session, &context).map(FreshnessAnswer::Clocks)
            }
            FreshnessCommand::Stamps(session) => {
                self.writer()?.stamps_ns(session, &context).map(FreshnessAnswer::Stamped)
            }
            FreshnessCommand::Remove(session) => match self.existing_sandbox()? {
                Some(sandbox) => Writer::open(&sandbox, &context)?.remove(session, &context).map(done),
                None => Ok(FreshnessAnswer::Done),
            },
        }
    }

    /// Returns the writer of a session that begins.
    fn new_writer(&self) -> Result<Writer, RunError> {
        let context = self.timed_fs();
        Writer::open(&self.mounted_sandbox()?, &context)
    }

    /// Returns the writer of a session that has begun. It creates no sandbox: if the share was unmounted meanwhile, another
    /// file system lies below its path.
    fn writer(&self) -> Result<Writer, RunError> {
        let gone = || {
            let path = &self.setup.target.path;
            RunError::refused(path, "the sandbox of the session is gone", "Check that the share is mounted")
        };
        Writer::open(&self.existing_sandbox()?.ok_or_else(gone)?, &self.timed_fs())
    }

    fn existing_sandbox(&self) -> Result<Option<Sandbox>, RunError> {
        Sandbox::open_existing(&self.sandbox_location(), &self.timed_fs())
    }

    fn find_session(&self, session: &FreshnessSession) -> Result<FreshnessAnswer, RunError> {
        let context = self.timed_fs();
        let path = &self.setup.target.path;
        let Some(watcher) = Watcher::open(session, path, &context)? else {
            return Ok(FreshnessAnswer::NotFound);
        };
        match watcher.see_before(&context)? {
            true => Ok(FreshnessAnswer::Done),
            false => Err(RunError::refused(
                path,
                "the files of a freshness session were not seen in time",
                "The next round tries it again",
            )),
        }
    }

    fn watch(&self, session: &FreshnessSession, limit: WatchLimit) -> Result<FreshnessAnswer, RunError> {
        let context = self.timed_fs();
        match Watcher::open(session, &self.setup.target.path, &context)? {
            Some(watcher) => watcher.watch(limit, &context).map(FreshnessAnswer::Watched),
            None => Ok(FreshnessAnswer::NotFound),
        }
    }
}
