//! The output of a worker, through which any of its threads sends messages.

use std::io::{self, Write};

use super::message::WorkerMessage;
use parking_lot::Mutex;

/// Output to the supervisor. Messages are written one at a time. A thread never sends a message while it is timing
/// an operation.
pub struct Output(Mutex<Box<dyn Write + Send>>);

impl Output {
    /// Creates an output that writes all messages to `output`.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(output)))
    }

    /// Sends a message as one line of JSON.
    ///
    /// # Errors
    ///
    /// If the supervisor has closed its end of the pipe.
    pub fn send(&self, message: &WorkerMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut output = self.0.lock();
        output.write_all(&line)?;
        output.flush()
    }
}
