//! `longhaul export`: writes the stored data to a file or to standard output.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use longhaul_export::{Error, Format, Output, Window, WindowError};
use longhaul_view::units::count;

use crate::arguments::{ExportArgs, ExportKind, GlobalArgs};
use crate::errors::UsageError;
use crate::{exit, paths, result_file};

/// Writes the export. The number of rows is printed to standard error, because the export itself may go to
/// standard output.
pub fn run(shared: &GlobalArgs, arguments: &ExportArgs) -> anyhow::Result<ExitCode> {
    match arguments.what {
        ExportKind::Share => return super::share::run(shared, arguments),
        ExportKind::Fleet => return super::fleet::run(shared, arguments),
        _ => {}
    }
    if let Some(option) = arguments.fleet.given() {
        return Err(UsageError(format!("only `export fleet` has {option}")).into());
    }
    let window = Window::between(arguments.from.as_deref(), arguments.to.as_deref(), &TimeZone::system());
    let window = window.map_err(|error: WindowError| UsageError(error.to_string()))?;
    if matches!(arguments.what, ExportKind::Integrity) && window != Window::default() {
        let message = "`export integrity` has totals since the beginning: leave out --from and --to";
        return Err(UsageError(message.to_owned()).into());
    }
    let format = match arguments.format {
        Some(format) if arguments.file.is_none() => Format::from(format),
        _ => {
            return Err(UsageError(
                "give `--format csv`, `json` or `parquet`; without `--output FILE`, csv and json are printed"
                    .to_owned(),
            )
            .into());
        }
    };
    format.require()?;
    if format == Format::Parquet && arguments.output.is_none() {
        return Err(UsageError("Parquet needs an output file: give `--output FILE`".to_owned()).into());
    }
    let reader = paths::open_reader(shared)?;
    let history =
        || anyhow::Ok(longhaul_service::paths::read_history(&reader, &paths::load_config(shared)?)?);
    let output = |path| output(format, path);
    let path = arguments.output.as_deref();
    let rows = match arguments.what {
        ExportKind::Runs => longhaul_export::runs(history()?, &window, output(path)?),
        ExportKind::Ops => longhaul_export::operations(&reader, &window, output(path)?),
        ExportKind::Events => longhaul_export::events(history()?, &window, output(path)?),
        ExportKind::Freshness => longhaul_export::freshness(&reader, &window, output(path)?),
        ExportKind::Integrity => longhaul_export::integrity(&reader, output(path)?),
        ExportKind::Fidelity => longhaul_export::fidelity(&reader, &window, output(path)?),
        ExportKind::Share => return super::share::run(shared, arguments),
        ExportKind::Fleet => return super::fleet::run(shared, arguments),
    };
    match rows {
        // The reader of a pipe, such as `head`, has closed it: this is not an error.
        Err(Error::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe => Ok(exit::OK),
        Err(error) => Err(error.into()),
        Ok(rows) => {
            print_row_count(rows, path);
            Ok(exit::OK)
        }
    }
}

fn output(format: Format, path: Option<&Path>) -> anyhow::Result<Output> {
    let Some(path) = path else {
        return Ok(Output {
            format,
            writer: Box::new(std::io::stdout()),
            name: "standard output".to_owned(),
        });
    };
    result_file::refuse_database(path)?;
    let file =
        File::create(path).with_context(|| format!("cannot write the export to {}", path.display()))?;
    Ok(Output { format, writer: Box::new(file), name: path.display().to_string() })
}

fn print_row_count(rows: u64, path: Option<&Path>) {
    let rows = count(rows, "row");
    match path {
        Some(path) => crate::output::eprintln!("{rows} written to {}", path.display()),
        None if std::io::stdout().is_terminal() => {}
        None => crate::output::eprintln!("{rows} written"),
    }
}
