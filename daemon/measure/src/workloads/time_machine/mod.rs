//! Time Machine on a share: its speed test, a burst of writes into the bands of a disk image, thinning, and a
//! restore.
//!
//! The speed test writes one file of 50 MB, then 500 files of 4 KB concurrently. The burst overwrites random
//! blocks in existing bands, adds new bands and replaces small property lists, with full syncs between them.
//!
//! There are two workloads with separate results: one at normal priority, and one at the throttled I/O policy that
//! macOS's backup daemon (backupd) uses.

mod burst;
mod image;
mod kept;
mod speed_test;

use std::path::{Path, PathBuf};

use super::job::Job;
use super::workload::{ContentLookup, Workload};
use crate::checks::integrity::KnownContent;
use crate::error::RunError;
use crate::platform::IoPolicy;
use crate::timed_fs::PhaseSpec;
use burst::Burst;
use image::{ImageManifest, ImageState};
use kept::KnownBand;
use longhaul_model::{DataAge, TIME_MACHINE, TIME_MACHINE_THROTTLED, Task};
use speed_test::SpeedTest;

/// The Time Machine workload at one of two I/O policies.
pub struct TimeMachine {
    task: Task,
    io_policy: IoPolicy,
}

impl TimeMachine {
    /// The workload at the default I/O policy, like any program.
    pub const NORMAL: Self = Self { task: TIME_MACHINE, io_policy: IoPolicy::Default };
    /// The workload at the throttled I/O policy, like the system's backup daemon.
    pub const THROTTLED: Self = Self { task: TIME_MACHINE_THROTTLED, io_policy: IoPolicy::Throttled };
}

impl Workload for TimeMachine {
    fn name(&self) -> &'static str {
        self.task.name()
    }

    fn folder(&self) -> &'static str {
        image::FOLDER
    }

    fn io_policy(&self) -> IoPolicy {
        self.io_policy
    }

    fn owns(&self, path: &Path) -> bool {
        let Some(path) = path.to_str() else { return false };
        match path.split_once('/') {
            Some((speed_test::FOLDER, name)) => speed_test::owns(name),
            Some((image, name)) => image::owns(image, name),
            None => false,
        }
    }

    fn known_contents(&self, job: &Job<'_>) -> Result<ContentLookup, RunError> {
        let (images, now) = (ImageManifest::load(job)?, job.now);
        let lookup = move |path: &Path| -> Option<Box<dyn KnownContent>> {
            let (name, band) = path.to_str()?.split_once("/bands/")?;
            let (plan, band) = (image::plan_of_name(name)?, image::band_number(band)?);
            let image = images.get(&plan);
            let written = images.written_by(&plan, image.burst, now);
            Some(Box::new(KnownBand { band, plan, image, written }))
        };
        Ok(Box::new(lookup))
    }

    fn kept_files(&self, job: &Job<'_>) -> Result<Vec<PathBuf>, RunError> {
        let images = ImageManifest::load(job)?;
        let finished = images.images().filter(|(_, image)| !image.unfinished);
        let files = finished.flat_map(|(name, image)| {
            let name = name.to_owned();
            (image.first..image.next).map(move |band| Path::new(&name).join(KnownBand::path(band)))
        });
        Ok(files.collect())
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        job.require_in_place_writes()?;
        image::prepare(job)
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let mut images = ImageManifest::load(job)?;
        let plan = image::plan(job);
        let mut state = images.get(&plan);
        // Before the image counts as unfinished, because a refusal must not cost a new image.
        job.require_space(speed_test::BYTES)?;
        let speed = SpeedTest::open(job)?;
        state.unfinished = true;
        state.burst += 1;
        images.speed_files_left = true;
        images.store(job, &plan, state)?;
        let result = speed.run_phases(job.session);
        let removed = speed.remove(&job.untimed());
        result.and(removed)?;
        images.speed_files_left = false;
        self.run_burst(job, &images, &mut state)?;
        state.unfinished = false;
        images.record_burst(&plan, state.burst, job.now);
        images.store(job, &plan, state)
    }
}

impl TimeMachine {
    fn run_burst(
        &self,
        job: &Job<'_>,
        images: &ImageManifest,
        state: &mut ImageState,
    ) -> Result<(), RunError> {
        let mut burst = Burst::open(job, *state)?;
        let plan = image::plan(job);
        let age = |number| DataAge::between(images.written_by(&plan, number, job.now), job.now);
        let session = job.session;
        session.phase(PhaseSpec::uncached("burst"), |context| burst.write(context))?;
        if let Some(kind) = burst.sync {
            session.add_fact("sync", kind.name());
        }
        session.phase(PhaseSpec::uncached("thin"), |context| burst.remove_old_bands(context))?;
        let sample = burst.sample();
        let cold_by = burst.evict(&job.untimed(), &sample)?;
        session
            .phase(PhaseSpec::cold("restore", cold_by), |context| burst.restore(context, &sample, &age))?;
        *state = burst.image;
        Ok(())
    }
}
