//! Tests the cost of a status request. A file in memory has one block for each page that was touched, which Linux
//! can report.

#![cfg(target_os = "linux")]

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use longhaul_measure::platform;
use longhaul_measure::recorder::{Recorder, THREAD_SLOTS};
use longhaul_model::Operation;

use crate::client::TestServer;

#[test]
fn status_reads_no_histogram() {
    let (file, _) = platform::shared_file().unwrap();
    let recorder = Arc::new(Recorder::create(&file).unwrap());
    (0..THREAD_SLOTS).for_each(|lane| {
        recorder.untracked_thread_slot(lane).begin(Operation::Read, platform::monotonic_ns())
    });
    let server = TestServer::start();
    longhaul_demo::begin_round(&server.handle).unwrap();
    server.handle.set_recorder(&"smb".parse().unwrap(), &recorder);
    let pages = || file.metadata().unwrap().blocks();
    let before = pages();
    assert!(server.handle.status().is_some());
    assert_eq!(pages(), before);
    assert!(server.handle.live_status().is_some());
    assert!(pages() > before, "the live status reads the histograms");
}
