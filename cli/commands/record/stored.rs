//! The stored recordings: their list, their content, their use and their removal.

use std::io::{BufWriter, ErrorKind, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_corpus::slices::DEFAULT_SLICES;
use longhaul_measure::workloads::replay_plan;
use longhaul_recording::Recording;
use longhaul_service::config_edit::with_replay;
use longhaul_service::recordings::{RecordingName, Recordings};
use longhaul_view::json::recording_lines;
use longhaul_view::screens::record::{self, ListedRecording};
use longhaul_view::units;
use serde_json::json;

use super::examples::resolve;
use crate::arguments::{GlobalArgs, RecordShowArgs, RecordingChoice};
use crate::config_file::{read_text, replace_text};
use crate::output::printable;
use crate::output_format::OutputFormat;
use crate::{errors, exit, paths};

/// Space of test data that is worth a word.
const NOTICEABLE_BYTES: u64 = 10_000_000;
/// Pauses of a replay that are worth a word: shorter ones are printed as 0 s.
const NOTICEABLE_PAUSES: Duration = Duration::from_millis(100);

fn recordings(shared: &GlobalArgs) -> anyhow::Result<Recordings> {
    Ok(Recordings::of_database(&paths::database(shared, &paths::load_config(shared)?)?))
}

fn read(recordings: &Recordings, name: &RecordingName) -> anyhow::Result<Recording> {
    let bytes = recordings.read(name)?;
    let path = recordings.path(name);
    Recording::from_bytes(&bytes).with_context(|| format!("cannot read {}", path.display()))
}

/// Prints the list of recordings.
pub fn list(shared: &GlobalArgs, as_json: bool) -> anyhow::Result<ExitCode> {
    let recordings = recordings(shared)?;
    let replayed = paths::load_config(shared)?.replay;
    let listed = |name: RecordingName| {
        let bytes = std::fs::metadata(recordings.path(&name)).ok().map(|found| found.len());
        let overview = read(&recordings, &name).map(|recording| recording.overview());
        ListedRecording {
            is_replayed: replayed.as_ref() == Some(&name),
            name: name.into(),
            bytes,
            overview: overview.map_err(|error| errors::text(&error)),
        }
    };
    let all: Vec<ListedRecording> = recordings.names()?.into_iter().map(listed).collect();
    let one = |one: &ListedRecording| {
        json!({
            "name": one.name, "replayed": one.is_replayed, "bytes": one.bytes,
            "recording": one.overview.as_ref().ok(), "error": one.overview.as_ref().err(),
        })
    };
    let value = || json!({ "schema": 1, "recordings": all.iter().map(one).collect::<Vec<_>>() });
    OutputFormat::from_json_flag(as_json).print(value, || record::list(&all))?;
    Ok(exit::OK)
}

/// Prints what is kept in a recording: in short, or all of it.
pub fn show(shared: &GlobalArgs, arguments: &RecordShowArgs) -> anyhow::Result<ExitCode> {
    let recording = read(&recordings(shared)?, &arguments.name)?;
    if arguments.all {
        let mut out = BufWriter::new(anstream::stdout().lock());
        let written = recording_lines(&recording)
            .try_for_each(|line| writeln!(out, "{}", printable(&line.to_string())));
        return match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(exit::OK),
        };
    }
    let overview = recording.overview();
    let value = || json!({ "schema": 1, "name": arguments.name, "recording": overview });
    let screen = || record::show(arguments.name.as_str(), &overview);
    OutputFormat::from_json_flag(arguments.json).print(value, screen)?;
    Ok(exit::OK)
}

/// Writes into the configuration which recording rounds replay.
pub fn choose(shared: &GlobalArgs, choice: Option<&RecordingChoice>) -> anyhow::Result<ExitCode> {
    let recordings = recordings(shared)?;
    let name = choice.map(|choice| resolve(choice, &recordings)).transpose()?;
    let name = name.as_ref();
    // One that cannot be read is refused now, not in each round.
    let chosen = name.map(|name| read(&recordings, name)).transpose()?;
    let path = paths::config_file(shared)?;
    replace_text(&path, &with_replay(&read_text(&path)?, name)?)?;
    match name {
        Some(name) => {
            crate::output::println!("Each round replays {name} from now on, as the task `your-day`.")
        }
        None => crate::output::println!("Rounds replay no recording from now on."),
    }
    crate::output::print_line(format_args!("Written: {}", path.display()));
    chosen.map_or(Ok(()), |chosen| print_cost(shared, &chosen))?;
    Ok(exit::OK)
}

/// Prints the space that replays need, and how long one takes at least, and warns if that is longer than a run may take.
fn print_cost(shared: &GlobalArgs, recording: &Recording) -> anyhow::Result<()> {
    let plan = replay_plan(recording);
    let bytes = plan.corpus_bytes().saturating_mul(DEFAULT_SLICES);
    if bytes >= NOTICEABLE_BYTES {
        let bytes = units::bytes(bytes as f64);
        crate::output::println!(
            "Its test data takes {bytes} or more on each target, in {DEFAULT_SLICES} or more copies that take turns."
        );
    }
    let shortest = plan.pause_time();
    if shortest < NOTICEABLE_PAUSES {
        return Ok(());
    }
    let cap = paths::load_config(shared)?.limits.cap;
    let [least, most] = [shortest, cap].map(|time| units::duration(time.as_secs_f64()));
    crate::output::println!("A replay takes at least {least} on each target, for its pauses alone.");
    if shortest >= cap {
        crate::output::eprintln!(
            "longhaul: a run ends after {most} (`cap-seconds`), so each replay would be stored as hung. Record a shorter time, \
             or set a larger `cap-seconds` under [limits]"
        );
    }
    Ok(())
}

/// Removes a recording. One that rounds replay is no longer replayed.
pub fn delete(shared: &GlobalArgs, name: &RecordingName) -> anyhow::Result<ExitCode> {
    let recordings = recordings(shared)?;
    let is_replayed = || Ok::<bool, anyhow::Error>(paths::load_config(shared)?.replay.as_ref() == Some(name));
    // Before the file: a round could not replay a recording that is gone.
    if is_replayed()? {
        choose(shared, None)?;
    }
    if is_replayed()? {
        let why = format!("{name} was not removed: the administrator's configuration makes rounds replay it");
        return Err(errors::UsageError(why).into());
    }
    recordings.delete(name)?;
    crate::output::print_line(format_args!("Removed: {}", recordings.path(name).display()));
    Ok(exit::OK)
}
