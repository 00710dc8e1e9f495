//! Writes the weeks of a simulated fleet with the code of the real export, and next to them what `longhaul-analysis` finds in
//! them, to compare with the answers of other engines: `--machines 500 --weeks 8 --to FOLDER`.

mod arguments;
mod expected;
mod machine;
mod operations;
mod random;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use longhaul_export::fleet::{FleetTable, TableFile, Week, WeekRecords};
use longhaul_fleet::FileKey;

use arguments::Arguments;
use expected::Expected;
use machine::{FIRST_DAY, Machine};
use operations::RunOperations;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let (next, expected) = (AtomicU64::new(0), Mutex::new(Expected::default()));
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let work = || -> anyhow::Result<()> {
            let mut own = Expected::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= arguments.machines {
                    break;
                }
                add_machine(&arguments, number, &mut own)?;
            }
            expected.lock().expect("no thread panics with the lock").merge(own);
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("the worker does not panic"))
    })?;
    let last_week = last_week(&arguments);
    let expected = expected.into_inner().expect("all threads have ended").to_json(last_week);
    let path = arguments.folder.join("expected.json");
    fs::write(&path, expected.to_string()).with_context(|| format!("write {}", path.display()))?;
    println!(
        "{} machines, {} weeks up to {last_week}: {}",
        arguments.machines,
        arguments.weeks,
        path.display()
    );
    Ok(())
}

fn last_week(arguments: &Arguments) -> Week {
    Week::of_day(FIRST_DAY + i64::from(arguments.weeks) * 7 - 1)
}

fn add_machine(arguments: &Arguments, number: u64, expected: &mut Expected) -> anyhow::Result<()> {
    let machine = Machine::new(number, arguments.weeks);
    let last = last_week(arguments);
    for week in (0..arguments.weeks).map(|week| Week::of_day(FIRST_DAY + i64::from(week) * 7)) {
        let records = WeekRecords::new(&machine.origin, &machine.history, week);
        let mut operations = RunOperations::new(&machine, week, (week == last).then_some(&mut *expected));
        let files = [
            (FleetTable::Rounds, records.rounds()?),
            (FleetTable::Runs, records.runs()?),
            (FleetTable::Readings, records.readings()?),
            (FleetTable::Operations, records.operations(|each| operations.for_each(each))?),
            (FleetTable::Samples, records.samples(&machine.samples(week))?),
            (FleetTable::Events, records.events()?),
            (FleetTable::Freshness, records.freshness(&machine.freshness)?),
            (FleetTable::Integrity, records.integrity(&machine.verified)?),
        ];
        for (table, file) in files {
            expected.count(table, file.rows);
            let key = FileKey { table, week, source: machine.origin.source.clone() };
            write(&arguments.folder, &key, &file)?;
        }
    }
    expected.add_history(&machine, last);
    Ok(())
}

fn write(folder: &Path, key: &FileKey, file: &TableFile) -> anyhow::Result<()> {
    if file.rows == 0 {
        return Ok(());
    }
    let path = folder.join(key.path(&object_store::path::Path::default()).as_ref());
    let parent = path.parent().context("a file of a table lies in a folder")?;
    fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
    fs::write(&path, &file.bytes).with_context(|| format!("write {}", path.display()))
}
