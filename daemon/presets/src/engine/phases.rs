//! Prepares and runs a preset: its file sets, then its phases one after the other.

use std::sync::atomic::AtomicBool;

use longhaul_measure::error::RunError;
use longhaul_measure::timed_fs::{PhaseSpec, TimedFs};
use longhaul_model::draw::draw;
use longhaul_model::{CacheState, ColdMethod, Figure};
use parking_lot::Mutex;

use super::file_sets::TestFileSets;
use super::preset_run::PresetRun;
use super::repetition_log::RepetitionLog;
use super::set_manifest::{SetManifest, SetState};
use super::thread::PresetThread;
use super::thread_work::{PhaseShared, ThreadWork};
use super::{analysis, blogbench, file_sets};
use crate::profile::{Phase, Profile, Program, ThreadGroup};

impl PresetRun<'_> {
    /// Creates the file sets that the run needs, continuing after an interrupted preparation. Not timed.
    pub fn prepare(&self) -> Result<(), RunError> {
        let Self { job, profile, folder, .. } = self;
        if profile.phases.iter().flat_map(|phase| &phase.work).any(ThreadGroup::needs_write_access) {
            job.require_in_place_writes()?;
        }
        let mut manifest = SetManifest::load(job)?;
        let mut state = manifest.get(folder);
        if state.unfinished {
            state.complete.clear();
        }
        state.keep_usable(profile);
        // Content depends on the turn, so that a read can check which write it sees. The preparation uses one
        // turn, and each phase of the run uses the next one.
        state.turn += 1;
        manifest.store(job, folder, &state)?;
        let sets = TestFileSets::open(self, state.turn)?;
        let missing: Vec<&String> =
            profile.files.keys().filter(|name| !state.complete.contains_key(*name)).collect();
        for name in &missing {
            file_sets::remove(job, sets.get(name))?;
        }
        blogbench::remove(self)?;
        job.require_space(needed_bytes(profile, &state))?;
        for name in missing {
            file_sets::build(job, sets.get(name), state.turn)?;
            if !profile.changes_files(name) {
                state.complete.insert(name.clone(), profile.files[name].clone());
            }
        }
        state.unfinished = false;
        manifest.store(job, folder, &state)
    }

    /// Runs all phases, then removes the files that must be made again for each run.
    pub fn run(&self) -> Result<(), RunError> {
        let Self { job, profile, folder, .. } = self;
        let mut manifest = SetManifest::load(job)?;
        let mut state = manifest.get(folder);
        let prepared_turn = state.turn;
        // Counted by the run that writes, because the next one may be of an edited profile with fewer phases.
        state.turn += profile.phases.len() as u64;
        state.unfinished = true;
        manifest.store(job, folder, &state)?;
        let sets = TestFileSets::open(self, prepared_turn)?;
        let result = self.run_phases(&sets, prepared_turn);
        for (_, set) in sets.sets.iter().filter(|(name, _)| profile.changes_files(name)) {
            file_sets::remove(job, set)?;
        }
        blogbench::remove(self)?;
        result?;
        state.unfinished = false;
        manifest.store(job, folder, &state)
    }

    fn run_phases(&self, sets: &TestFileSets, turn: u64) -> Result<(), RunError> {
        for (number, phase) in self.profile.phases.iter().enumerate() {
            let cold_by = match phase.cache {
                CacheState::Cold => Some(self.make_cold(phase, sets)?),
                CacheState::Warm | CacheState::None => None,
            };
            let spec = PhaseSpec { name: &phase.name, cache: phase.cache, cold_by };
            let seed = draw(self.job.seed, 0x7068_6173, number as u64);
            let shared = PhaseShared {
                turn: turn + 1 + number as u64,
                seed,
                has_failed: AtomicBool::new(false),
                records_repetitions: phase.analysis.is_some(),
            };
            self.job.session.phase(spec, |context| match phase.program {
                Some(Program::Blogbench) => {
                    blogbench::run(self, context, seed, phase.seconds.unwrap_or_default())
                }
                None => run_threads(context, phase, sets, &shared),
            })?;
        }
        Ok(())
    }

    /// Evicts the files of a phase from this machine's cache.
    ///
    /// Returns [`ColdMethod::Unverified`] if it could not be confirmed for all of them.
    fn make_cold(&self, phase: &Phase, sets: &TestFileSets) -> Result<ColdMethod, RunError> {
        let mut names: Vec<&str> = phase.work.iter().map(|work| work.files.as_str()).collect();
        names.dedup();
        let mut cold_by = ColdMethod::Evicted;
        for name in names {
            if file_sets::evict(self.job, sets.get(name))? != ColdMethod::Evicted {
                cold_by = ColdMethod::Unverified;
            }
        }
        Ok(cold_by)
    }
}

/// Returns the number of bytes that must be free: the space for all sets that are not complete yet.
fn needed_bytes(profile: &Profile, state: &SetState) -> u64 {
    let complete_bytes: u64 = profile
        .files
        .iter()
        .filter(|(name, _)| state.complete.contains_key(*name))
        .map(|(_, set)| set.total_bytes(0))
        .fold(0, u64::saturating_add);
    profile.cost().space_bytes.saturating_sub(complete_bytes)
}

/// Runs all threads of a phase at the same time and returns the figures of the phase.
fn run_threads(
    context: &TimedFs<'_>,
    phase: &Phase,
    sets: &TestFileSets,
    shared: &PhaseShared,
) -> Result<Vec<Figure>, RunError> {
    let threads: Vec<ThreadWork<'_>> = phase
        .work
        .iter()
        .flat_map(|group| {
            let set = sets.get(&group.files);
            (0..group.threads).map(move |index| ThreadWork { group, set, index })
        })
        .collect();
    let logs = Mutex::new(vec![]);
    let run_thread = |context: &TimedFs<'_>, work: &ThreadWork<'_>| {
        let log = PresetThread::new(shared, context, *work).run()?;
        logs.lock().push(log);
        Ok(())
    };
    // A single thread uses the handle of the phase, so that no thread is started within the measured time.
    match &threads[..] {
        [one] => run_thread(context, one)?,
        many => context.run_parallel(many.len(), many, run_thread)?,
    }
    let elapsed = context.elapsed();
    let logs = logs.into_inner();
    let Some(log) = logs.into_iter().reduce(RepetitionLog::merge) else { return Ok(vec![]) };
    let mut figures = log.figures(elapsed, threads.len() as u64);
    if let (Some(analysis), Some(each)) = (phase.analysis, &log.repetitions) {
        figures.extend(analysis::figures(analysis, each));
    }
    Ok(figures)
}
