//! A thread that waits for commands, works beside the service, and is left behind if it does not end in time.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use parking_lot::Mutex;

/// Maximum time that [`CommandThread::stop`] waits for the thread.
const STOP_TIMEOUT: Duration = Duration::from_millis(1500);

/// Handle of a thread that takes commands.
#[derive(Debug)]
pub struct CommandThread<C> {
    /// `None`: the thread was stopped.
    commands: Mutex<Option<Sender<C>>>,
    /// Closed by the end of the thread; nothing is sent on it.
    finished: Mutex<Receiver<()>>,
}

impl<C: Send + 'static> CommandThread<C> {
    /// Starts the thread. It runs `work` with its commands, which ends when there are no more. If it panics, `report` gets a text
    /// that says so: nothing waits for the thread, so that its end would go unnoticed.
    ///
    /// # Errors
    ///
    /// The error of the operating system if no thread can be created.
    pub fn start(
        thread: Builder,
        work: impl FnOnce(&Receiver<C>) + Send + 'static,
        report: impl FnOnce(String) + Send + 'static,
    ) -> io::Result<Self> {
        let (commands, receiver) = channel();
        let (end, finished) = channel();
        thread.spawn(move || {
            let _end: Sender<()> = end;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(&receiver))) {
                report(format!(
                    "stopped because of a mistake in longhaul ({}): restart with `longhaul service restart`",
                    message(panic.as_ref())
                ));
            }
        })?;
        Ok(Self { commands: Mutex::new(Some(commands)), finished: Mutex::new(finished) })
    }

    /// Sends a command. It is lost if the thread has ended.
    pub fn send(&self, command: C) {
        if let Some(commands) = &*self.commands.lock() {
            let _ = commands.send(command);
        }
    }

    /// Ends the commands and waits for the end of the thread, for less than two seconds. A thread that still waits for a server is left
    /// behind.
    pub fn stop(&self) {
        self.commands.lock().take();
        let _ = self.finished.lock().recv_timeout(STOP_TIMEOUT);
    }
}

/// Returns the first line of the message of a panic: a problem in the status is one line.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.and_then(|text| text.lines().next()).unwrap_or("no message")
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
            for command in commands {
                shared.fetch_add(command, Ordering::Relaxed);
            }
        };
        let thread = CommandThread::start(Builder::new(), work, |text| panic!("{text}")).unwrap();
        thread.send(3);
        thread.send(4);
        thread.stop();
        assert_eq!(sum.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn panic_is_reported_with_the_first_line_of_its_message() {
        let (reports, reported) = channel();
        let work =
            |commands: &Receiver<u32>| assert!(commands.recv() == Ok(3), "not three\nbut another number");
        let thread =
            CommandThread::start(Builder::new(), work, move |text| reports.send(text).unwrap()).unwrap();
        thread.send(4);
        let text = reported.recv().unwrap();
        assert!(text.contains("a mistake in longhaul (not three)"), "{text}");
        thread.send(5);
        thread.stop();
    }

    #[test]
    fn thread_that_does_not_end_is_left_behind() {
        let (_held, never) = channel::<()>();
        let work = move |_: &Receiver<()>| never.recv().unwrap_or_default();
        let thread = CommandThread::start(Builder::new(), work, |text| panic!("{text}")).unwrap();
        let began = Instant::now();
        thread.stop();
        assert!(began.elapsed() >= STOP_TIMEOUT);
    }
}
