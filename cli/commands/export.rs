//! `longhaul export`: what is kept, as a file.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use longhaul_export::{Error, Format, Output, Window, WindowError};

use crate::arguments::{Export, ExportedArgument, Shared};
use crate::{Usage, exit, places};

/// Writes the export; how many rows it has goes to standard error, for standard output may be the export.
pub fn run(shared: &Shared, arguments: &Export) -> anyhow::Result<ExitCode> {
    let window = Window::between(arguments.from.as_deref(), arguments.to.as_deref(), &TimeZone::system());
    let window = window.map_err(|error: WindowError| Usage(error.to_string()))?;
    let format = Format::from(arguments.format);
    if format == Format::Parquet && arguments.output.is_none() {
        return Err(Usage("Parquet needs a file to go to: give `--output FILE`".to_owned()).into());
    }
    let reader = places::reader(shared)?;
    let output = |path| output(format, path);
    let path = arguments.output.as_deref();
    let rows = match arguments.what {
        ExportedArgument::Runs => longhaul_export::runs(places::history(&reader)?, &window, output(path)?),
        ExportedArgument::Ops => longhaul_export::operations(&reader, &window, output(path)?),
        ExportedArgument::Events => {
            longhaul_export::events(places::history(&reader)?, &window, output(path)?)
        }
    };
    match rows {
        // Whoever reads the output has seen enough.
        Err(Error::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe => Ok(exit::OK),
        Err(error) => Err(error.into()),
        Ok(rows) => {
            report(rows, path);
            Ok(exit::OK)
        }
    }
}

fn output(format: Format, path: Option<&Path>) -> anyhow::Result<Output> {
    let Some(path) = path else {
        return Ok(Output { format, to: Box::new(std::io::stdout()), name: "standard output".to_owned() });
    };
    let file =
        File::create(path).with_context(|| format!("cannot write the export to {}", path.display()))?;
    Ok(Output { format, to: Box::new(file), name: path.display().to_string() })
}

fn report(rows: u64, path: Option<&Path>) {
    match path {
        Some(path) => anstream::eprintln!("{rows} rows written to {}", path.display()),
        None if std::io::stdout().is_terminal() => {}
        None => anstream::eprintln!("{rows} rows written"),
    }
}
