//! The interface against its own description: opt-in, for it needs Schemathesis, which a script installs.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_service::desk::Desk;
use longhaul_service::status::{Check, Verdict};

use crate::client::Face;
use crate::world;

/// Where the program is.
const ASKED: &str = "LONGHAUL_SCHEMATHESIS";

#[test]
fn every_answer_has_the_form_that_is_described() {
    let Some(program) = std::env::var_os(ASKED) else {
        let why = format!("\nskipped: interface: {ASKED}=PROGRAM runs it, after tests/web/interface.sh");
        let _ = writeln!(std::io::stderr(), "{why}");
        return;
    };
    let face = Face::start();
    world::begin_round(&face.desk);
    let is_over = Arc::new(AtomicBool::new(false));
    let doctor = std::thread::spawn({
        let (desk, is_over) = (Arc::clone(&face.desk), Arc::clone(&is_over));
        move || examine_until(&desk, &is_over)
    });
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(program)
        .args(["run", &format!("http://127.0.0.1:{}/openapi.json", face.port)])
        .args(["--header", &format!("Authorization: Bearer {}", world::TOKEN)])
        .args(["--checks", "all", "--mode", "all", "--max-examples", "40", "--seed", "1"])
        .args(["--generation-database", "none", "--continue-on-failure", "--no-color"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    is_over.store(true, Ordering::Relaxed);
    let examined = doctor.join().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    println!("{said}");
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(examined > 0, "the doctor was asked");
}

/// Stands for the service, which answers the doctor's questions. Returns how often it was asked.
fn examine_until(desk: &Desk, is_over: &AtomicBool) -> u32 {
    let mut asked = 0;
    while !is_over.load(Ordering::Relaxed) {
        if let Some(asker) = desk.orders(|orders| orders.doctor.take()) {
            let checks = vec![
                Check::ok("configuration", "well formed"),
                Check::bad("smb", Verdict::Failed, "cannot be opened", "Mount it again"),
            ];
            let _ = asker.send(checks);
            asked += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    asked
}
