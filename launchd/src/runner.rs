//! The system's tools, asked as child processes that are never waited for beyond a limit.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// No tool that is asked here says more.
const LONGEST_ANSWER_BYTES: u64 = 1 << 20;
/// How often a child is looked after.
const TICK: Duration = Duration::from_millis(10);

/// How a tool ended and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// Why a tool has no answer.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// It cannot be started.
    #[error("start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not end in time, and was killed.
    #[error("{program} did not end within {} s. Try it by hand; if it hangs there too, log out and in", limit.as_secs())]
    Late {
        /// The program.
        program: String,
        /// How long it had.
        limit: Duration,
    },
}

/// Runs the system's tools. Tests answer with what real tools have said.
pub trait Runner {
    /// Runs a program with arguments to its end, for at most so long.
    ///
    /// # Errors
    ///
    /// [`RunnerError`] if it cannot be started or does not end. A failure that it reports itself is an answer.
    fn run(&self, program: &str, arguments: &[OsString], limit: Duration) -> Result<Output, RunnerError>;

    /// Waits between two questions.
    fn pause(&self, time: Duration);
}

/// The real tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Runner for System {
    fn run(&self, program: &str, arguments: &[OsString], limit: Duration) -> Result<Output, RunnerError> {
        let mut command = Command::new(program);
        // its words are compared: they have to be the ones that were written by its makers
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| RunnerError::Start { program: program.to_owned(), source };
        let mut child = command.spawn().map_err(start)?;
        let (out, err) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
        let status = end_within(&mut child, limit).map_err(start)?;
        let late = || RunnerError::Late { program: program.to_owned(), limit };
        let status = status.ok_or_else(late)?;
        // What a grandchild that keeps the pipe open would still say is not waited for.
        let said =
            |receiver: Receiver<String>| receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        Ok(Output { code: status.code(), out: said(out), err: said(err) })
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Reads a pipe to its end, beside whatever else happens: a full pipe would keep the child from ending.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(pipe) = pipe {
            // what was read before an error is the answer
            let _ = pipe.take(LONGEST_ANSWER_BYTES).read_to_end(&mut said);
        }
        let _ = sender.send(String::from_utf8_lossy(&said).into_owned());
    });
    receiver
}

/// `None`: it did not end, and was killed.
fn end_within(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(TICK);
    }
    // on failure it has ended already; it is not waited for, as a process in a dead share ignores even this
    let _ = child.kill();
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Output, RunnerError> {
        System.run("/bin/sh", &["-c".into(), script.into()], limit)
    }

    #[test]
    fn what_a_tool_says_and_how_it_ends_is_the_answer() {
        let output = shell("echo yes; echo no >&2; exit 3", Duration::from_secs(20)).unwrap();
        assert_eq!(output, Output { code: Some(3), out: "yes\n".to_owned(), err: "no\n".to_owned() });
        assert_eq!(shell("kill -9 $$", Duration::from_secs(20)).unwrap().code, None);
    }

    #[test]
    fn a_tool_that_says_more_than_a_pipe_holds_ends_all_the_same() {
        let output = shell("head -c 300000 /dev/zero | tr '\\0' x", Duration::from_secs(20)).unwrap();
        assert_eq!(output.out.len(), 300_000);
    }

    #[test]
    fn a_tool_that_hangs_or_is_not_there_is_an_error_that_names_it() {
        let late = shell("sleep 600", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(late.contains("/bin/sh did not end"), "{late}");
        let missing = System.run("/nonexistent/tool", &[], Duration::from_secs(1)).unwrap_err().to_string();
        assert!(missing.starts_with("start /nonexistent/tool"), "{missing}");
    }
}
