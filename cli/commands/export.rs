//! `longhaul export`: what is kept, as a file.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read as _};
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
    let history = || anyhow::Ok(longhaul_service::places::history(&reader, &places::config(shared)?)?);
    let output = |path| output(format, path);
    let path = arguments.output.as_deref();
    let rows = match arguments.what {
        ExportedArgument::Runs => longhaul_export::runs(history()?, &window, output(path)?),
        ExportedArgument::Ops => longhaul_export::operations(&reader, &window, output(path)?),
        ExportedArgument::Events => longhaul_export::events(history()?, &window, output(path)?),
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

/// The slip of a hand that would cost the most.
fn refuse_database(path: &Path) -> anyhow::Result<()> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut begin = [0; MAGIC.len()];
    let is_database =
        File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == MAGIC;
    anyhow::ensure!(
        !is_database,
        Usage(format!("{} is a database: give another `--output FILE`", path.display()))
    );
    Ok(())
}

fn output(format: Format, path: Option<&Path>) -> anyhow::Result<Output> {
    let Some(path) = path else {
        return Ok(Output { format, to: Box::new(std::io::stdout()), name: "standard output".to_owned() });
    };
    refuse_database(path)?;
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
