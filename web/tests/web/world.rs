//! A service that was never there: made-up weeks in a real database, a desk that tells of them, and the real page in front.

// The example and every test use their own part of it.
#![allow(dead_code)]

#[path = "../../../cli/bench/year.rs"]
mod year;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::corpus::draw::draw_below;
use longhaul_measure::model::{Beside, Call, Kept, Operation, ProbeKind, ProbeStep, Role, Stall, Target};
use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_service::desk::Desk;
use longhaul_service::status::{
    DatabaseStatus, LastRound, ProbeState, State, Status, TargetState, TargetStatus,
};
use longhaul_store::{
    NewRound, Reader, RoundCounts, RoundEnd, RoundStatus, RunFilter, Samples, Store, StoredRun, Writer,
};
use longhaul_web::{Control, Doors, Limits, Sources};

pub const TOKEN: &str = "the-token-of-the-file";
const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;
const WEEK_US: i64 = 7 * DAY_US;
/// Microseconds from Monday to 1970-01-01, a Thursday, and an hour, for the weeks are those of UTC+1.
const TO_MONDAY_US: i64 = 3 * DAY_US + HOUR_US;
const SHARES: [(&str, u64); 3] = [("smb", 260), ("nfs", 330), ("afp", 520)];

/// A database of so many weeks up to now, in a folder.
pub fn database(folder: &Path, weeks: u32) -> PathBuf {
    let path = folder.join("longhaul.sqlite");
    let now_us = platform::wall_clock_us();
    let this_monday_us = now_us - (now_us + TO_MONDAY_US).rem_euclid(WEEK_US);
    year::fill(&path, (this_monday_us - i64::from(weeks) * WEEK_US, weeks)).unwrap();
    let writer = Writer::spawn(Store::open(&path, &[]).unwrap());
    for day in (0..i64::from(weeks) * 7 + 6).rev() {
        writer.add_samples(samples(now_us, now_us - day * DAY_US)).unwrap();
    }
    path
}

/// A round of an hour ago with one run, each phase of which keeps some calls.
pub fn add_calls(database: &Path) {
    let filter =
        RunFilter { workload: Some("photo-batch".to_owned()), limit: Some(1), ..RunFilter::default() };
    let StoredRun { mut run, .. } = Reader::open(database).unwrap().runs(&filter).unwrap().remove(0);
    let started_us = platform::wall_clock_us() - HOUR_US;
    let writer = Writer::spawn(Store::open(database, &[]).unwrap());
    let round = NewRound {
        started_us,
        utc_offset_seconds: 3600,
        seed: 1,
        scale: run.scale,
        planned: vec![],
        scheduled_us: None,
        before: None,
    };
    (run.round, run.started_us) = (writer.begin_round(round).unwrap(), started_us);
    for phase in &mut run.phases {
        phase.began_us = Some(started_us);
        phase.calls = (0..10).map(|place| call(phase.operations[0].operation, place)).collect();
    }
    writer.add_run(&target(run.target.as_str()), &run).unwrap();
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended_us: started_us + 1, after: None };
    writer.end_round(run.round, end).unwrap();
}

/// The tenth is the slowest, and failed.
fn call(operation: Operation, place: u64) -> Call {
    let nanoseconds = (place + 1) * 1_000_000_000;
    Call { operation, after_ns: place, nanoseconds, is_error: place == 9, kept: Kept::Slowest }
}

fn target(name: &str) -> Target {
    Target { name: name.parse().unwrap(), path: format!("/Volumes/{name}").into(), role: Role::Share }
}

/// A day of samples: hours of the night are not asked, evenings are slow, NFS stalls now and then.
fn samples(now_us: i64, day_us: i64) -> Samples {
    let midnight_us = day_us.div_euclid(DAY_US) * DAY_US;
    let hours = (7..24).map(|hour| midnight_us + hour * HOUR_US).filter(|at_us| *at_us < now_us);
    let day = midnight_us / DAY_US;
    let is_holiday = day % 31 < 3;
    let mut samples =
        Samples { targets: SHARES.map(|(name, _)| target(name)).to_vec(), now_us, ..Samples::default() };
    for at_us in hours.filter(|_| !is_holiday) {
        for share in SHARES {
            samples.probes.extend([ProbeKind::Getattr, ProbeKind::Read].map(|kind| step(share, at_us, kind)));
        }
    }
    if day % 9 == 4 && !is_holiday {
        samples.stalls.push(stall(midnight_us + 20 * HOUR_US));
    }
    samples
}

