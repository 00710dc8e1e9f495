//! What a worker says, from whichever thread.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use super::Message;
use crate::model::Sampled;
use crate::samplers::Hears;

/// The way to the supervisor. One message at a time; none is written while an operation is timed by the thread that says
/// it.
pub struct Output(Mutex<Box<dyn Write + Send>>);

impl Output {
    /// Says everything there.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(output)))
    }

    /// Says a message.
    ///
    /// # Errors
    ///
    /// If nobody listens any more.
    pub fn say(&self, message: &Message) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(&line)?;
        output.flush()
    }
}

impl Hears for Output {
    /// That nobody listens is noticed by the thread that reads commands.
    fn hear(&self, sampled: Sampled) {
        let _ = self.say(&Message::Sampled(sampled));
    }
}
