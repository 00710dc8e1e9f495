//! Tests the pages in a real browser. Opt-in, because it needs Node, playwright-core and Chromium, which
//! `tests/web/install.sh` installs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::client::TestServer;

#[test]
#[ignore = "needs Node and Chromium: tests/web/install.sh; run with --ignored"]
fn pages_are_accessible_in_a_real_browser() {
    let server = TestServer::start();
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/web/suite.mjs");
    let mut node = Command::new("node")
        .arg(suite)
        .arg(format!("http://127.0.0.1:{}", server.port))
        .arg(crate::pages::week(&server))
        .arg(crate::world::TOKEN)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for line in BufReader::new(node.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        println!("{line}");
        if line == "a round begins" {
            longhaul_demo::begin_round(&server.handle).unwrap();
        }
    }
    assert!(
        matches!(server.handle.next_command(), Some(longhaul_service::command::Command::SetPause(_))),
        "the pause button of the page had an effect"
    );
    assert!(node.wait().unwrap().success());
}
