//! `longhaul record`: records what programs do on a share, and manages the recordings.

mod examples;
mod folder;
mod import;
mod mounted;
mod stored;
mod trace;

use std::process::ExitCode;

use longhaul_measure::platform;
use longhaul_model::{Mount, Protocol};
use longhaul_recording::{Account, Recording};
use longhaul_service::recordings::{RecordingName, Recordings};
use longhaul_view::render::terminal;
use longhaul_view::screens;

use crate::arguments::{GlobalArgs, RecordArgs, RecordCommand};
use crate::errors::UsageError;
use crate::{exit, paths};
use folder::RecordedFolder;

/// Records, or manages the recordings.
pub fn run(shared: &GlobalArgs, arguments: &RecordArgs) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Some(RecordCommand::List(list)) => stored::list(shared, list.json),
        Some(RecordCommand::Show(show)) => stored::show(shared, show),
        Some(RecordCommand::Use(choice)) => stored::choose(shared, choice.name.as_ref()),
        Some(RecordCommand::Delete { name }) => stored::delete(shared, name),
        None => record(shared, arguments),
    }
}

fn record(shared: &GlobalArgs, arguments: &RecordArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let recordings = Recordings::of_database(&paths::database(shared, &config)?);
    let name = arguments.name.clone();
    // Refused before the work of hours is recorded, not after it.
    name.as_ref().map_or(Ok(()), |name| recordings.require_free(name))?;
    let place = NewRecording { recordings, name };
    let mounts = platform::mounts().unwrap_or_default();
    let find = |given| RecordedFolder::find(given, &config.targets, &mounts);
    let find_existing = |given| find(given)?.existing(&mounts);
    if let Some(share) = &arguments.folder {
        mounted::record(&find_existing(Some(share))?, arguments, &mounts, place)
    } else if let Some(file) = &arguments.import {
        import::record(file, arguments.format, &find(arguments.on.as_deref())?, place)
    } else if arguments.program.is_empty() {
        let message = "say what to record: `longhaul record -- PROGRAM ARGUMENTS`, `longhaul record --folder SHARE`, or `longhaul record \
                       --import FILE --on FOLDER`";
        Err(UsageError(message.to_owned()).into())
    } else {
        import::record_program(&arguments.program, &find_existing(arguments.on.as_deref())?, place)
    }
}

/// A recording that does not exist yet.
struct NewRecording {
    recordings: Recordings,
    /// Name that was given; `None`: the next free one.
    name: Option<RecordingName>,
}

impl NewRecording {
    /// Stores the recording and says what was recorded, on standard error, because a recorded program has standard output.
    fn store(self, recording: &Recording, folder: &RecordedFolder) -> anyhow::Result<()> {
        if recording.operations.is_empty() {
            anyhow::bail!("nothing was recorded: {}", nothing_recorded(&recording.account, folder));
        }
        let bytes = recording.to_bytes();
        let name = match self.name {
            Some(name) => self.recordings.create(&name, &bytes).map(|_| name),
            None => self.recordings.create_next(&bytes),
        }?;
        let document = screens::record::recorded(name.as_str(), &recording.overview());
        crate::output::write_error(format_args!("{}", terminal::render(&document)));
        Ok(())
    }
}

/// Returns why a recording has no operation, and what to check.
fn nothing_recorded(account: &Account, folder: &RecordedFolder) -> String {
    let Account { outside, damaged, .. } = account;
    let is_unknown = account.unknown_handles > 0 || !account.unknown_calls.is_empty();
    match (outside, damaged) {
        (0, _) if is_unknown => format!(
            "no operation in {} can be replayed. {} docs/recordings/sources.md says what each kind of trace lacks",
            folder.path.display(),
            screens::record::account(account)
        ),
        (0, 0) => "there was no operation on a file".to_owned(),
        (0, _) => format!(
            "no line is a file operation ({damaged} not understood). Check the kind of the trace: `--format`"
        ),
        _ => format!(
            "{outside} file operations were outside of {}, and none in it can be replayed. Check that this is the right folder",
            folder.path.display()
        ),
    }
}

/// Returns the protocol of the mount on which a folder lies.
fn protocol(folder: &std::path::Path, mounts: &[Mount]) -> Option<Protocol> {
    Mount::for_path(mounts, folder).map(|mount| mount.protocol.clone())
}

const OK: ExitCode = exit::OK;