fn step((name, usual_us): (&str, u64), at_us: i64, kind: ProbeKind) -> ProbeStep {
    let mut step = ProbeStep::new(name.parse().unwrap(), at_us, kind, Beside::Calm);
    let hour = at_us.rem_euclid(DAY_US) / HOUR_US;
    let evening = if (18..22).contains(&hour) { 3 } else { 1 };
    let cached = if kind == ProbeKind::Getattr { 4 } else { 1 };
    for answer in 0..60 {
        let drawn = draw_below(at_us.cast_unsigned() ^ usual_us, kind as u64, answer, 1_000);
        let slow = if drawn > 990 { 30 } else { 1 };
        step.latency.record(1_000 * usual_us * evening * slow * (400 + drawn) / (500 * cached));
    }
    let is_stalled = name == "nfs" && at_us / DAY_US % 9 == 4 && hour == 20;
    step.errors = if is_stalled { 3 } else { 0 };
    step
}

fn stall(started_us: i64) -> Stall {
    Stall {
        target: "nfs".parse().unwrap(),
        opened_us: started_us,
        started_us,
        ended_us: Some(started_us + 42_000_000),
        is_cut: false,
        operation: "getattr".to_owned(),
        calls: 3,
        longest_ns: 42_000_000_000,
        errors: [("ETIMEDOUT".to_owned(), 3)].into(),
        who: vec!["probe".to_owned()],
        beside: None,
    }
}

/// A stall that goes on.
pub fn stall_now() -> Stall {
    Stall { ended_us: None, calls: 1, ..stall(platform::wall_clock_us() - 5_000_000) }
}

/// What the service says of itself between two rounds.
pub fn status(database: &Path) -> Status {
    let now_us = platform::wall_clock_us();
    Status {
        schema: 1,
        version: "0.1.0".to_owned(),
        pid: 4711,
        started_us: now_us - 3 * DAY_US,
        now_us,
        state: State::Waiting,
        problems: vec![],
        targets: SHARES.map(|(name, _)| of_target(name)).to_vec(),
        stalls: vec![],
        rounds: RoundCounts { ok: 930, void: 9, skipped: 10, cut_short: 3, open: 0 },
        last: Some(LastRound {
            number: 952,
            status: RoundStatus::Ok,
            reason: None,
            ended_us: now_us - HOUR_US / 2,
        }),
        next_us: Some(now_us + HOUR_US / 3),
        slices: 4,
        design: None,
        database: DatabaseStatus { path: database.to_owned(), bytes: Some(123_456_789) },
        config: None,
        log_level: "info".to_owned(),
        telemetry: longhaul_telemetry::status::ExportStatus::default(),
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
        bytes_per_day: 4_200_000_000,
        bytes_allowed: Some(20_000_000_000),
        probe: ProbeState::Asking,
    }
}

/// A round begins, and a run on the first share with some calls behind it.
pub fn begin_round(desk: &Desk) {
    let smb = "smb".parse().unwrap();
    desk.set_round(Some((953, 12)));
    (0..4).for_each(|_| desk.count_run());
    desk.set_run(&smb, "photo-batch");
    desk.set_phase(&smb, "open-cold");
    let recorder = Arc::new(Recorder::private().unwrap());
    let lane = recorder.lane(0);
    for call in 0..300 {
        for operation in [Operation::Open, Operation::Read] {
            lane.begin(operation, platform::monotonic_ns());
            lane.end(operation, 200_000 + draw_below(1, operation as u64, call, 900_000), &Ok::<(), ()>(()));
        }
        lane.add_read(1 << 20);
    }
    desk.set_recorder(&smb, &recorder);
}

/// What stands behind the page.
pub fn control(database: PathBuf) -> Control {
    let desk = Arc::new(Desk::default());
    desk.publish(status(&database));
    Control {
        desk,
        token: TOKEN.into(),
        set_level: Arc::new(|_| Ok(())),
        metrics: Arc::new(|| Ok("# EOF\n".to_owned())),
        sources: Sources { database, config: None },
        limits: Limits::default(),
    }
}

/// Answers at a port until the stop comes.
pub async fn serve(port: u16, control: Control, stop: impl Future<Output = ()>) {
    let loopback = longhaul_web::listen(Ipv4Addr::LOCALHOST.into(), port).await.unwrap();
    longhaul_web::serve(Doors { loopback, network: None }, control, stop).await.unwrap();
}

/// Lets a round come and go for ever, so that there is something live to look at.
pub async fn go_on(desk: Arc<Desk>) {
    loop {
        begin_round(&desk);
        tokio::time::sleep(Duration::from_secs(6)).await;
        desk.set_stalls(vec![stall_now()]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        desk.set_stalls(vec![]);
        desk.set_round(None);
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
}
