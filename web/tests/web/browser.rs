//! The page in a real browser: opt-in, for it needs Node, playwright-core and Chromium, which a script installs.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Face;

/// Says that the suite is to run.
const ASKED: &str = "LONGHAUL_BROWSER";

#[test]
fn every_page_is_accessible_and_whole_in_a_real_browser() {
    if std::env::var_os(ASKED).is_none() {
        // Past the test harness, which hides what passing tests print.
        let _ =
            writeln!(std::io::stderr(), "\nskipped: browser: {ASKED}=1 runs it, after tests/web/install.sh");
        return;
    }
    let face = Face::start();
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/web/suite.mjs");
    let desk = Arc::clone(&face.desk);
    let round = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        crate::world::begin_round(&desk);
    });
    let done = Command::new("node")
        .arg(suite)
        .arg(format!("http://127.0.0.1:{}", face.port))
        .arg(crate::pages::week(&face))
        .arg(crate::world::TOKEN)
        .output()
        .unwrap();
    round.join().unwrap();
    println!("{}", String::from_utf8_lossy(&done.stdout));
    assert!(face.desk.orders(|orders| orders.pause.is_some()), "the order of the page was taken");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
