//! What every answer is made from.

use std::sync::Arc;

use longhaul_measure::platform;
use tokio::sync::watch;

use crate::Control;
use crate::guard::Guard;
use crate::pages::{Frames, Now};
use crate::shelf::Shelf;

/// Everything that a handler needs. It is cheap to clone.
#[derive(Clone)]
pub struct Face {
    /// Orders, status, and what changes the log.
    pub control: Control,
    /// What was read.
    pub shelf: Arc<Shelf>,
    /// Who may ask what.
    pub guard: Guard,
    /// What open pages are told.
    pub frames: Frames,
    /// Whether the service ends.
    pub stop: watch::Receiver<bool>,
}

impl Face {
    /// The service at this moment.
    pub fn now(&self) -> Now {
        Now { status: self.control.desk.status(), live: self.control.desk.live() }
    }

    /// The wall clock, in microseconds since 1970 UTC.
    pub fn now_us(&self) -> i64 {
        platform::wall_clock_us()
    }
}
