//! What is done to install, start or remove the service: a list of steps that can be shown before it is gone through.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::manager::Activity;
use crate::runner::{Output, Runner, RunnerError};
use crate::{launchctl, systemctl};

/// How long a tool may take. `systemctl` waits until the daemon is ready, or has ended: that may take the 30 seconds
/// of `TimeoutStopSec=`, and as much again.
const TOOL_LIMIT: Duration = Duration::from_secs(100);
/// Time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// A command of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program, by its absolute path where the system has one.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Exit codes beside 0 that mean that there was nothing to do.
    pub fine: &'static [i32],
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// launchd knows the agent no more.
    Gone,
    /// launchd has it running.
    Running,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Makes a folder where it is missing.
    Folder(PathBuf),
    /// Writes a file, whole or not at all.
    Write {
        /// The file.
        path: PathBuf,
        /// Its content.
        content: Vec<u8>,
    },
    /// Removes a file where it is there.
    Remove(PathBuf),
    /// Runs a command.
    Run(Command),
    /// Runs a command again and again until it says what is waited for.
    Await {
        /// The command, which changes nothing.
        command: Command,
        /// What is waited for.
        until: Until,
        /// For how long.
        limit: Duration,
    },
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A file or folder.
    #[error("{operation} {}: {source}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A tool has no answer.
    #[error(transparent)]
    Tool(#[from] RunnerError),
    /// A tool reports a failure.
    #[error("`{command}` failed ({how}): {said}\n{meaning}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit code, or that a signal ended it.
        how: String,
        /// What it said.
        said: String,
        /// What that means, and what to do.
        meaning: String,
    },
    /// What was waited for did not happen.
    #[error("{what} after {} s. {advice}", limit.as_secs())]
    Waited {
        /// What is so.
        what: String,
        /// How long it was waited for.
        limit: Duration,
        /// What to do.
        advice: &'static str,
    },
}

/// Goes through steps in order, and stops at the first that fails. Each is told before it is done.
///
/// # Errors
///
/// [`StepError`]; what was done before stays, and going through the same steps again is safe.
pub fn perform(steps: &[Step], runner: &dyn Runner, tell: &mut dyn FnMut(&Step)) -> Result<(), StepError> {
    for step in steps {
        tell(step);
        match step {
            Step::Folder(path) => fs::create_dir_all(path).map_err(file_error("make the folder", path))?,
            Step::Write { path, content } => write(path, content).map_err(file_error("write", path))?,
            Step::Remove(path) => remove(path).map_err(file_error("remove", path))?,
            Step::Run(command) => run(command, runner)?,
            Step::Await { command, until, limit } => wait(command, (*until, *limit), runner)?,
        }
    }
    Ok(())
}

fn file_error<'a>(operation: &'static str, path: &'a Path) -> impl Fn(io::Error) -> StepError + 'a {
    move |source| StepError::File { operation, path: path.to_owned(), source }
}

/// Beside it first, then in its place; not writable for others, which launchd insists on.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let beside = PathBuf::from(name);
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&beside)?;
    let done =
        file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // the error that is told is the first one
        let _ = fs::remove_file(&beside);
    }
    done
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn run(command: &Command, runner: &dyn Runner) -> Result<(), StepError> {
    let output = command.ask(runner)?;
    match output.code {
        Some(0) => Ok(()),
        Some(code) if command.fine.contains(&code) => Ok(()),
        _ => Err(command.failure(&output)),
    }
}

fn wait(command: &Command, (until, limit): (Until, Duration), runner: &dyn Runner) -> Result<(), StepError> {
    let looks = limit.as_millis() / BETWEEN_LOOKS.as_millis();
    let mut activity = Activity::Absent;
    for _ in 0..=looks {
        activity = launchctl::activity(&command.ask(runner)?);
        let is_so = match until {
            Until::Gone => activity == Activity::Absent,
            Until::Running => matches!(activity, Activity::Running { .. }),
        };
        if is_so {
            return Ok(());
        }
        runner.pause(BETWEEN_LOOKS);
    }
    Err(match until {
        Until::Gone => StepError::Waited {
            what: format!("the agent is still there ({activity})"),
            limit,
            advice: "A process of it may be waiting for a server that is gone, and ends when that answers or gives up \
                     (up to ten minutes). Then try again",
        },
        Until::Running => StepError::Waited {
            what: format!("the agent is loaded, but not running ({activity})"),
            limit,
            advice: "`longhaul logs` and stderr.log beside that log say why",
        },
    })
}

impl Command {
    /// A command of which only 0 means success.
    pub(crate) fn new(program: &'static str, arguments: &[&OsStr]) -> Self {
        Self { program, arguments: arguments.iter().map(|word| (*word).to_owned()).collect(), fine: &[] }
    }

    pub(crate) fn ask(&self, runner: &dyn Runner) -> Result<Output, RunnerError> {
        runner.run(self.program, &self.arguments, TOOL_LIMIT)
    }

    pub(crate) fn failure(&self, output: &Output) -> StepError {
        let said = if output.err.trim().is_empty() { &output.out } else { &output.err };
        StepError::Failed {
            command: self.to_string(),
            how: output.code.map_or("ended by a signal".to_owned(), |code| format!("exit code {code}")),
            said: said.trim().to_owned(),
            meaning: match self.program {
                launchctl::PROGRAM => launchctl::meaning(output),
                _ => systemctl::meaning(said).to_owned(),
            },
        }
    }
}

impl fmt::Display for Command {
    /// As it can be typed into a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        self.arguments.iter().try_for_each(|word| write!(f, " {}", typed(&word.to_string_lossy())))
    }
}

fn typed(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=@:,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl fmt::Display for Step {
    /// One line, without the content of a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "make the folder {}", path.display()),
            Self::Write { path, content } => write!(f, "write {} ({} bytes)", path.display(), content.len()),
            Self::Remove(path) => write!(f, "remove {}", path.display()),
            Self::Run(command) => write!(f, "run {command}"),
            Self::Await { command, until, limit } => {
                let what = match until {
                    Until::Gone => "it fails",
                    Until::Running => "it says that the agent is running",
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
    fn a_file_is_written_whole_and_not_writable_for_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.plist");
        let steps = [
            Step::Folder(folder.path().join("a")),
            Step::Write { path: path.clone(), content: b"x".to_vec() },
        ];
        for _ in 0..2 {
            perform(&steps, &crate::System, &mut |_| ()).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"x");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o022, 0);
        assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 1, "nothing is left beside it");
        let gone = [Step::Remove(path.clone()), Step::Remove(path)];
        perform(&gone, &crate::System, &mut |_| ()).unwrap();
    }

    #[test]
    fn a_command_is_shown_as_it_can_be_typed() {
        let command =
            Command::new("systemctl", &[OsStr::new("--user"), OsStr::new("it's a b"), OsStr::new("")]);
        assert_eq!(command.to_string(), r"systemctl --user 'it'\''s a b' ''");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let steps = [Step::Write { path: "/nonexistent/x".into(), content: vec![] }];
        let said = perform(&steps, &crate::System, &mut |_| ()).unwrap_err().to_string();
        assert!(said.starts_with("write /nonexistent/x: "), "{said}");
    }
}
