//! `longhaul doctor`: one line for each thing that has to be right, with its fix.

use std::process::ExitCode;

use anstyle::AnsiColor;
use longhaul_measure::model::Target;
use longhaul_measure::platform;
use longhaul_measure::summary::FEWEST_ROUNDS_A_DAY;
use longhaul_service::config::Config;
use longhaul_service::status::{Check, Verdict};
use longhaul_service::target_path::SpecialFolders;

use super::control::client;
use super::service;
use crate::arguments::{Listing, Shared};
use crate::client::ClientError;
use crate::{exit, places};

/// Asks the service; without one, looks at what can be seen from here, and says so.
pub fn run(shared: &Shared, arguments: &Listing) -> anyhow::Result<ExitCode> {
    let mut checks = vec![config(shared)];
    match client(shared).and_then(|client| Ok(client.doctor()?)) {
        Ok(answered) => {
            checks.push(Check::ok("service", "it runs and answers; what follows is what it sees"));
            checks.extend(answered);
        }
        Err(error) => checks.extend(without(shared, &error)),
    }
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&checks)?);
    } else {
        checks.iter().for_each(print);
    }
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(if failed { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

fn config(shared: &Shared) -> Check {
    match places::config(shared) {
        Ok(config) if config.targets.is_empty() => Check::bad(
            "configuration",
            Verdict::Failed,
            "no target is named in it",
            "`longhaul init` asks what to compare and writes it",
        ),
        Ok(config) if config.schedule.rounds_per_day < FEWEST_ROUNDS_A_DAY as u64 => Check::bad(
            "configuration",
            Verdict::Warning,
            format!("a day counts from {FEWEST_ROUNDS_A_DAY} rounds on, so there will never be a verdict"),
            "set a larger `rounds-per-day`",
        ),
        Ok(config) => Check::ok("configuration", format!("{} targets", config.targets.len())),
        Err(error) => Check::bad(
            "configuration",
            Verdict::Failed,
            format!("{error:#}"),
            "correct the line that is named",
        ),
    }
}

/// What can be seen without the service. Targets are not touched from here: a terminal has other rights than the service.
fn without(shared: &Shared, error: &anyhow::Error) -> Vec<Check> {
    let mut checks = vec![match error.downcast_ref::<ClientError>() {
        Some(ClientError::Absent(_)) => service::check(),
        _ => {
            Check::bad("service", Verdict::Failed, format!("{error:#}"), "`longhaul restart` starts it anew")
        }
    }];
    let config = places::config(shared).unwrap_or_default();
    checks.push(
        match places::database(shared, &config)
            .and_then(|path| Ok(longhaul_store::Reader::open(&path)?.size_bytes()?))
        {
            Ok(bytes) => Check::ok("database", crate::render::units::bytes(bytes as f64)),
            Err(error) => Check::bad(
                "database",
                Verdict::Unknown,
                format!("{error:#}"),
                "nothing, if nothing was measured yet",
            ),
        },
    );
    checks.extend(paths(shared, &config));
    checks.push(Check::bad(
        "targets",
        Verdict::Unknown,
        "not looked at: only the service can say what the service may do",
        "start the service, then ask again",
    ));
    checks
}

/// Targets that are no good place, by their paths alone.
fn paths(shared: &Shared, config: &Config) -> Vec<Check> {
    let mounts = platform::mounts().unwrap_or_default();
    let folders = SpecialFolders::of(places::database(shared, config).ok().as_deref(), &mounts);
    let check = |target: &Target| {
        let concern = folders.concern(&target.path)?;
        let verdict = if concern.is_refused() { Verdict::Failed } else { Verdict::Warning };
        let found = format!("{} {concern}", target.path.display());
        Some(Check::bad(format!("target {}", target.name), verdict, found, concern.advice()))
    };
    config.targets.iter().filter_map(check).collect()
}

/// Prints one check as one line.
pub fn print(check: &Check) {
    let (colour, word) = match check.verdict {
        Verdict::Ok => (AnsiColor::Green, "ok"),
        Verdict::Warning => (AnsiColor::Yellow, "warning"),
        Verdict::Failed => (AnsiColor::Red, "failed"),
        Verdict::Unknown => (AnsiColor::Yellow, "unknown"),
    };
    let style = colour.on_default();
    let fix = check.fix.as_ref().map_or(String::new(), |fix| format!(". {fix}"));
    anstream::println!("{style}{word:<8}{style:#} {:<20} {}{fix}", check.what, check.found);
}
