//! `longhaul export`: writes the stored data to a file or to standard output.

use std::ffi::OsStr;
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
    if arguments.file.is_some() {
        let message = "only `export share` takes FILE alone: give `--output FILE`";
        return Err(UsageError(message.to_owned()).into());
    }
    let format = format_of(arguments.format, arguments.output.as_deref());
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

/// Returns the format that was given, or else that of the output file by its name, or else CSV.
fn format_of(given: Option<Format>, output: Option<&Path>) -> Format {
    let extension = output.and_then(Path::extension).and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    match (given, extension.as_deref()) {
        (Some(format), _) => format,
        (None, Some("json" | "jsonl")) => Format::Json,
        (None, Some("parquet")) => Format::Parquet,
        (None, _) => Format::Csv,
    }
}

fn output(format: Format, path: Option<&Path>) -> anyhow::Result<Output<'static>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_that_of_the_file_or_csv() {
        let of = |name: &str| format_of(None, Some(Path::new(name)));
        assert_eq!(["a.json", "a.JSONL"].map(of), [Format::Json, Format::Json]);
        assert_eq!(of("a.parquet"), Format::Parquet);
        assert_eq!(["a.csv", "a", "a.txt"].map(of), [Format::Csv; 3]);
        assert_eq!(format_of(None, None), Format::Csv);
        assert_eq!(format_of(Some(Format::Csv), Some(Path::new("a.json"))), Format::Csv);
    }
}
