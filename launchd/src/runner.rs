//! Runs the system's tools as child processes, with a limit on the time to wait for them.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use longhaul_model::Hint;

/// Maximum size of the output that is read from a tool, in bytes.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// Interval at which a child process is checked for its exit.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Exit code and output of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Returns what the tool printed to explain a failure: standard error, or else standard output.
    pub(crate) fn message(&self) -> &str {
        match self.stderr.trim() {
            "" => self.stdout.trim(),
            errors => errors,
        }
    }
}

/// The reason why a tool could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The tool could not be started.
    #[error("start {program}")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The tool did not exit in time, and was killed.
    #[error("{program} did not end within {} s", limit.as_secs())]
    TimedOut {
        /// Name of the program.
        program: String,
        /// Time limit of the tool.
        limit: Duration,
    },
}

impl Hint for RunnerError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Start { .. } => None,
            Self::TimedOut { .. } => {
                Some("Run it in a terminal; if it hangs there too, log out and in".to_owned())
            }
        }
    }
}

/// Runs the system's tools. Tests replace it with recorded outputs.
pub trait CommandRunner {
    /// Runs a program until it exits, for at most `limit`.
    ///
    /// # Errors
    ///
    /// [`RunnerError`] if the program cannot be started or does not exit in time. A failure exit code is not an
    /// error here.
    fn run(&self, program: &str, arguments: &[OsString], limit: Duration) -> Result<Output, RunnerError>;

    /// Sleeps between two polls; tests do not.
    fn sleep(&self, time: Duration);
}

/// The real tools of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRunner;

impl CommandRunner for SystemRunner {
    fn run(&self, program: &str, arguments: &[OsString], limit: Duration) -> Result<Output, RunnerError> {
        let mut command = Command::new(program);
        // The C locale keeps messages untranslated, because they are matched against known texts.
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |source| RunnerError::Start { program: program.to_owned(), source };
        let mut child = command.spawn().map_err(start)?;
        let (out, err) = (spawn_reader(child.stdout.take()), spawn_reader(child.stderr.take()));
        let status = wait_with_timeout(&mut child, limit).map_err(start)?;
        let late = || RunnerError::TimedOut { program: program.to_owned(), limit };
        let status = status.ok_or_else(late)?;
        Ok(Output { code: status.code(), stdout: collect(&out), stderr: collect(&err) })
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Reads a pipe to its end on a thread of its own: a full pipe would block the child.
fn spawn_reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let Some(pipe) = pipe else { return };
        let (mut pipe, mut part) = (pipe.take(MAX_OUTPUT_BYTES), [0; 8 << 10]);
        // After a read error, the output up to it is used.
        while let Ok(length @ 1..) = pipe.read(&mut part) {
            let _ = sender.send(part[..length].to_vec());
        }
    });
    receiver
}

/// Returns the output up to its end. A child of the tool may keep the pipe open, so the end is waited for at most a second.
fn collect(parts: &Receiver<Vec<u8>>) -> String {
    let until = Instant::now() + Duration::from_secs(1);
    let mut said = vec![];
    while let Ok(part) = parts.recv_timeout(until.saturating_duration_since(Instant::now())) {
        said.extend(part);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// Waits for a child to exit. Returns `None` after killing it on timeout.
fn wait_with_timeout(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    // A failed kill means that the child has exited. It is not waited for, because a process that is blocked on a
    // dead share ignores even SIGKILL.
    let _ = child.kill();
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Output, RunnerError> {
        SystemRunner.run("/bin/sh", &["-c".into(), script.into()], limit)
    }

    #[test]
    fn output_and_exit_code_are_returned() {
        let output = shell("echo yes; echo no >&2; exit 3", Duration::from_secs(20)).unwrap();
        assert_eq!(output, Output { code: Some(3), stdout: "yes\n".to_owned(), stderr: "no\n".to_owned() });
        assert_eq!(shell("kill -9 $$", Duration::from_secs(20)).unwrap().code, None);
    }

    #[test]
    fn output_larger_than_a_pipe_does_not_block() {
        let output = shell("head -c 300000 /dev/zero | tr '\\0' x", Duration::from_secs(20)).unwrap();
        assert_eq!(output.stdout.len(), 300_000);
    }

    #[test]
    fn output_is_returned_while_a_child_holds_the_pipe() {
        let output = shell("echo yes; sleep 5 &", Duration::from_secs(20)).unwrap();
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "yes\n"));
    }

    #[test]
    fn hanging_or_missing_tool_is_a_named_error() {
        let late = shell("sleep 600", Duration::from_millis(50)).unwrap_err().one_line();
        assert!(late.contains("/bin/sh did not end"), "{late}");
        let missing =
            SystemRunner.run("/nonexistent/tool", &[], Duration::from_secs(1)).unwrap_err().one_line();
        assert!(missing.starts_with("start /nonexistent/tool"), "{missing}");
    }
}
