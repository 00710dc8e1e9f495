//! Simulated service: a fixed status served through the real API and the real pages.
//!
//! The service runs as a second process of this test program, because the time zone is set per process.

use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_model::status::{ExportStatus, SignalStatus};
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{Role, Stall};
use longhaul_service::daemon_address::DaemonAddress;
use longhaul_service::handle::ServiceHandle;
use longhaul_service::status::{
    Check, CheckStatus, DatabaseStatus, LastRound, ProbeState, State, Status, TargetState, TargetStatus,
};
use longhaul_store::{RoundCounts, RoundStatus};
use longhaul_web::{BODY_TIMEOUT, Listeners, ServerDeps, SummarySources};

use super::world::{self, BEGIN};

/// Environment variable with the path of the database.
const DATABASE: &str = "LONGHAUL_SCREENS_DATABASE";
/// Environment variable with the state of the service, as JSON.
const STATE: &str = "LONGHAUL_SCREENS_STATE";
const TOKEN: &str = "the-token-of-the-screens";
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Running service process. It ends when this value is dropped, because its standard input is closed.
pub struct Service(Child);

impl Service {
    /// Starts the service for a database, in the state that waits for the next round.
    pub fn start(database: &Path) -> Self {
        Self::start_as(database, State::Waiting)
    }

    /// Starts the service in a given state.
    pub fn start_as(database: &Path, state: State) -> Self {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["screens::service::process", "--exact", "--ignored"])
            .env(DATABASE, database)
            .env(STATE, serde_json::to_string(&state).unwrap())
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while DaemonAddress::read(database).is_none() {
            assert!(began.elapsed() < STARTS_WITHIN, "the service does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(child)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Entry point of the process that [`Service::start`] starts; not a test.
#[test]
#[ignore = "not a test: the service process of the other tests"]
fn process() {
    let Some(database) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let handle = Arc::new(ServiceHandle::default());
    let state: State = serde_json::from_str(&std::env::var(STATE).unwrap()).unwrap();
    handle.publish(Status { state, ..status(&database) });
    if state == State::Measuring {
        begin_round(&handle);
    }
    handle.set_stalls(vec![Stall { ended_us: None, ..world::stall(BEGIN + 28 * DAY) }]);
    handle.raise_problem("hang", "`nfs` does not answer. Look at the server, or unmount the share.", BEGIN);
    handle.set_telemetry(telemetry());
    let doctor = Arc::clone(&handle);
    std::thread::spawn(move || answer_doctor(&doctor));
    let control = ServerDeps {
        service: handle,
        token: TOKEN.into(),
        read_key: None,
        set_log_level: Arc::new(|_| Ok(())),
        metrics: Arc::new(|| Ok("# EOF\n".to_owned())),
        sources: SummarySources { database: database.clone(), config: None },
        body_timeout: BODY_TIMEOUT,
        notice: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let loopback = longhaul_web::bind(Ipv4Addr::LOCALHOST.into(), 0).await.unwrap();
        let port = loopback.local_addr().unwrap().port();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let address = DaemonAddress { pid: 4711, port, token: TOKEN.to_owned(), version, started_us: BEGIN };
        address.write(&database).unwrap();
        let (stop_sender, stop) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut vec![]);
            drop(stop_sender);
        });
        let stop = async { drop(stop.await) };
        longhaul_web::serve(Listeners { loopback, network: None }, control, stop).await.unwrap();
        address.remove(&database);
    });
}

/// Returns an export status in which one signal was sent and the other one fails.
fn telemetry() -> ExportStatus {
    let signal = |name: &str| SignalStatus {
        name: name.to_owned(),
        endpoint: format!("http://collector:4318/v1/{name}"),
        sent: 930,
        last_sent_us: Some(BEGIN),
        ..SignalStatus::default()
    };
    let metrics = SignalStatus {
        pending: 12,
        rejected: 1,
        last_rejection: Some("round 7: 400 Bad Request".to_owned()),
        last_failure: Some("connection refused".to_owned()),
        next_try_us: Some(BEGIN),
        ..signal("metrics")
    };
    ExportStatus { signals: vec![signal("traces"), metrics], problem: None }
}

/// Publishes a round in progress, with a run on the first share.
fn begin_round(handle: &ServiceHandle) {
    let smb = "smb".parse().unwrap();
    handle.begin_round(953, 12);
    handle.end_run();
    handle.set_run(&smb, "photo-batch");
    handle.set_phase(&smb, "open-cold");
}

fn answer_doctor(handle: &ServiceHandle) {
    loop {
        if let Some(longhaul_service::command::Command::Examine(asker)) = handle.next_command() {
            let fix = "Mount it again";
            let _ = asker.send(vec![
                Check::ok("database", "4 MB"),
                Check::problem("target nfs", CheckStatus::Failed, "cannot be opened", fix),
            ]);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn status(database: &Path) -> Status {
    let database = DatabaseStatus { path: database.to_owned(), bytes: Some(123_456_789) };
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: 4711,
        targets: world::targets().iter().enumerate().map(target_status).collect(),
        rounds: RoundCounts { ok: 930, void: 9, skipped: 10, cut_short: 3, open: 0 },
        last_round: Some(LastRound {
            number: 952,
            status: RoundStatus::CutShort,
            reason: Some("paused".to_owned()),
            ended_us: BEGIN + HOUR,
        }),
        next_round_us: Some(BEGIN + 2 * HOUR),
        slices: 4,
        ..Status::new(database, BEGIN)
    }
}

fn target_status((place, target): (usize, &longhaul_model::Target)) -> TargetStatus {
    TargetStatus {
        name: target.name.clone(),
        path: target.path.display().to_string(),
        role: target.role,
        protocol: (target.role == Role::Share).then(|| "SMB 3.1.1".to_owned()),
        state: match place {
            0 => TargetState::Waiting { reason: "the next round".to_owned(), until_us: None },
            1 => TargetState::Hung { operation: Some("getattr".to_owned()), since_us: BEGIN },
            _ => TargetState::Unavailable { reason: "not mounted. Mount it".to_owned(), is_now: true },
        },
        last_runs: (place == 0).then_some((4, 3)),
        failed_tasks: vec![],
        bytes_last_24h: 4_200_000_000,
        bytes_limit: (place == 0).then_some(20_000_000_000),
        probe: if place == 0 { ProbeState::Active } else { ProbeState::Waiting },
    }
}
