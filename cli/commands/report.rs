//! `longhaul report`: a week to be passed on.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use longhaul_measure::summary::History;
use longhaul_report::{
    Environment, Exchange, exchange, html_beside, markdown_beside, private::with_neutral_names, read,
};
use longhaul_web::environment;

use super::week::{self, Asked};
use crate::arguments::{Evidence, Report, Shared};
use crate::places;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints or writes the report of a week.
pub fn run(shared: &Shared, arguments: &Report) -> anyhow::Result<ExitCode> {
    let others: Vec<Exchange> =
        arguments.beside.iter().map(|path| of_somebody(path)).collect::<Result<_, _>>()?;
    let mut asked = Asked::of(shared, &arguments.evidence, arguments.week)?;
    asked.history = with_neutral_names(asked.history);
    let environment = environment_of(shared, &arguments.evidence, &asked.history)?;
    let weekly = asked.weekly();
    if let Some(path) = &arguments.html {
        write(path, &html_beside(&weekly, &environment, &others))?;
    }
    if let Some(path) = &arguments.json {
        write(path, &exchange(&weekly, &environment).to_json())?;
    }
    if arguments.html.is_none() && arguments.json.is_none() {
        anstream::print!("{}", markdown_beside(&weekly, &others));
    }
    Ok(week::code(&weekly))
}

/// Where a history was made; of an export this machine does not know.
pub fn environment_of(
    shared: &Shared,
    evidence: &Evidence,
    history: &History,
) -> anyhow::Result<Environment> {
    match &evidence.from_export {
        Some(_) => Ok(Environment { longhaul: VERSION.to_owned(), ..Environment::default() }),
        None => Ok(environment(history, &places::reader(shared)?.epochs()?)),
    }
}

/// Somebody else's file. No more of it is read than such a file can hold.
fn of_somebody(path: &Path) -> anyhow::Result<Exchange> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(|| format!("open {}", path.display()))?;
    let limit = longhaul_report::exchange::LARGEST as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).with_context(|| format!("read {}", path.display()))?;
    read(&String::from_utf8_lossy(&bytes)).with_context(|| format!("{} cannot be shown", path.display()))
}

/// Writes a text into a file and says so.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    anstream::eprintln!("wrote {}", path.display());
    Ok(())
}
