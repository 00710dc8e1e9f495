//! Prepares and executes runs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::failure_report::{from_panic, from_run, from_sleep};
use super::message::{Assignment, FailureReport, RunReport};
use super::state::Worker;
use super::target_mount::TargetMount;
use crate::error::RunError;
use crate::local_folder;
use crate::platform::{self, IoPolicy, SYSTEM, Space};
use crate::sandbox::Sandbox;
use crate::timed_fs::{Session, timed_fs_overhead_ns};
use crate::workloads::{Job, Workload};
use longhaul_model::{Conditions, SLEPT_NS};

impl Worker {
    /// Calls `work` with the workload and the job of an assignment. A panic in `work` is returned as a failure
    /// report, so that the worker continues.
    fn with_job(
        &self,
        assignment: &Assignment,
        session: &Session<'_>,
        work: impl FnOnce(&dyn Workload, &Job<'_>) -> Result<(), RunError>,
    ) -> Result<(), FailureReport> {
        let attempt = || {
            let selected = self.catalog.select(&assignment.workload, &assignment.settings);
            let Some(workload) = selected else {
                let reason = format!("there is no task `{}`", assignment.workload);
                return Err(RunError::refused(
                    &self.setup.target.path,
                    reason,
                    "`longhaul run --help` lists them",
                ));
            };
            let sandbox = self.sandbox_for(workload)?;
            let job = self.job(assignment, session, &sandbox);
            local_folder::create(job.local_folder).map_err(RunError::local("mkdir", job.local_folder))?;
            work(workload, &job)
        };
        match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(result) => result.map_err(|error| from_run(&error, &self.setup.target.path)),
            Err(panic) => Err(from_panic(panic.as_ref())),
        }
    }

    fn sandbox_for(&self, workload: &dyn Workload) -> Result<Sandbox, RunError> {
        let location = self.sandbox_location();
        if !workload.only_reads() {
            return self.mounted_sandbox();
        }
        let nothing = || {
            let path = location.target_path;
            RunError::refused(path, "longhaul keeps no files there", "`longhaul run` creates them")
        };
        Sandbox::open_existing(&location, &self.timed_fs())?.ok_or_else(nothing)
    }

    fn job<'a>(
        &'a self,
        assignment: &'a Assignment,
        session: &'a Session<'a>,
        sandbox: &'a Sandbox,
    ) -> Job<'a> {
        Job {
            session,
            sandbox,
            local_folder: &self.setup.local,
            scale: assignment.scale,
            settings: &assignment.settings,
            rotation: assignment.rotation,
            seed: assignment.seed,
            now: platform::wall_clock(),
            keeps_listings: self.mount.borrow().as_ref().is_some_and(TargetMount::keeps_listings),
        }
    }

    /// Prepares a run. Returns the report on a failed preparation; `None` if it succeeded.
    pub fn prepare(&self, assignment: &Assignment) -> Option<RunReport> {
        self.stop.set_rate_limit(assignment.settings.operations_per_second);
        let session = Session::new(&self.recorder, &self.stop, self);
        let mut space = None;
        let prepared = self.with_job(assignment, &session, |workload, job| {
            space = job.sandbox.space(&job.untimed()).ok();
            workload.prepare(job)
        });
        let Err(failed) = prepared else {
            self.preparation_facts.borrow_mut().insert(assignment.workload.clone(), session.into_facts());
            return None;
        };
        let failed = Some(failed);
        let mut conditions = self.conditions();
        set_space(&mut conditions, space);
        Some(RunReport { failure: failed, facts: session.into_facts(), conditions, mismatches: vec![] })
    }

    /// Executes a run.
    pub fn run(&self, assignment: &Assignment) -> RunReport {
        self.stop.set_rate_limit(assignment.settings.operations_per_second);
        let session = Session::new(&self.recorder, &self.stop, self);
        let mut conditions = self.conditions();
        // The monotonic clock stops during sleep, so a run that spans sleep would look faster than it was.
        let asleep = platform::asleep_ns();
        let mut result = self.with_job(assignment, &session, |workload, job| {
            // Before the policy, which may slow these requests.
            let network = self.network(job);
            (conditions.round_trip_us, conditions.send_rate) = (network.round_trip_us, network.send_rate);
            // Before the policy: a request that begins now would be slowed.
            self.probe_switch.set_io_policy(SYSTEM, workload.io_policy());
            let policy = set_policy(workload.io_policy(), job);
            conditions.io_policy = policy.map(|policy| policy.name().to_owned());
            set_space(&mut conditions, job.sandbox.space(&job.untimed()).ok());
            let result = workload.run(job);
            if let Err(error) = &result {
                self.examine_damage(workload, job, error);
            }
            let _ = platform::set_io_policy(IoPolicy::Default);
            result
        });
        let slept = platform::asleep_ns().saturating_sub(asleep);
        conditions.slept_seconds = Some(slept as f64 / 1e9);
        conditions.worker_peak_bytes = platform::peak_memory_bytes();
        if slept > SLEPT_NS {
            result = Err(from_sleep(slept));
        }
        let mut facts = self.preparation_facts.borrow_mut().remove(&assignment.workload).unwrap_or_default();
        let mismatches = session.take_mismatches();
        facts.extend(session.into_facts());
        RunReport { failure: result.err(), facts, conditions, mismatches }
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            system: Some(platform::system_version()),
            load_average: platform::load_average(),
            power: platform::power(),
            timing_overhead_ns: timed_fs_overhead_ns().ok(),
            negotiated: self.negotiated(),
            ..Conditions::default()
        }
    }

    /// Reports slow calls and sets the latency probe back to idle.
    pub fn finish_workload(&self, assignment: &Assignment) {
        self.reporter.report_slow_calls(Some(&assignment.workload));
        self.probe_switch.set_idle();
    }
}

/// Sets the I/O policy that a workload requests. Returns the policy in effect; `None` if the system does not
/// report it.
fn set_policy(wanted: IoPolicy, job: &Job<'_>) -> Option<IoPolicy> {
    if let Err(error) = platform::set_io_policy(wanted) {
        job.session.add_fact("io-policy", format!("could not be set: {error}"));
    }
    platform::io_policy().ok()
}

/// Stores free and total space of the target in the conditions; both are `None` if the space is unknown.
fn set_space(conditions: &mut Conditions, space: Option<Space>) {
    conditions.free_bytes = space.map(|space| space.free_bytes);
    conditions.total_bytes = space.map(|space| space.total_bytes);
}
