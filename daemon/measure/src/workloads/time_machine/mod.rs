//! What Time Machine does to a share: its own speed test, a burst into the bands of a disk image, thinning, a restore.
//!
//! The speed test is Time Machine's: one file of 50 MB, then 500 files of 4 KB written concurrently. The burst
//! overwrites at random inside bands, adds new bands, replaces small property lists and asks for full syncs between.
//! It runs at normal priority, and as a series of its own at the throttled I/O policy under which backupd works.

mod burst;
mod image;
mod speed;

use std::path::Path;

use super::{Job, Workload};
use crate::context::PhaseSpec;
use crate::error::RunError;
use crate::model::{CacheState, Endpoint, Presence};
use crate::platform::IoPolicy;
use burst::Burst;
use image::{Image, Images};

/// The workload, at one of two priorities.
pub struct TimeMachine {
    name: &'static str,
    summary: &'static str,
    io_policy: IoPolicy,
    endpoints: &'static [Endpoint],
}

impl TimeMachine {
    /// As any program.
    pub const NORMAL: Self = Self {
        name: "time-machine",
        summary: "Time Machine's own speed test, a burst into image bands with full syncs, thinning, a restore",
        io_policy: IoPolicy::Default,
        endpoints: &[burst("a Time Machine burst", 0.25), restore("restoring from Time Machine")],
    };
    /// As the system's backup daemon.
    pub const THROTTLED: Self = Self {
        name: "time-machine-throttled",
        summary: "the same at the throttled I/O policy under which the system's backup daemon works",
        io_policy: IoPolicy::Throttled,
        endpoints: &[
            burst("a throttled Time Machine burst", 0.0),
            restore("a throttled restore from Time Machine"),
        ],
    };
}

const fn burst(activity: &'static str, weight: f64) -> Endpoint {
    Endpoint {
        name: "burst",
        activity,
        cache: CacheState::None,
        figures: &[("burst", "burst")],
        presence: Presence::Background,
        weight,
    }
}

const fn restore(activity: &'static str) -> Endpoint {
    Endpoint {
        name: "restore-cold",
        cache: CacheState::Cold,
        figures: &[("restore", "restore")],
        ..burst(activity, 0.0)
    }
}

/// The folder and manifest entry that both series share.
const FOLDER: &str = "time-machine";

impl Workload for TimeMachine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn folder(&self) -> &'static str {
        FOLDER
    }

    fn io_policy(&self) -> IoPolicy {
        self.io_policy
    }

    fn endpoints(&self) -> &'static [Endpoint] {
        self.endpoints
    }

    fn owns(&self, path: &Path) -> bool {
        let Some(path) = path.to_str() else { return false };
        match path.split_once('/') {
            Some((speed::FOLDER, name)) => speed::owns(name),
            Some((image, name)) => image::owns(image, name),
            None => false,
        }
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        job.require_writing_in_place()?;
        image::prepare(job)
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let mut images = Images::load(job)?;
        let plan = image::plan(job);
        let mut state = images.get(&plan);
        let interrupted = images.is_unfinished();
        state.unfinished = true;
        state.burst += 1;
        images.keep(job, &plan, state)?;
        let speed = speed::SpeedTest::open(job)?;
        if interrupted {
            speed.remove(&job.preparation())?;
        }
        let result = speed.phases(job.session);
        speed.remove(&job.preparation())?;
        result?;
        self.burst(job, &mut state)?;
        state.unfinished = false;
        images.keep(job, &plan, state)
    }
}

impl TimeMachine {
    fn burst(&self, job: &Job<'_>, state: &mut Image) -> Result<(), RunError> {
        let mut burst = Burst::open(job, *state)?;
        let session = job.session;
        session.phase(PhaseSpec::uncached("burst"), |context| burst.write(context))?;
        if let Some(kind) = burst.sync {
            session.fact("sync", kind.name());
        }
        session.phase(PhaseSpec::uncached("thin"), |context| burst.thin(context))?;
        let sample = burst.sample();
        let cold_by = burst.evict(&job.preparation(), &sample)?;
        session.phase(PhaseSpec::cold("restore", cold_by), |context| burst.restore(context, &sample))?;
        *state = burst.image;
        Ok(())
    }
}
