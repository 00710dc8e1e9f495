//! The thread that notifies the user. It reads the status that the service publishes, so the service never waits for it,
//! and it sends only between rounds.

mod channel;
mod deps;
mod events;
mod heartbeat;
mod messages;
mod thread;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use longhaul_service::config::Config;
use parking_lot::Mutex;

pub use deps::NotifierDeps;
use thread::{NotifierCommand, NotifierThread};

/// Maximum time that [`Notifier::stop`] waits for the thread.
const STOP_TIMEOUT: Duration = Duration::from_millis(1500);
/// Stack of the thread. A report is built on it.
const STACK_BYTES: usize = 2 << 20;

/// Handle of the notifier thread.
pub struct Notifier {
    commands: Sender<NotifierCommand>,
    finished: Mutex<Receiver<()>>,
}

impl Notifier {
    /// Starts the thread. It does nothing until [`Notifier::configure`] is called.
    pub fn start(deps: NotifierDeps) -> std::io::Result<Self> {
        let (commands, receiver) = channel();
        let (end_sender, end_receiver) = channel();
        let work = move || {
            let _end: Sender<()> = end_sender;
            NotifierThread::new(deps).run(&receiver);
        };
        std::thread::Builder::new().name("notifier".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        Ok(Self { commands, finished: Mutex::new(end_receiver) })
    }

    /// Applies a new configuration.
    pub fn configure(&self, config: Config) {
        let _ = self.commands.send(NotifierCommand::Configure(Box::new(config)));
    }

    /// Stops the thread. Returns within two seconds: a thread that still waits for a receiver is left behind, and its
    /// message is not repeated after the next start, because it may have arrived.
    pub fn stop(&self) {
        let _ = self.commands.send(NotifierCommand::Stop);
        let _ = self.finished.lock().recv_timeout(STOP_TIMEOUT);
    }
}
