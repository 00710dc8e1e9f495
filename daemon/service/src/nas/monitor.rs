//! Reads the NAS just before and just after each run.

use std::cell::Cell;
use std::time::Duration;

use longhaul_model::{Hint, NasProblem, NasUse, RunNasUse, Target};
use longhaul_nas::{NasReader, NasSettings, TimedReading};
use longhaul_store::Writer;

/// Longest time that a run waits for a reading.
pub const RUN_LIMIT: Duration = Duration::from_secs(1);
/// Number of failed readings in a row after which a NAS is not asked again in this round.
const MAX_FAILURES: u32 = 3;

/// Reads a NAS around the runs of one round.
#[derive(Debug)]
pub struct NasMonitor {
    settings: NasSettings,
    reader: NasReader,
    failures: Cell<u32>,
}

/// Reading before a run, or the reason why there is none.
#[derive(Debug)]
pub struct ReadingBefore(Result<TimedReading, NasProblem>);

impl NasMonitor {
    /// Creates the monitor of a round.
    pub fn new(settings: &NasSettings) -> Self {
        let reader = NasReader::start(settings.source.clone());
        Self { settings: settings.clone(), reader, failures: Cell::new(0) }
    }

    /// Reads the NAS before a run, for a second at most: the reading ends before the run begins. `None`: the target is
    /// not on this NAS.
    pub fn read_before(&self, target: &Target) -> Option<ReadingBefore> {
        self.settings.covers(target).then(|| ReadingBefore(self.read()))
    }

    /// Reads the NAS after a run, for a second at most, and returns its use since the reading before.
    pub fn use_since(&self, before: ReadingBefore) -> Result<NasUse, NasProblem> {
        let before = before.0?;
        let after = self.read()?;
        let elapsed = after.at.saturating_duration_since(before.at);
        NasUse::between(&before.reading, &after.reading, elapsed).ok_or(NasProblem::Reset)
    }

    fn read(&self) -> Result<TimedReading, NasProblem> {
        if self.failures.get() >= MAX_FAILURES {
            return Err(NasProblem::NotAsked);
        }
        match self.reader.read(RUN_LIMIT) {
            Ok(reading) => {
                self.failures.set(0);
                Ok(reading)
            }
            Err(error) => {
                self.failures.set(self.failures.get() + 1);
                // Without the message: the log can be sent as telemetry, and the message names the NAS.
                tracing::info!(problem = error.problem.name(), "the NAS was not read");
                Err(error.problem)
            }
        }
    }
}

/// Stores the use of the NAS during a stored run. Its loss is no failure of the round.
pub fn store_use(writer: &Writer, run: i64, found: Option<Result<NasUse, NasProblem>>) {
    let Some(found) = found else { return };
    if let Err(error) = writer.add_nas_use(RunNasUse { run, found }) {
        tracing::warn!(run, error = error.one_line(), "the use of the NAS was not stored");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Role;
    use longhaul_nas::NasSource;

    fn target(role: Role) -> Target {
        Target { name: "smb".parse().unwrap(), path: "/a".into(), role }
    }

    /// A NAS on a port of this computer on which nothing listens.
    fn silent() -> NasSettings {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let source = NasSource::NodeExporter(format!("http://127.0.0.1:{port}/metrics"));
        NasSettings { source, targets: None }
    }

    #[test]
    fn baseline_is_not_on_the_nas() {
        let monitor = NasMonitor::new(&silent());
        assert!(monitor.read_before(&target(Role::Baseline)).is_none());
        assert!(monitor.read_before(&target(Role::Share)).is_some());
    }

    #[test]
    fn nas_that_fails_three_times_is_not_asked_again() {
        let monitor = NasMonitor::new(&silent());
        let problems: Vec<_> = (0..4)
            .map(|_| monitor.use_since(monitor.read_before(&target(Role::Share)).unwrap()).unwrap_err())
            .collect();
        let unreachable = NasProblem::Unreachable;
        assert_eq!(problems, [unreachable, unreachable, unreachable, NasProblem::NotAsked]);
    }
}
