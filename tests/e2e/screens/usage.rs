//! Counted usage in the database of the screens.

use std::path::Path;

use longhaul_measure::platform;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{CounterSource, RequestCounts, RequestKind, Target, Timestamp, UsageStep};
use longhaul_store::{Samples, Store, Writer};
use rusqlite::Connection;

/// Adds the usage of the last `days` days: an hour a day, in which smb is used, and another with a round. The numbers
/// do not depend on the time at which the test runs.
pub fn add_usage(database: &Path, days: u32) {
    let now = platform::wall_clock();
    let targets = super::world::targets();
    let usage = (1..=days).flat_map(|ago| {
        let midnight = Timestamp::from_us(now.as_us() / DAY.as_micros() as i64 * DAY.as_micros() as i64);
        targets.iter().take(2).map(move |target| step(target, midnight - ago * DAY + 9 * HOUR))
    });
    let new = Samples { targets: targets.clone(), usage: usage.collect(), now, ..Samples::default() };
    Writer::spawn(Store::open(database, &[]).unwrap()).add_samples(new).unwrap();
}

fn step(target: &Target, at: Timestamp) -> UsageStep {
    let is_smb = target.name.as_str() == "smb";
    let source = if is_smb { CounterSource::CifsStats } else { CounterSource::Mountstats };
    let used = if is_smb { 1 } else { 0 };
    let counts = [
        (RequestKind::List, 90),
        (RequestKind::Open, 60),
        (RequestKind::Read, 700),
        (RequestKind::Write, 12),
        (RequestKind::Change, 3),
        (RequestKind::Attributes, 400),
    ];
    let known = counts.into_iter().filter(|(kind, _)| is_smb || *kind != RequestKind::Open);
    UsageStep {
        counted_seconds: 8.0 * 3600.0,
        left_out_seconds: 1800.0,
        requests: known
            .fold(RequestCounts::default(), |sum, (kind, count)| sum.with(kind, Some(count * used))),
        files_read: is_smb.then_some(60),
        read_bytes: Some(350_000_000 * used),
        written_bytes: Some(1_000_000 * used),
        ..UsageStep::new(target.name.clone(), source, at)
    }
}

/// Adds the requests for names that the opening of the large folder takes, which only network targets have.
pub fn add_listings(database: &Path) {
    let update = "UPDATE phase SET wire_listings = 9 WHERE name = 'open-folder' AND cache = 'cold'";
    assert!(Connection::open(database).unwrap().execute(update, []).unwrap() > 0);
}
