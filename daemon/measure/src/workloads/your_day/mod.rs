//! A person's own day: the file operations that their programs made are replayed from a recording.
//!
//! The tree is made from a seed in the shape that the recording has, in slices that take turns. After each replay the slice is
//! made as it was, so that it rests until its next turn. The order that matters is kept: see [`longhaul_recording::plan`].

mod busy;
mod copy;
mod day;
mod lookup_folder;
mod names;
mod progress;
mod replay;
mod slice;
mod thread_replay;

use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;

use super::job::Job;
use super::workload::Workload;
use crate::error::RunError;
use crate::timed_fs::PhaseSpec;
pub use day::replay_plan;
use longhaul_corpus::slices::Slice;

use day::Day;
use longhaul_model::{DataAge, Figure, Run, Unit, YOUR_DAY};
use replay::Replay;
use slice::{SliceTree, StoredSlices};

/// Name of the workload's folder in a sandbox.
const YOUR_DAY_FOLDER: &str = YOUR_DAY.name();

/// Longer than a client keeps the attributes of a folder over SMB on Linux: a second (`actimeo`, mount.cifs(8)).
const ATTRIBUTES_KEPT: Duration = Duration::from_millis(1_100);

/// The workload that replays a recording. It keeps the plan between the preparation and the run.
pub struct YourDay {
    prepared: Mutex<Option<Day>>,
}

impl YourDay {
    /// Creates the workload without a plan.
    pub const fn new() -> Self {
        Self { prepared: Mutex::new(None) }
    }

    /// Replays the recording on a slice and restores it.
    fn replay(&self, job: &Job<'_>, day: &Day) -> Result<(), RunError> {
        let (mut kept, number) = (StoredSlices::load(job)?, slice::current_slice(job, day));
        let slice = *kept.slice(number);
        let tree = SliceTree::open(job, day, number)?;
        add_facts(job, day);
        // Otherwise the client would ask again, in the middle of the replay, for folders that preparations used.
        job.untimed().pause(ATTRIBUTES_KEPT)?;
        // Recorded before the first change, so that an interrupted replay is repaired by the next preparation.
        kept.set_changed(number);
        kept.slice(number).used_us = Some(job.now);
        kept.slice(number).evicted = false;
        kept.store(job)?;
        // A program's client has looked up the folders above its own.
        job.untimed().open_folder_path(tree.root.path())?;
        let replay = Replay::new(day, &tree.root, DataAge::between(slice.written_us, job.now));
        let spec = PhaseSpec::cold("replay", slice.metadata_cold_method(job.now));
        let result = job.session.phase(spec, |context| {
            let times = replay.run(context)?;
            Ok(vec![
                Figure::new("total", Unit::Seconds, times.total),
                Figure::new("waiting", Unit::Seconds, times.waiting),
            ])
        });
        let unsupported = replay.unsupported.into_inner();
        if unsupported > 0 {
            job.session.add_fact("operations-not-offered", unsupported.to_string());
        }
        match &result {
            Ok(()) => {
                tree.restore(&job.untimed())?;
                kept.set_restored(number);
                kept.slice(number).evicted = tree.evict(&job.untimed())?;
            }
            Err(error) if error.invalidates_corpus() => *kept.slice(number) = Slice::default(),
            Err(_) => {}
        }
        kept.store(job)?;
        result
    }
}

impl Default for YourDay {
    fn default() -> Self {
        Self::new()
    }
}

impl Workload for YourDay {
    fn name(&self) -> &'static str {
        YOUR_DAY.name()
    }

    fn is_paced(&self) -> bool {
        YOUR_DAY.is_paced()
    }

    fn owns(&self, path: &Path) -> bool {
        names::owns(path)
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        let day = Day::load(job)?;
        job.require_in_place_writes()?;
        slice::prepare(job, &day)?;
        *self.prepared.lock() = Some(day);
        Ok(())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let prepared = self.prepared.lock().take();
        let day = match prepared {
            Some(day) => day,
            None => Day::load(job)?,
        };
        self.replay(job, &day)
    }
}

/// Adds what is needed to judge the figures.
fn add_facts(job: &Job<'_>, day: &Day) {
    let add = |name: &str, value: String| job.session.add_fact(name, value);
    add(Run::RECORDING_FACT, format!("{:016x}", day.id));
    if let Some(protocol) = &day.recorded_on {
        add("recorded-on", protocol.to_string());
    }
    if let Some(times) = &day.times {
        add("recorded-total", times.total.as_secs_f64().to_string());
        add("recorded-waiting", times.waiting.as_secs_f64().to_string());
    }
    let plan = &day.plan;
    add("replay", format!("{} operations, {} threads", plan.step_count(), plan.lanes.len()));
    if plan.left_out + plan.replaced > 0 {
        add("replay-differs", format!("{} left out, {} replaced", plan.left_out, plan.replaced));
    }
}
