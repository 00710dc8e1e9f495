//! Made-up weeks of measurements: a database, the status of a service, and rounds in progress. The demo, benchmarks and tests
//! use them. Nothing here was measured.

mod checks;
mod live;
pub mod machine;
mod network;
mod samples;
mod stall;
mod status;
pub mod synthetic_history;

pub use live::{begin_round, repeat_rounds, stall_now};
pub use stall::stall;
pub use status::status;

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_model::{Protocol, TargetName, Timestamp};
use longhaul_store::{Samples, Store, Writer};

const WEEK: Duration = Duration::from_hours(7 * 24);
/// Offset that aligns time with Mondays: 1970-01-01 was a Thursday, and the weeks start at midnight UTC+1.
const TO_MONDAY: Duration = Duration::from_hours(3 * 24 + 1);

/// Creates a database with this many whole weeks of results, checks and samples before this week, and the samples of this week up to
/// now, and returns its path.
///
/// # Errors
///
/// If the database exists or cannot be written.
pub fn database(folder: &Path, weeks: u32) -> anyhow::Result<PathBuf> {
    let path = folder.join("longhaul.sqlite");
    let now = platform::wall_clock();
    let begin = this_monday(now) - weeks * WEEK;
    synthetic_history::fill_database(&path, begin, 7 * weeks)?;
    let writer = Writer::spawn(Store::open(&path, &[])?);
    checks::add(&writer, begin, weeks * 7)?;
    let days: Samples = samples::last_days(now, weeks * 7 + 6);
    writer.add_samples(days)?;
    Ok(path)
}

fn name(target: &str) -> TargetName {
    target.parse().unwrap_or_else(|error| unreachable!("{target} is a valid name: {error}"))
}

/// Returns the protocol of a target, before the update of the server to a newer SMB dialect.
fn protocol(target: &str) -> Protocol {
    match target {
        "local" => Protocol::Local("apfs".to_owned()),
        "smb" => Protocol::Smb(Some("3.0.2".to_owned())),
        "nfs" => Protocol::Nfs(Some("4.1".to_owned())),
        _ => Protocol::Afp,
    }
}

/// Returns the start of this week.
fn this_monday(now: Timestamp) -> Timestamp {
    (now + TO_MONDAY).floor(WEEK) - TO_MONDAY
}
