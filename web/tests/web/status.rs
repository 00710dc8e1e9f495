//! What a status costs: a file in memory, which Linux has, holds as many blocks as pages of it have been touched.

#![cfg(target_os = "linux")]

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use longhaul_measure::model::Operation;
use longhaul_measure::platform;
use longhaul_measure::recorder::{LANES, Recorder};

use crate::client::Face;
use crate::world;

#[test]
fn the_status_of_a_round_touches_no_histogram() {
    let (file, _) = platform::shared_file().unwrap();
    let recorder = Arc::new(Recorder::create(&file).unwrap());
    (0..LANES).for_each(|lane| recorder.bare_lane(lane).begin(Operation::Read, platform::monotonic_ns()));
    let face = Face::start();
    world::begin_round(&face.desk);
    face.desk.set_recorder(&"smb".parse().unwrap(), &recorder);
    let pages = || file.metadata().unwrap().blocks();
    let before = pages();
    assert!(face.desk.status().is_some());
    assert_eq!(pages(), before);
    assert!(face.desk.live().is_some());
    assert!(pages() > before, "who asks for the figures looks at all of them");
}
