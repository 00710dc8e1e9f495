//! The thread that notifies the user. It reads the status that the service publishes, so the service never waits for it,
//! and it sends only between rounds.

mod channel;
mod events;
mod heartbeat;
mod messages;
mod thread;

use std::thread::Builder;

use longhaul_measure::command_thread::CommandThread;
use longhaul_service::config::Config;

pub use thread::NotifierDeps;
use thread::NotifierThread;

/// Stack of the thread. A report is built on it.
const STACK_BYTES: usize = 2 << 20;

/// Handle of the notifier thread.
pub struct Notifier(CommandThread<Config>);

impl Notifier {
    /// Starts the thread. It does nothing until [`Notifier::configure`] is called.
    pub fn start(deps: NotifierDeps) -> std::io::Result<Self> {
        let thread = Builder::new().name("notifier".to_owned()).stack_size(STACK_BYTES);
        let report = deps.handle.problem_reporter("notifications");
        CommandThread::start(thread, |configs| NotifierThread::new(deps).run(configs), report).map(Self)
    }

    /// Applies a new configuration.
    pub fn configure(&self, config: Config) {
        self.0.send(config);
    }

    /// Stops the thread. Returns within two seconds: a thread that still waits for a receiver is left behind, and its
    /// message is not repeated after the next start, because it may have arrived.
    pub fn stop(&self) {
        self.0.stop();
    }
}
