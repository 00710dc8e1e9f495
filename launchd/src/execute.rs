//! Executes steps.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::runner::CommandRunner;
use crate::status::RunState;
use crate::step::{AwaitedState, Command, Step, StepError};
use crate::{launchctl, systemctl};

/// Time between two polls of an awaited state.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Executes steps in order, and stops at the first failure. `tell` is called before each step.
///
/// # Errors
///
/// [`StepError`]. Completed steps are not undone; executing all steps again is safe.
pub fn execute(
    steps: &[Step],
    runner: &dyn CommandRunner,
    tell: &mut dyn FnMut(&Step),
) -> Result<(), StepError> {
    for step in steps {
        tell(step);
        match step {
            Step::CreateFolder(path) => {
                fs::create_dir_all(path).map_err(file_error("create the folder", path))?
            }
            Step::Write { path, content } => {
                write_atomically(path, content).map_err(file_error("write", path))?
            }
            Step::Remove(path) => remove_if_exists(path).map_err(file_error("remove", path))?,
            Step::Run(command) => run_command(command, runner)?,
            Step::Await { command, state: until, timeout: limit } => {
                await_state(command, *until, *limit, runner)?
            }
        }
    }
    Ok(())
}

fn file_error<'a>(operation: &'static str, path: &'a Path) -> impl Fn(io::Error) -> StepError + 'a {
    move |source| StepError::File { operation, path: path.to_owned(), source }
}

/// Writes a file atomically: to a temporary file next to it, then renamed. Other users cannot write to it, which
/// launchd requires.
fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&temporary)?;
    let done =
        file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        // Ignored, because the first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    done
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn run_command(command: &Command, runner: &dyn CommandRunner) -> Result<(), StepError> {
    let output = command.output(runner)?;
    match output.code {
        Some(0) => Ok(()),
        Some(code) if command.accepted_codes.contains(&code) => Ok(()),
        _ if command.program == launchctl::PROGRAM => Err(command.to_error(&output, launchctl::advice)),
        _ => Err(command.to_error(&output, systemctl::advice)),
    }
}

fn await_state(
    command: &Command,
    until: AwaitedState,
    limit: Duration,
    runner: &dyn CommandRunner,
) -> Result<(), StepError> {
    let polls = limit.as_millis() / POLL_INTERVAL.as_millis();
    let mut run_state = RunState::NotLoaded;
    for _ in 0..=polls {
        run_state = launchctl::run_state(&command.output(runner)?);
        let is_so = match until {
            AwaitedState::NotLoaded => run_state == RunState::NotLoaded,
            AwaitedState::Running => matches!(run_state, RunState::Running { .. }),
        };
        if is_so {
            return Ok(());
        }
        runner.sleep(POLL_INTERVAL);
    }
    Err(match until {
        AwaitedState::NotLoaded => StepError::TimedOut {
            what: format!("the agent is still there ({run_state})"),
            limit,
            advice: "One of its processes may be waiting for a server that does not respond; it exits after a timeout \
                     (up to ten minutes). Try again then",
        },
        AwaitedState::Running => StepError::TimedOut {
            what: format!("the agent is loaded, but not running ({run_state})"),
            limit,
            advice: run_state
                .advice()
                .unwrap_or("`longhaul service logs`, and stderr.log in the same folder, show the reason"),
        },
    })
}

#[cfg(test)]
mod tests {
    use longhaul_model::Hint as _;

    use super::*;

    #[test]
    fn file_is_not_writable_for_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.plist");
        let steps = [
            Step::CreateFolder(folder.path().join("a")),
            Step::Write { path: path.clone(), content: b"x".to_vec() },
        ];
        for _ in 0..2 {
            execute(&steps, &crate::SystemRunner, &mut |_| ()).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"x");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o022, 0);
        assert_eq!(
            fs::read_dir(folder.path().join("a")).unwrap().count(),
            1,
            "the temporary file is removed"
        );
        let gone = [Step::Remove(path.clone()), Step::Remove(path)];
        execute(&gone, &crate::SystemRunner, &mut |_| ()).unwrap();
    }

    #[test]
    fn unwritable_file_is_named_in_the_error() {
        let steps = [Step::Write { path: "/nonexistent/x".into(), content: vec![] }];
        let said = execute(&steps, &crate::SystemRunner, &mut |_| ()).unwrap_err().one_line();
        assert!(said.starts_with("write /nonexistent/x: "), "{said}");
    }
}
