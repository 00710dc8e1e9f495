//! `longhaul export share`: writes the anonymous file of this machine, after showing it.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use longhaul_commons::{MAX_FILE_BYTES, ShareBuilder, ShareFacts, SharedRecords, SharedResults, check};
use longhaul_store::Reader;
use longhaul_view::screens;

use super::clean::confirm;
use crate::arguments::{ExportArgs, GlobalArgs};
use crate::errors::UsageError;
use crate::{exit, paths, render, result_file};

/// Shows what the file shares, asks, and writes it. Without a terminal it asks for `--yes` instead.
pub fn run(shared: &GlobalArgs, arguments: &ExportArgs) -> anyhow::Result<ExitCode> {
    if arguments.from.is_some() || arguments.to.is_some() || arguments.format.is_some() {
        let usage = "`export share` has all rounds, in its own format: leave out --from, --to and --format";
        return Err(UsageError(usage.to_owned()).into());
    }
    let path = arguments.file.as_ref().or(arguments.output.as_ref());
    let path = path.ok_or_else(|| UsageError("give the file: `longhaul export share FILE`".to_owned()))?;
    let Some(share) = read_share(&paths::open_reader(shared)?, arguments)? else {
        crate::output::eprintln!("longhaul: no round has ended yet: `longhaul run` makes one");
        return Ok(ExitCode::from(exit::NO_DATA));
    };
    let text = share.to_json();
    anyhow::ensure!(
        text.len() <= MAX_FILE_BYTES,
        "the file would be larger than others can read: {} bytes",
        text.len()
    );
    render::print(&screens::commons::share(&share, text.len()));
    render::print(&screens::commons::contradictions(&check(&share)));
    if !arguments.share.yes && !std::io::stdin().is_terminal() {
        crate::output::eprintln!("longhaul: nothing was written: read what is shared, then give --yes");
        return Ok(ExitCode::from(exit::USAGE));
    }
    if !arguments.share.yes && !confirm(&format!("Write this to {}?", path.display()))? {
        crate::output::println!("Nothing was written.");
        return Ok(exit::OK);
    }
    result_file::write(path, text)?;
    Ok(exit::OK)
}

/// Makes the file from the database, run by run.
fn read_share(reader: &Reader, arguments: &ExportArgs) -> anyhow::Result<Option<SharedResults>> {
    let history = reader.history()?;
    let facts = ShareFacts {
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
        threshold: history.settings.threshold,
        nas: arguments.share.nas.unwrap_or_default(),
    };
    let records = SharedRecords {
        targets: reader.targets()?.into_iter().map(|stored| stored.target).collect(),
        epochs: reader.epochs()?,
        rounds: reader.rounds()?,
    };
    let mut builder = ShareBuilder::new(facts, records);
    for run in &history.runs {
        reader.run(run.number)?.iter().for_each(|stored| builder.add(stored));
    }
    Ok(builder.finish())
}
