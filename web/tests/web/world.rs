//! A simulated service: weeks of synthetic data in a real database, a service handle with a made-up status, and
//! the real web server.

// Each test program and the example use only a part of this module.
#![allow(dead_code)]

#[path = "../../../tests/e2e/support/stall.rs"]
mod stall;
#[path = "../../../tests/bench/program/synthetic_history.rs"]
mod synthetic_history;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_model::draw::draw_below;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    Call, KeepReason, LoadContext, Operation, ProbeKind, ProbeStep, Role, Stall, Target, Timestamp,
};
use longhaul_service::handle::ServiceHandle;
use longhaul_service::status::{
    DatabaseStatus, LastRound, ProbeState, State, Status, TargetState, TargetStatus,
};
use longhaul_store::{
    NewRound, Reader, RoundCounts, RoundEnd, RoundStatus, RunFilter, Samples, Store, StoredRun, Writer,
};
use longhaul_web::{Limits, Listeners, ServerDeps, SummarySources};

pub const TOKEN: &str = "the-token-of-the-file";
const WEEK: Duration = Duration::from_hours(7 * 24);
/// Offset that aligns time with Mondays: 1970-01-01 was a Thursday, and the synthetic weeks start
/// at midnight UTC+1.
const TO_MONDAY: Duration = Duration::from_hours(3 * 24 + 1);
const SHARES: [(&str, u64); 3] = [("smb", 260), ("nfs", 330), ("afp", 520)];

/// Creates a database with this many weeks of data up to now, and returns its path.
pub fn database(folder: &Path, weeks: u32) -> PathBuf {
    let path = folder.join("longhaul.sqlite");
    let now = platform::wall_clock();
    let this_monday = (now + TO_MONDAY).floor(WEEK) - TO_MONDAY;
    synthetic_history::fill_database(&path, (this_monday - weeks * WEEK, weeks)).unwrap();
    let writer = Writer::spawn(Store::open(&path, &[]).unwrap());
    for day in (0..weeks * 7 + 6).rev() {
        writer.add_samples(samples(now, now - day * DAY)).unwrap();
    }
    path
}

