//! `longhaul export share`: writes the anonymous file of this machine, after showing it.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use longhaul_commons::{
    MAX_FILE_BYTES, NasFamily, ShareBuilder, ShareFacts, SharedRecords, SharedResults, check,
};
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
    let nas = arguments.share.nas.unwrap_or_default();
    let Some(share) = read_share(&paths::open_reader(shared)?, nas)? else {
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

/// Makes the file from the rounds of this computer, run by run. A file has one seed, so it cannot have those of another computer that
/// used the database before.
fn read_share(reader: &Reader, nas: NasFamily) -> anyhow::Result<Option<SharedResults>> {
    let (history, elsewhere) = (reader.history()?, reader.rounds_elsewhere()?);
    let mut rounds = reader.rounds()?;
    rounds.retain(|round| round.number > elsewhere);
    let facts = ShareFacts {
        longhaul: env!("CARGO_PKG_VERSION").to_owned(),
        threshold: history.settings.threshold,
        nas,
    };
    let records = SharedRecords {
        targets: reader.targets()?.into_iter().map(|stored| stored.target).collect(),
        epochs: reader.epochs()?,
        rounds,
    };
    let mut builder = ShareBuilder::new(facts, records);
    for run in history.runs.iter().filter(|run| run.round > elsewhere) {
        reader.run(run.number)?.iter().for_each(|stored| builder.add(stored));
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use longhaul_model::{Role, RoundStatus, Run, Scale, Target, Timestamp};
    use longhaul_store::{NewRound, PlannedRun, RoundEnd, Store};

    use super::*;

    /// Stores a round on a computer, with one run.
    fn add_round(database: &Path, host: &str, seed: u64) {
        let mut store = Store::open_on(Some(host), database, &[], Duration::from_secs(5)).unwrap();
        let target = Target { name: "smb".parse().unwrap(), path: "/m/smb".into(), role: Role::Share };
        let planned = vec![PlannedRun { target: target.name.clone(), workload: "folder-index".into() }];
        let started = Timestamp::from_us(1_900_000_000_000_000);
        store
            .bulk_insert(|bulk| {
                let round =
                    bulk.begin_round(&NewRound { planned, ..NewRound::new(started, seed, Scale::Quick) })?;
                bulk.add_run(&target, &Run::new(round, target.name.clone(), "folder-index", started))?;
                let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: started };
                bulk.end_round(round, &end)
            })
            .unwrap();
    }

    #[test]
    fn only_rounds_of_this_computer_are_shared() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        for (host, seed) in [("a", 7), ("a", 7), ("b", 8)] {
            add_round(&database, host, seed);
        }
        let share = read_share(&Reader::open(&database).unwrap(), NasFamily::default()).unwrap().unwrap();
        assert_eq!((share.seed(), share.rounds.len(), share.rounds[0].runs.len()), (Some(8), 1, 1));
    }
}
