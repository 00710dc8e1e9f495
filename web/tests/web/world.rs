//! A simulated service: weeks of made-up data in a real database, a service handle with a made-up status, and
//! the real web server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_model::time::HOUR;
use longhaul_model::{Call, KeepReason, Operation, Role, Target};
use longhaul_service::handle::ServiceHandle;
use longhaul_store::{NewRound, Reader, RoundEnd, RoundStatus, RunFilter, Store, StoredRun, Writer};
use longhaul_web::{BODY_TIMEOUT, ServerDeps, SummarySources};

pub const TOKEN: &str = "the-token-of-the-file";

/// Creates a database with this many weeks of data up to now, and returns its path.
pub fn database(folder: &Path, weeks: u32) -> PathBuf {
    longhaul_demo::database(folder, weeks).unwrap()
}

/// Adds a round with one run, an hour ago, whose phases have single calls.
pub fn add_calls(database: &Path) {
    let filter =
        RunFilter { workload: Some("photo-batch".to_owned()), limit: Some(1), ..RunFilter::default() };
    let StoredRun { mut run, .. } = Reader::open(database).unwrap().runs(&filter).unwrap().remove(0);
    let started = platform::wall_clock() - HOUR;
    let writer = Writer::spawn(Store::open(database, &[]).unwrap());
    let round = NewRound { utc_offset_seconds: 3600, ..NewRound::new(started, 1, run.scale) };
    (run.round, run.started_us) = (writer.begin_round(round).unwrap(), started);
    for phase in &mut run.phases {
        phase.began_us = Some(started);
        phase.calls = (0..10).map(|place| call(phase.operations[0].operation, place)).collect();
    }
    writer.add_run(&target(run.target.as_str()), &run, &[]).unwrap();
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: started + Duration::from_micros(1) };
    writer.end_round(run.round, end).unwrap();
}

/// Returns a call of `place + 1` seconds. The tenth call is the slowest, and the only one that failed.
fn call(operation: Operation, place: u64) -> Call {
    let nanoseconds = (place + 1) * 1_000_000_000;
    Call {
        operation,
        offset_ns: place,
        duration_ns: nanoseconds,
        is_error: place == 9,
        keep_reason: KeepReason::Slowest,
    }
}

fn target(name: &str) -> Target {
    Target { name: name.parse().unwrap(), path: format!("/Volumes/{name}").into(), role: Role::Share }
}

/// Returns the dependencies of a web server in front of this database.
pub fn control(database: PathBuf) -> ServerDeps {
    let handle = Arc::new(ServiceHandle::default());
    handle.publish(longhaul_demo::status(&database));
    ServerDeps {
        service: handle,
        token: TOKEN.into(),
        read_key: None,
        set_log_level: Arc::new(|_| Ok(())),
        metrics: Arc::new(|| Ok("# EOF\n".to_owned())),
        sources: SummarySources { database, config: None },
        body_timeout: BODY_TIMEOUT,
        notice: None,
    }
}