/// Adds a round with one run, an hour ago, whose phases have single calls.
pub fn add_calls(database: &Path) {
    let filter =
        RunFilter { workload: Some("photo-batch".to_owned()), limit: Some(1), ..RunFilter::default() };
    let StoredRun { mut run, .. } = Reader::open(database).unwrap().runs(&filter).unwrap().remove(0);
    let started = platform::wall_clock() - HOUR;
    let writer = Writer::spawn(Store::open(database, &[]).unwrap());
    let round = NewRound {
        started,
        utc_offset_seconds: 3600,
        seed: 1,
        scale: run.scale,
        planned: vec![],
        scheduled: None,
        before: None,
    };
    (run.round, run.started_us) = (writer.begin_round(round).unwrap(), started);
    for phase in &mut run.phases {
        phase.began_us = Some(started);
        phase.calls = (0..10).map(|place| call(phase.operations[0].operation, place)).collect();
    }
    writer.add_run(&target(run.target.as_str()), &run).unwrap();
    let end = RoundEnd {
        status: RoundStatus::Ok,
        reason: None,
        ended: started + Duration::from_micros(1),
        after: None,
    };
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

/// Returns the samples of one day: no requests at night, slow evenings, and a stall of NFS every ninth day.
fn samples(now: Timestamp, day: Timestamp) -> Samples {
    let midnight = day.floor(DAY);
    let hours = (7..24).map(|hour| midnight + hour * HOUR).filter(|at| *at < now);
    let day = midnight.local_day(0);
    let is_holiday = day % 31 < 3;
    let mut samples =
        Samples { targets: SHARES.map(|(name, _)| target(name)).to_vec(), now, ..Samples::default() };
    for at in hours.filter(|_| !is_holiday) {
        for share in SHARES {
            samples.probes.extend([ProbeKind::Getattr, ProbeKind::Read].map(|kind| step(share, at, kind)));
        }
    }
    if day % 9 == 4 && !is_holiday {
        samples.stalls.push(stall::stall(midnight + 20 * HOUR));
    }
    samples
}

fn step((name, usual_us): (&str, u64), at: Timestamp, kind: ProbeKind) -> ProbeStep {
    let mut step = ProbeStep::new(name.parse().unwrap(), at, kind, LoadContext::Idle);
    let hour = at.since(at.floor(DAY)).as_secs() / HOUR.as_secs();
    let evening = if (18..22).contains(&hour) { 3 } else { 1 };
    let cached = if kind == ProbeKind::Getattr { 4 } else { 1 };
    for answer in 0..60 {
        let drawn = draw_below(at.as_us().cast_unsigned() ^ usual_us, kind as u64, answer, 1_000);
        let slow = if drawn > 990 { 30 } else { 1 };
        step.latency.record(1_000 * usual_us * evening * slow * (400 + drawn) / (500 * cached));
    }
    let is_stalled = name == "nfs" && at.local_day(0) % 9 == 4 && hour == 20;
    step.errors = if is_stalled { 3 } else { 0 };
    step
}

/// Returns a stall that is still in progress.
pub fn stall_now() -> Stall {
    Stall { ended_us: None, calls: 1, ..stall::stall(platform::wall_clock() - Duration::from_secs(5)) }
}

/// Returns the status of the service between two rounds.
pub fn status(database: &Path) -> Status {
    let now = platform::wall_clock();
    Status {
        schema: 1,
        version: "0.1.0".to_owned(),
        pid: 4711,
        started_us: now - 3 * DAY,
        now_us: now,
        state: State::Waiting,
        problems: vec![],
        targets: SHARES.map(|(name, _)| of_target(name)).to_vec(),
        stalls: vec![],
        rounds: RoundCounts { ok: 930, void: 9, skipped: 10, cut_short: 3, open: 0 },
        last_round: Some(LastRound {
            number: 952,
            status: RoundStatus::Ok,
            reason: None,
            ended_us: now - HOUR / 2,
        }),
        next_round_us: Some(now + HOUR / 3),
        slices: 4,
        design: None,
        database: DatabaseStatus { path: database.to_owned(), bytes: Some(123_456_789) },
        config: None,
        log_level: "info".to_owned(),
        telemetry: longhaul_telemetry::status::ExportStatus::default(),
        notify: Default::default(),
    }
}

fn of_target(name: &str) -> TargetStatus {
    TargetStatus {
        name: name.parse().unwrap(),
        path: format!("/Volumes/{name}"),
        role: Role::Share,
        protocol: Some(match name {
            "smb" => "SMB 3.0.2".to_owned(),
            "nfs" => "NFS 4.1".to_owned(),
            _ => "AFP".to_owned(),
        }),
        state: TargetState::Waiting { reason: "the next round".to_owned(), until_us: None },
        last_runs: Some((4, 4)),
        bytes_last_24h: 4_200_000_000,
        bytes_limit: Some(20_000_000_000),
        probe: ProbeState::Active,
    }
}

/// Starts a round: four runs are done, and the next one on the first share has made some calls.
pub fn begin_round(handle: &ServiceHandle) {
    let smb = "smb".parse().unwrap();
    handle.begin_round(953, 12);
    (0..4).for_each(|_| handle.end_run());
    handle.set_run(&smb, "photo-batch");
    handle.set_phase(&smb, "open-cold");
    let recorder = Arc::new(Recorder::private().unwrap());
    let lane = recorder.thread_slot(0);
    for call in 0..300 {
        for operation in [Operation::Open, Operation::Read] {
            lane.begin(operation, platform::monotonic_ns());
            lane.end(operation, 200_000 + draw_below(1, operation as u64, call, 900_000), &Ok::<(), ()>(()));
        }
        lane.add_read(1 << 20);
    }
    handle.set_recorder(&smb, &recorder);
}

/// Returns the dependencies of a web server in front of this database.
pub fn control(database: PathBuf) -> ServerDeps {
    let handle = Arc::new(ServiceHandle::default());
    handle.publish(status(&database));
    ServerDeps {
        service: handle,
        token: TOKEN.into(),
        set_log_level: Arc::new(|_| Ok(())),
        metrics: Arc::new(|| Ok("# EOF\n".to_owned())),
        sources: SummarySources { database, config: None },
        limits: Limits::default(),
    }
}

/// Serves requests on a port until `stop` completes.
pub async fn serve(port: u16, control: ServerDeps, stop: impl Future<Output = ()>) {
    let loopback = longhaul_web::bind(Ipv4Addr::LOCALHOST.into(), port).await.unwrap();
    longhaul_web::serve(Listeners { loopback, network: None }, control, stop).await.unwrap();
}

/// Simulates rounds for ever, with a stall in each of them, so that the page has something live to show.
pub async fn go_on(handle: Arc<ServiceHandle>) {
    loop {
        begin_round(&handle);
        tokio::time::sleep(Duration::from_secs(6)).await;
        handle.set_stalls(vec![stall_now()]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        handle.set_stalls(vec![]);
        handle.end_round();
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
}
