//! Tests the pages in a real browser. Opt-in, because it needs Node, playwright-core and Chromium, which
//! `tests/web/install.sh` installs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::client::TestServer;

#[test]
#[ignore = "needs Node and Chromium: tests/web/install.sh; run with --ignored"]
fn pages_are_accessible_in_a_real_browser() {
    let server = TestServer::start();
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/web/suite.mjs");
    let handle = Arc::clone(&server.handle);
    let round = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        longhaul_demo::begin_round(&handle).unwrap();
    });
    let done = Command::new("node")
        .arg(suite)
        .arg(format!("http://127.0.0.1:{}", server.port))
        .arg(crate::pages::week(&server))
        .arg(crate::world::TOKEN)
        .output()
        .unwrap();
    round.join().unwrap();
    println!("{}", String::from_utf8_lossy(&done.stdout));
    assert!(
        matches!(server.handle.next_command(), Some(longhaul_service::command::Command::SetPause(_))),
        "the pause button of the page had an effect"
    );
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
