//! Runs tools of the operating system as child processes, with a limit on every wait.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Timeout of a tool. Tools answer in milliseconds unless the share that they query is dead.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum output of a tool in bytes. The tools that longhaul runs print less.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Commands whose child process has not ended. A child that accesses a dead share may ignore even SIGKILL for
/// minutes (SMBClient kernel/netsmb/smb_iod.c:2797), and a second one would only hang too.
static RUNNING_COMMANDS: Mutex<BTreeSet<Vec<String>>> = Mutex::new(BTreeSet::new());

/// Output and exit code of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// Standard output of the command.
    pub stdout: Vec<u8>,
    /// Standard error of the command.
    pub stderr: Vec<u8>,
    /// Exit code; `None` if a signal ended the command, or if it continued after it had written all its
    /// output.
    pub exit_code: Option<i32>,
}

/// Reason why a command has no usable output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFailure {
    /// The command cannot be started.
    NotStarted(std::io::ErrorKind),
    /// The command did not end within the limit, and was killed.
    TimedOut,
    /// An earlier run of the same command has not ended, though it was killed.
    StillRunning,
    /// The command wrote more than 1 MiB.
    OutputTooLong,
}

/// Returns the standard output of a command; `None` if the command failed to produce any.
pub fn stdout_with_timeout(command: &[&str], limit: Duration) -> Option<Vec<u8>> {
    run_with_timeout(command, limit).ok().map(|answer| answer.stdout)
}

/// Runs a command for this time at most and returns its output and exit code.
///
/// The exit code is not evaluated here: tools print what they know and then fail for the rest. A child that
/// exceeds the limit is killed, and reaped in the background when it ends.
pub fn run_with_timeout(command: &[&str], limit: Duration) -> Result<ToolOutput, ToolFailure> {
    let until = Instant::now() + limit;
    let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    if !RUNNING_COMMANDS.lock().insert(words.clone()) {
        return Err(ToolFailure::StillRunning);
    }
    let (mut child, pipes) = start(command).inspect_err(|_| {
        RUNNING_COMMANDS.lock().remove(&words);
    })?;
    let read = read_pipes(pipes, until);
    if read.is_err() {
        // If `kill` fails, the child has already ended.
        let _ = child.kill();
    }
    let ended = reap_when_it_ends(child, words);
    let (output, error_output) = read?;
    let code = ended.recv_timeout(until.saturating_duration_since(Instant::now())).ok().flatten();
    Ok(ToolOutput { stdout: output, stderr: error_output, exit_code: code })
}

/// Returns the contents of the two pipes after both are closed.
fn read_pipes(pipes: Pipes, until: Instant) -> Result<(Vec<u8>, Vec<u8>), ToolFailure> {
    let next = |pipe: &Receiver<Vec<u8>>| {
        let left = until.saturating_duration_since(Instant::now());
        pipe.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => ToolFailure::TimedOut,
            // The system had no thread to read the pipe.
            RecvTimeoutError::Disconnected => ToolFailure::NotStarted(std::io::ErrorKind::Other),
        })
    };
    let output = next(&pipes[0])?;
    if output.len() as u64 > MAX_OUTPUT_BYTES {
        return Err(ToolFailure::OutputTooLong);
    }
    Ok((output, next(&pipes[1])?))
}

/// Receivers of a child's standard output and standard error.
type Pipes = [Receiver<Vec<u8>>; 2];

/// Starts the child, and two threads that read its output.
fn start(command: &[&str]) -> Result<(Child, Pipes), ToolFailure> {
    let not_started = |error: std::io::Error| ToolFailure::NotStarted(error.kind());
    let (program, arguments) =
        command.split_first().ok_or(ToolFailure::NotStarted(std::io::ErrorKind::NotFound))?;
    let mut child = Command::new(program)
        .args(arguments)
        // The parsers expect the original English output, so the tool must not translate it.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    let pipes = [read_all(child.stdout.take()), read_all(child.stderr.take())];
    Ok((child, pipes))
}

/// Reads a pipe up to one byte more than the maximum output. A child that writes more is ended by the closed
/// pipe.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    // If the thread cannot be started, the sender is dropped, and the receiver reports that there is no
    // output.
    let _ = Builder::new().name("tool output".to_owned()).spawn(move || {
        let mut written = Vec::new();
        let read = pipe.map(|pipe| pipe.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut written));
        if matches!(read, Some(Ok(_))) {
            let _ = sender.send(written);
        }
    });
    receiver
}

/// Sends the exit code when the child ends. If the thread cannot be started, the child stays a zombie and its
/// command cannot be run again, which is better than to block here.
fn reap_when_it_ends(mut child: Child, words: Vec<String>) -> Receiver<Option<i32>> {
    let (sender, receiver) = channel();
    let _ = Builder::new().name("tool reaper".to_owned()).spawn(move || {
        let code = child.wait().ok().and_then(|status| status.code());
        RUNNING_COMMANDS.lock().remove(&words);
        let _ = sender.send(code);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn output_counts_even_if_the_tool_fails() {
        let answer = stdout_with_timeout(&["/bin/sh", "-c", "printf yes; exit 3"], LIMIT);
        assert_eq!(answer.as_deref(), Some(&b"yes"[..]));
    }

    #[test]
    fn a_missing_tool_has_no_output_in_any_call() {
        for _ in 0..2 {
            assert_eq!(stdout_with_timeout(&["/nonexistent/tool"], LIMIT), None);
        }
        assert_eq!(stdout_with_timeout(&[], LIMIT), None);
        assert!(!RUNNING_COMMANDS.lock().contains(&vec!["/nonexistent/tool".to_owned()]));
    }

    #[test]
    fn a_hanging_tool_does_not_block_the_caller() {
        let begin = Instant::now();
        assert_eq!(stdout_with_timeout(&["/bin/sleep", "600"], Duration::from_millis(50)), None);
        assert!(begin.elapsed() < LIMIT);
    }

    #[test]
    fn output_without_a_reader_is_no_timeout() {
        let pipes = [(); 2].map(|()| channel().1);
        let failure = ToolFailure::NotStarted(std::io::ErrorKind::Other);
        assert_eq!(read_pipes(pipes, Instant::now() + LIMIT), Err(failure));
    }

    #[test]
    fn the_output_comes_with_error_output_and_exit_code() {
        let answer = run_with_timeout(&["/bin/sh", "-c", "printf yes; printf no >&2; exit 112"], LIMIT);
        let expected = ToolOutput { stdout: b"yes".to_vec(), stderr: b"no".to_vec(), exit_code: Some(112) };
        assert_eq!(answer, Ok(expected));
    }

    #[test]
    fn a_finished_command_can_be_run_again_at_once() {
        for _ in 0..20 {
            assert!(run_with_timeout(&["/bin/sh", "-c", "printf again"], LIMIT).is_ok());
        }
    }

    #[test]
    fn a_running_command_is_not_started_again() {
        let words = ["/bin/sh", "-c", "printf asked"];
        RUNNING_COMMANDS.lock().insert(words.map(str::to_owned).to_vec());
        assert_eq!(run_with_timeout(&words, LIMIT), Err(ToolFailure::StillRunning));
    }
}
