//! The thread that exports this machine's results into the collection of many machines: once a day, and never during a round.
//!
//! The export is `longhaul export fleet` in a process of its own. A share that no longer answers then keeps that process waiting,
//! and not the service; and a round that begins ends it. The next export continues where it was.

mod process;
mod thread;
mod times;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;

use longhaul_measure::command_thread::CommandThread;
use longhaul_service::config::{Config, FleetConfig};
use longhaul_service::handle::ServiceHandle;

use thread::FleetThread;

/// Everything that the exports need from the service.
pub struct FleetExportDeps {
    /// Handle of the service: its rounds, and its status.
    pub handle: Arc<ServiceHandle>,
    /// Path of the database.
    pub database: PathBuf,
    /// Path of the configuration file. `None`: there is none.
    pub config: Option<PathBuf>,
    /// Path of the program `longhaul`.
    pub program: PathBuf,
}

/// Handle of the thread.
pub struct FleetExport(CommandThread<FleetConfig>);

impl FleetExport {
    /// Starts the thread. It does nothing until [`FleetExport::configure`] names a collection.
    pub fn start(deps: FleetExportDeps) -> std::io::Result<Self> {
        let thread = Builder::new().name("fleet-export".to_owned()).stack_size(256 << 10);
        let report = deps.handle.problem_reporter("fleet-export");
        CommandThread::start(thread, |configs| FleetThread::new(deps).run(configs), report).map(Self)
    }

    /// Applies a new configuration.
    pub fn configure(&self, config: &Config) {
        self.0.send(config.fleet.clone());
    }

    /// Ends an export that is running, and the thread. Returns within two seconds.
    pub fn stop(&self) {
        self.0.stop();
    }
}
