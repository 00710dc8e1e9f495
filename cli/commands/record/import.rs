//! Recording from a trace: of a program that runs now, or of a file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context as _;
use longhaul_recording::{Importer, Scrubber, Source, StraceImporter, detect, importer};

use super::folder::RecordedFolder;
use super::trace::{TracedProgram, trace};
use super::{NewRecording, OK};
use crate::arguments::FormatArg;
use crate::errors::UsageError;

/// Runs a program, records it, and returns its exit code.
pub fn record_program(
    program: &[OsString],
    folder: &RecordedFolder,
    place: NewRecording,
) -> anyhow::Result<ExitCode> {
    if let Some(missing) = program.first().filter(|program| !is_program(program)) {
        let message = format!("nothing was recorded: there is no program {}", missing.display());
        return Err(UsageError(message).into());
    }
    let current = std::env::current_dir().context("find the current folder")?;
    let mut importer = StraceImporter::new(Some(current.as_os_str().as_encoded_bytes()));
    let TracedProgram { status, read } =
        trace(program, |pipe| scrub(&mut importer, &mut BufReader::new(pipe), folder))?;
    let stored = read
        .context("cannot read the trace of the program")
        .and_then(|scrubber| place.store(&scrubber.finish(Source::Strace, folder.protocol.clone()), folder));
    match (exit_code(status), stored) {
        (0, stored) => stored.map(|()| OK),
        (code, Ok(())) => Ok(ExitCode::from(code)),
        // A script that runs the program looks for its exit code.
        (code, Err(error)) => {
            crate::output::eprintln!("longhaul: {error:#}");
            Ok(ExitCode::from(code))
        }
    }
}

/// Returns whether a path leads to a file, or a name to one in `PATH`.
fn is_program(program: &OsStr) -> bool {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.is_file();
    }
    std::env::var_os("PATH")
        .is_some_and(|folders| std::env::split_paths(&folders).any(|folder| folder.join(path).is_file()))
}

/// Returns the exit code as a shell reports it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::ERROR)
}

/// Reads a trace that was made elsewhere.
pub fn record(
    file: &Path,
    format: FormatArg,
    folder: &RecordedFolder,
    place: NewRecording,
) -> anyhow::Result<ExitCode> {
    let named = || format!("cannot read {}", file.display());
    let mut trace: Box<dyn BufRead> = match file.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(BufReader::new(File::open(file).with_context(named)?)),
    };
    let source = match format.source() {
        Some(source) => source,
        None => detect(trace.fill_buf().with_context(named)?).ok_or_else(|| unknown_kind(file))?,
    };
    let importer = importer(source, folder.path.as_os_str().as_encoded_bytes());
    let mut importer = importer.ok_or_else(|| unknown_kind(file))?;
    let scrubber = scrub(&mut *importer, &mut trace, folder).with_context(named)?;
    // A trace that was made elsewhere does not tell its mount, and the folder need not exist here.
    place.store(&scrubber.finish(source, None), folder)?;
    Ok(OK)
}

fn unknown_kind(file: &Path) -> UsageError {
    UsageError(format!(
        "{}: the kind of trace is not recognized by its first lines. Say it with --format",
        file.display()
    ))
}

fn scrub(
    importer: &mut dyn Importer,
    trace: &mut dyn BufRead,
    folder: &RecordedFolder,
) -> io::Result<Scrubber> {
    let mut scrubber = Scrubber::new(folder.path.as_os_str().as_encoded_bytes());
    longhaul_recording::import(importer, trace, &mut scrubber)?;
    Ok(scrubber)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_is_that_of_the_program_or_its_signal() {
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(exit_code(ExitStatus::from_raw(2)), 130);
    }
}
