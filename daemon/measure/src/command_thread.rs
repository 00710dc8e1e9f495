//! A thread that waits for commands, works beside the service, and is left behind if it does not end in time.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use parking_lot::Mutex;

/// Maximum time that [`CommandThread::stop`] waits for the thread.
const STOP_TIMEOUT: Duration = Duration::from_millis(1500);

/// Handle of a thread that takes commands.
#[derive(Debug)]
pub struct CommandThread<C> {
    commands: Sender<C>,
    /// Closed by the end of the thread; nothing is sent on it.
    finished: Mutex<Receiver<()>>,
}

impl<C: Send + 'static> CommandThread<C> {
    /// Starts the thread. It runs `work` with its commands.
    ///
    /// # Errors
    ///
    /// The error of the operating system if no thread can be created.
    pub fn start(thread: Builder, work: impl FnOnce(&Receiver<C>) + Send + 'static) -> io::Result<Self> {
        let (commands, receiver) = channel();
        let (end, finished) = channel();
        thread.spawn(move || {
            let _end: Sender<()> = end;
            work(&receiver);
        })?;
        Ok(Self { commands, finished: Mutex::new(finished) })
    }

    /// Sends a command. It is lost if the thread has ended.
    pub fn send(&self, command: C) {
        let _ = self.commands.send(command);
    }

    /// Sends the last command and waits for the end of the thread, for less than two seconds. A thread that still waits for a server is
    /// left behind.
    pub fn stop(&self, last: C) {
        self.send(last);
        let _ = self.finished.lock().recv_timeout(STOP_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use super::*;

    #[test]
    fn stopping_waits_for_what_was_ordered_before() {
        let sum = Arc::new(AtomicU32::new(0));
        let shared = Arc::clone(&sum);
        let work = move |commands: &Receiver<u32>| {
            for command in commands.iter().take_while(|command| *command > 0) {
                shared.fetch_add(command, Ordering::Relaxed);
            }
        };
        let thread = CommandThread::start(Builder::new(), work).unwrap();
        thread.send(3);
        thread.send(4);
        thread.stop(0);
        assert_eq!(sum.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn thread_that_does_not_end_is_left_behind() {
        let (_held, never) = channel::<()>();
        let thread = CommandThread::start(Builder::new(), move |_| never.recv().unwrap_or_default()).unwrap();
        let began = Instant::now();
        thread.stop(());
        assert!(began.elapsed() >= STOP_TIMEOUT);
    }
}
