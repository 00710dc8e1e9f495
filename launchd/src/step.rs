//! Steps to install, start or remove the service. A list of steps can be printed before it is executed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use longhaul_model::Hint;

use crate::runner::{CommandRunner, Output, RunnerError};

/// Time limit of a tool. `systemctl` waits until the daemon is ready or has exited, which may take the 30 seconds
/// of `TimeoutStopSec=` twice.
const TOOL_TIMEOUT: Duration = Duration::from_secs(100);
/// A command of the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program, as an absolute path if the system has one.
    pub program: &'static str,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Exit codes other than 0 that mean that there was nothing to do.
    pub accepted_codes: &'static [i32],
}

/// A state of the launchd agent to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitedState {
    /// The agent is no longer loaded.
    NotLoaded,
    /// The agent is running.
    Running,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Creates a folder if it does not exist.
    CreateFolder(PathBuf),
    /// Writes a file atomically.
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Content of the file.
        content: Vec<u8>,
    },
    /// Removes a file if it exists.
    Remove(PathBuf),
    /// Runs a command.
    Run(Command),
    /// Polls a command until it reports the awaited state.
    Await {
        /// The command to poll, which changes nothing.
        command: Command,
        /// The state to wait for.
        state: AwaitedState,
        /// Maximum time to wait.
        timeout: Duration,
    },
}

/// The reason why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A file operation failed.
    #[error("{operation} {}", path.display())]
    File {
        /// Name of the operation.
        operation: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A tool could not be run, or did not exit in time.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// A tool exited with a failure.
    #[error("`{command}` failed ({how}): {said}")]
    Failed {
        /// The command line.
        command: String,
        /// The exit code, or that a signal ended the tool.
        how: String,
        /// Output of the tool: standard error, or else standard output.
        said: String,
        /// Meaning of the failure, with advice.
        meaning: String,
    },
    /// The awaited state was not reached in time.
    #[error("{what} after {} s", limit.as_secs())]
    TimedOut {
        /// The actual state.
        what: String,
        /// Maximum time to wait.
        limit: Duration,
        /// Advice for the user.
        advice: &'static str,
    },
}

impl Hint for StepError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::File { .. } => None,
            Self::Runner(error) => error.hint(),
            Self::Failed { meaning, .. } => Some(meaning.clone()),
            Self::TimedOut { advice, .. } => Some((*advice).to_owned()),
        }
    }
}

impl Command {
    /// Creates a command for which only exit code 0 means success.
    pub(crate) fn new(program: &'static str, arguments: &[&OsStr]) -> Self {
        Self {
            program,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            accepted_codes: &[],
        }
    }

    pub(crate) fn output(&self, runner: &dyn CommandRunner) -> Result<Output, RunnerError> {
        runner.run(self.program, &self.arguments, TOOL_TIMEOUT)
    }

    /// Returns the error for a failure of the command. `advice` says what the failure means, given the output.
    pub(crate) fn to_error(&self, output: &Output, advice: impl FnOnce(&Output) -> String) -> StepError {
        StepError::Failed {
            command: self.to_string(),
            how: output.code.map_or("ended by a signal".to_owned(), |code| format!("exit code {code}")),
            said: output.message().to_owned(),
            meaning: advice(output),
        }
    }
}

impl fmt::Display for Command {
    /// Formats the command so that it can be pasted into a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        self.arguments.iter().try_for_each(|word| write!(f, " {}", shell_quote(&word.to_string_lossy())))
    }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=@:,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl fmt::Display for Step {
    /// Describes the step in one line, without the content of a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateFolder(path) => write!(f, "create the folder {}", path.display()),
            Self::Write { path, content } => write!(f, "write {} ({} bytes)", path.display(), content.len()),
            Self::Remove(path) => write!(f, "remove {}", path.display()),
            Self::Run(command) => write!(f, "run {command}"),
            Self::Await { command, state: until, timeout: limit } => {
                let what = match until {
                    AwaitedState::NotLoaded => "it fails",
                    AwaitedState::Running => "it reports that the agent is running",
                };
                write!(f, "repeat {command} until {what}, for at most {} s", limit.as_secs())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_shown_quoted_for_a_shell() {
        let command =
            Command::new("systemctl", &[OsStr::new("--user"), OsStr::new("it's a b"), OsStr::new("")]);
        assert_eq!(command.to_string(), r"systemctl --user 'it'\''s a b' ''");
    }
}
