//! The recording that is replayed: read from its file, with its plan and everything that follows from it.

use super::names::Paths;
use crate::error::RunError;
use crate::private_files;
use crate::recorder::THREAD_SLOTS;
use crate::workloads::Job;
use longhaul_corpus::ContentPool;
use longhaul_model::Protocol;
use longhaul_recording::plan::{FileNumber, LONGEST_PAUSE, Limits};
use longhaul_recording::{InitialState, MAX_FILE_BYTES, RecordedTimes, Recording, ReplayPlan, content_id};

/// Seed of the content of all files.
const CONTENT_SEED: u64 = 0x796f_7572_0064_6179;

/// A recording that can be replayed.
pub struct Day {
    /// Number that stands for the content of the recording.
    pub id: u64,
    pub plan: ReplayPlan,
    pub paths: Paths,
    pub pool: ContentPool,
    /// Protocol of the mount on which it was recorded; `None` if unknown.
    pub recorded_on: Option<Protocol>,
    /// Times on the mount where it was recorded; `None` if unknown.
    pub times: Option<RecordedTimes>,
}

impl Day {
    /// Reads the recording that the settings name, and makes its plan.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] if none is named or the file is no recording, or the error of reading it.
    pub fn load(job: &Job<'_>) -> Result<Self, RunError> {
        let Some(path) = &job.settings.recording else {
            return Err(RunError::refused(
                job.sandbox.path(),
                "no recording was chosen",
                "Choose one with `longhaul record use NAME`; `longhaul record list` lists them",
            ));
        };
        let bytes = private_files::read(path, MAX_FILE_BYTES).map_err(RunError::local("read", path))?;
        let recording = Recording::from_bytes(&bytes).map_err(|error| {
            RunError::refused(path, error.to_string(), "Choose another recording: `longhaul record use NAME`")
        })?;
        Ok(Self::new(&recording, content_id(&bytes)))
    }

    /// Makes the plan of a recording.
    pub fn new(recording: &Recording, id: u64) -> Self {
        let plan = replay_plan(recording);
        Self {
            id,
            paths: Paths::new(&plan.nodes),
            pool: ContentPool::new(CONTENT_SEED ^ id),
            recorded_on: recording.recorded_on.clone(),
            times: recording.times.clone(),
            plan,
        }
    }

    /// Returns the numbers of the nodes that are files at the beginning.
    pub fn files(&self) -> impl Iterator<Item = u32> + '_ {
        let is_file = |node: &InitialState| matches!(node, InitialState::File(_));
        (0..).zip(&self.plan.nodes).filter(move |(_, node)| is_file(&node.initial)).map(|(number, _)| number)
    }

    /// Returns whether a file is as it was when its slice was made: no replay changes it.
    pub fn is_unchanged(&self, file: FileNumber) -> bool {
        self.plan.nodes.get(file.0 as usize).is_some_and(|node| !node.changes)
    }

    /// Returns the largest number of bytes that the tree takes: at its beginning and with everything that is written.
    pub fn space(&self) -> u64 {
        const FOR_EACH_NAME: u64 = 4096;
        let names = self.plan.nodes.len() as u64 * FOR_EACH_NAME;
        self.plan.corpus_bytes().saturating_add(self.plan.written_bytes).saturating_add(names)
    }
}

/// Makes the plan of a replay with as many threads as a workload may have.
pub fn replay_plan(recording: &Recording) -> ReplayPlan {
    ReplayPlan::compile(recording, Limits { threads: THREAD_SLOTS - 1, pause: LONGEST_PAUSE })
}
