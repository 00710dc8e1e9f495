//! `longhaul export fleet`: writes this machine's results into a folder or bucket of many machines, or checks that.

use std::process::ExitCode;

use longhaul_fleet::{
    BucketEnvironment, CheckReport, Collection, ExportReport, ExportSettings, MissingCollection,
    RefusedFiles, WeeksToWrite,
};
use longhaul_measure::platform;
use longhaul_service::config::{Argument, Config, FleetConfig, ManagedSettings};
use longhaul_view::units::count;

use crate::arguments::{ExportArgs, FleetArgs, GlobalArgs};
use crate::errors::UsageError;
use crate::{exit, paths};

/// Exports what is not in the collection yet, or checks the collection.
pub fn run(shared: &GlobalArgs, arguments: &ExportArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    refuse_other_options(arguments)?;
    check_managed(arguments, &config)?;
    let collection = open(&config, arguments)?;
    if arguments.fleet.check {
        return check(&collection, &arguments.fleet);
    }
    let reader = paths::open_reader(shared)?;
    let settings = settings(config.fleet, &arguments.fleet);
    let report = longhaul_fleet::export(&reader, &collection, &settings)?;
    print_report(&report);
    Ok(exit::OK)
}

/// Refuses options of the other exports, because they would have no effect.
fn refuse_other_options(arguments: &ExportArgs) -> Result<(), UsageError> {
    let given = [
        ("FILE", arguments.file.is_some()),
        ("--from", arguments.from.is_some()),
        ("--format", arguments.format.is_some()),
        ("--output", arguments.output.is_some()),
        ("--nas", arguments.share.nas.is_some()),
        ("--yes", arguments.share.yes),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(UsageError(format!(
            "`export fleet` has no {option}: it writes all weeks as Parquet; give the folder or bucket with --to"
        ))),
        None => Ok(()),
    }
}

/// Refuses arguments that differ from what the administrator has set.
fn check_managed(arguments: &ExportArgs, config: &Config) -> Result<(), UsageError> {
    let (managed, fleet) = (&config.managed, &config.fleet);
    let to = fleet.to.clone().unwrap_or_default();
    managed
        .check_argument(Argument { option: "--to", key: "fleet.to" }, arguments.to.as_ref(), &to)
        .and_then(|()| {
            let argument = Argument { option: "--site", key: "fleet.site" };
            managed.check_argument(argument, arguments.fleet.site.as_ref(), &fleet.site)
        })
        .map_err(|error| UsageError(error.to_string()))
}

fn open(config: &Config, arguments: &ExportArgs) -> anyhow::Result<Collection> {
    let missing = || {
        let text =
            "give the folder or bucket: `--to /Volumes/fleet`, `--to s3://bucket/fleet`, or `to` in [fleet]";
        UsageError(text.to_owned())
    };
    let fleet = &config.fleet;
    let address = arguments.to.as_deref().or(fleet.to.as_deref()).ok_or_else(missing)?;
    let empty = if arguments.fleet.begin { MissingCollection::Begin } else { MissingCollection::Refuse };
    let environment = environment(&config.managed);
    Ok(Collection::open(address, fleet.credentials_file.as_deref(), empty, environment)?)
}

/// Returns what may name the server of a bucket: nothing of the user if the administrator decides where results go.
fn environment(managed: &ManagedSettings) -> BucketEnvironment {
    match (managed.covering("fleet.to"), managed.covering("fleet.credentials-file")) {
        (Some(_), None) => BucketEnvironment::KeyOnlyAlsoInFile,
        _ if managed.touches("fleet") => BucketEnvironment::KeyOnly,
        _ => BucketEnvironment::All,
    }
}

fn settings(config: FleetConfig, arguments: &FleetArgs) -> ExportSettings {
    ExportSettings {
        site: arguments.site.clone().unwrap_or(config.site),
        label: config.label,
        now: platform::wall_clock(),
        weeks: if arguments.again { WeeksToWrite::All } else { WeeksToWrite::Changed },
    }
}

fn print_report(report: &ExportReport) {
    for left_out in &report.left_out {
        crate::output::eprintln!("longhaul: left out {} {}", left_out.records, left_out.reason);
    }
    if report.files == 0 {
        crate::output::eprintln!("nothing new: exported before: {}", count(report.weeks, "week"));
    } else {
        let megabytes = report.bytes as f64 / 1e6;
        let (rows, files) = (count(report.rows, "row"), count(report.files, "file"));
        crate::output::eprintln!("{rows} written in {files} ({megabytes:.1} MB)");
    }
}

fn check(collection: &Collection, arguments: &FleetArgs) -> anyhow::Result<ExitCode> {
    let treatment = if arguments.move_refused { RefusedFiles::Move } else { RefusedFiles::Keep };
    let report = longhaul_fleet::check(collection, treatment, platform::wall_clock())?;
    print_check(&report, treatment);
    Ok(if report.refused.is_empty() { exit::OK } else { ExitCode::from(exit::RUN_FAILED) })
}

fn print_check(report: &CheckReport, treatment: RefusedFiles) {
    for refused in &report.refused {
        crate::output::print_line(format_args!("refused  {}: {}", refused.path, refused.reason));
    }
    crate::output::println!(
        "accepted: {} with {}; refused: {}",
        count(report.files, "file"),
        count(report.rows, "row"),
        report.refused.len()
    );
    if report.foreign > 0 {
        crate::output::println!("left alone: {} that longhaul did not write", count(report.foreign, "file"));
    }
    match treatment {
        RefusedFiles::Keep if !report.refused.is_empty() => {
            crate::output::println!(
                "Queries may still read refused files: `--check --move-refused` moves them away."
            );
        }
        RefusedFiles::Keep | RefusedFiles::Move => {}
    }
}

#[cfg(test)]
mod tests {
    use longhaul_service::config::FixedSetting;

    use super::*;

    #[test]
    fn only_the_administrators_file_names_a_managed_server() {
        let of = |keys: &[&str]| {
            let fixed = |key: &&str| FixedSetting { key: (*key).to_owned(), line: 1, value: None };
            let fixed = keys.iter().map(fixed).collect();
            environment(&ManagedSettings { fixed, ..ManagedSettings::default() })
        };
        assert_eq!(of(&["fleet.to"]), BucketEnvironment::KeyOnlyAlsoInFile);
        assert_eq!(of(&["fleet.to", "fleet.credentials-file"]), BucketEnvironment::KeyOnly);
        assert_eq!(of(&["fleet"]), BucketEnvironment::KeyOnly);
        assert_eq!(of(&["fleet.site"]), BucketEnvironment::KeyOnly, "the user decides where results go");
        assert_eq!(of(&["scale"]), BucketEnvironment::All);
    }
}
