//! Tests the HTTP API against its own OpenAPI document. Opt-in, because it needs Schemathesis, which
//! `tests/web/interface.sh` installs.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_service::handle::ServiceHandle;
use longhaul_service::status::{Check, CheckStatus};

use crate::client::TestServer;
use crate::world;

/// Environment variable with the path of the Schemathesis program.
const PROGRAM_VARIABLE: &str = "LONGHAUL_SCHEMATHESIS";

#[test]
#[ignore = "needs Schemathesis: tests/web/interface.sh; run with --ignored"]
fn responses_match_the_openapi_schema() {
    let program = std::env::var_os(PROGRAM_VARIABLE).expect("LONGHAUL_SCHEMATHESIS must name the program");
    let server = TestServer::start();
    longhaul_demo::begin_round(&server.handle).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let doctor = std::thread::spawn({
        let (handle, is_over) = (Arc::clone(&server.handle), Arc::clone(&is_over));
        move || answer_until(&handle, &is_over)
    });
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(program)
        .args(["run", &format!("http://127.0.0.1:{}/openapi.json", server.port)])
        .args(["--header", &format!("Authorization: Bearer {}", world::TOKEN)])
        .args(["--checks", "all", "--mode", "all", "--max-examples", "40", "--seed", "1"])
        .args(["--generation-database", "none", "--continue-on-failure", "--no-color"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    is_over.store(true, Ordering::Relaxed);
    let requests = doctor.join().unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    println!("{output}");
    assert!(done.status.success(), "{output}{}", String::from_utf8_lossy(&done.stderr));
    assert!(requests > 0, "the doctor was requested");
}

/// Answers requests for the doctor in place of the service, until `is_over`. Returns the number of requests.
fn answer_until(handle: &ServiceHandle, is_over: &AtomicBool) -> u32 {
    let mut requests = 0;
    while !is_over.load(Ordering::Relaxed) {
        if let Some(longhaul_service::command::Command::Examine(reply)) = handle.next_command() {
            let checks = vec![
                Check::ok("configuration", "well formed"),
                Check::problem("smb", CheckStatus::Failed, "cannot be opened", "Mount it again"),
            ];
            let _ = reply.send(checks);
            requests += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    requests
}
