//! The session of a run: executes its phases one after the other and collects their results.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::context::TimedFs;
use super::stop_switch::StopSwitch;
use crate::error::RunError;
use crate::platform::{self, PhaseCounters, ProcessorTimes};
use crate::recorder::Recorder;
use crate::samplers::{PhaseReading, request_times, wire_traffic};
use longhaul_model::{CacheState, ColdMethod, Figure, Mismatch, Phase, Progress};

/// The name and cache state of a phase, known before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSpec<'name> {
    /// Name of the phase.
    pub name: &'name str,
    /// State of the caches at the start of the phase.
    pub cache: CacheState,
    /// Method that made the caches cold; `None` if the phase is not cold.
    pub cold_by: Option<ColdMethod>,
}

impl<'name> PhaseSpec<'name> {
    /// Returns the specification of a cold phase, with the method that made the caches cold.
    pub const fn cold(name: &'name str, by: ColdMethod) -> Self {
        Self { name, cache: CacheState::Cold, cold_by: Some(by) }
    }

    /// Returns the specification of a warm phase, which repeats what was just done.
    pub const fn warm(name: &'name str) -> Self {
        Self { name, cache: CacheState::Warm, cold_by: None }
    }

    /// Returns the specification of a phase that is neither cold nor warm.
    pub const fn uncached(name: &'name str) -> Self {
        Self { name, cache: CacheState::None, cold_by: None }
    }
}

/// Receives the progress and the phases of a run. Methods are only called between operations.
pub trait Reporter {
    /// Reports the progress of a preparation.
    fn progress(&self, progress: &Progress);
    /// Reports the start of a phase.
    fn phase_began(&self, spec: &PhaseSpec<'_>);
    /// Reports the end of a phase, with its results.
    fn phase_ended(&self, phase: Phase);
    /// Returns the counters of the target; empty if there are none.
    fn counters(&self) -> PhaseCounters {
        PhaseCounters::default()
    }
    /// Returns the processor times that belong to the target.
    fn processor_times(&self) -> ProcessorTimes {
        platform::processor_times(&[])
    }
}

/// The state that all phases of a run share.
pub struct Session<'run> {
    recorder: &'run Recorder,
    stop: &'run StopSwitch,
    reporter: &'run dyn Reporter,
    facts: RefCell<BTreeMap<String, String>>,
    failed_phase: RefCell<Option<FailedPhase>>,
    mismatches: RefCell<Vec<Mismatch>>,
}

/// The phase that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedPhase {
    /// Name of the phase.
    pub name: String,
    /// Cache state that it claimed.
    pub cache: CacheState,
}

impl<'run> Session<'run> {
    /// Creates a session without phases and facts.
    pub fn new(recorder: &'run Recorder, stop: &'run StopSwitch, reporter: &'run dyn Reporter) -> Self {
        Self {
            recorder,
            stop,
            reporter,
            facts: RefCell::default(),
            failed_phase: RefCell::default(),
            mismatches: RefCell::default(),
        }
    }

    /// Runs a phase and reports it.
    ///
    /// `body` gets a handle whose clock starts with the phase, and returns the figures. A failed phase is
    /// reported with the operations it made, but without figures.
    pub fn phase(
        &self,
        spec: PhaseSpec<'_>,
        body: impl FnOnce(&TimedFs<'_>) -> Result<Vec<Figure>, RunError>,
    ) -> Result<(), RunError> {
        self.recorder.clear();
        self.reporter.phase_began(&spec);
        // Counters are read before the clock starts and after it stops, so that reading them is not measured.
        // Processor times are read closest to the phase, so that they do not include the reading of counters.
        let counters = self.reporter.counters();
        let before = PhaseReading { counters, processor: self.reporter.processor_times() };
        let started = platform::wall_clock();
        let context = TimedFs::new(self.recorder, 0, self.stop);
        let result = body(&context);
        let seconds = context.elapsed();
        let mut processor = self.reporter.processor_times();
        let own_us = self.recorder.own_work_ns() / 1000;
        processor.used_us = processor.used_us.map(|used| used.saturating_sub(own_us));
        let after = PhaseReading { processor, counters: self.reporter.counters() };
        let recorded = self.recorder.snapshot();
        let (figures, result) = match result {
            Ok(figures) => (Some(figures), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let phase = Phase {
            name: spec.name.to_owned(),
            cache: spec.cache,
            cold_by: spec.cold_by,
            began_us: Some(started),
            seconds,
            bytes_read: recorded.bytes_read,
            bytes_written: recorded.bytes_written,
            complete: figures.is_some(),
            figures: figures.unwrap_or_default(),
            operations: recorded.operations,
            calls: self.recorder.calls(context.began_ns),
            verified: self.recorder.verified(),
            wire: before
                .counters
                .narrowest
                .as_ref()
                .zip(after.counters.narrowest.as_ref())
                .and_then(|(before, after)| wire_traffic(before, after)),
            request_times: request_times(&before, &after),
        };
        if result.is_err() {
            let failed = FailedPhase { name: spec.name.to_owned(), cache: spec.cache };
            *self.failed_phase.borrow_mut() = Some(failed);
        }
        self.reporter.phase_ended(phase);
        self.recorder.clear();
        result
    }

    /// Returns a handle for preparations.
    ///
    /// Its operations are recorded, so that hangs are detected. The records are cleared when a phase starts.
    pub fn preparation(&self) -> TimedFs<'_> {
        TimedFs::new(self.recorder, 0, self.stop)
    }

    /// Reports the progress of a preparation.
    pub fn progress(&self, progress: &Progress) {
        self.reporter.progress(progress);
    }

    /// Adds a fact that the run found. A later fact with the same name replaces it.
    pub fn add_fact(&self, name: &str, value: impl Into<String>) {
        self.facts.borrow_mut().insert(name.to_owned(), value.into());
    }

    /// Returns the phase that failed; `None` if none did.
    pub fn failed_phase(&self) -> Option<FailedPhase> {
        self.failed_phase.borrow().clone()
    }

    /// Adds a wrong range of a file that the run found.
    pub fn add_mismatch(&self, mismatch: Mismatch) {
        self.mismatches.borrow_mut().push(mismatch);
    }

    /// Returns the wrong ranges of files that the run found.
    pub fn take_mismatches(&self) -> Vec<Mismatch> {
        self.mismatches.take()
    }

    /// Returns all facts of the run.
    pub fn into_facts(self) -> BTreeMap<String, String> {
        self.facts.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{CounterScope, CounterSource, Counters, Operation, Unit};
    use std::cell::Cell;

    /// A reporter that collects phases, and whose byte counter grows by 1000 with every read.
    #[derive(Default)]
    struct TestReporter {
        phases: RefCell<Vec<Phase>>,
        counter: Cell<u64>,
    }

    impl Reporter for TestReporter {
        fn progress(&self, _: &Progress) {}
        fn phase_began(&self, _: &PhaseSpec<'_>) {}
        fn phase_ended(&self, phase: Phase) {
            self.phases.borrow_mut().push(phase);
        }
        fn counters(&self) -> PhaseCounters {
            self.counter.set(self.counter.get() + 1000);
            let counters = Counters {
                read_bytes: Some(self.counter.get()),
                ..Counters::new(CounterSource::Mountstats, CounterScope::Mount, "one".to_owned())
            };
            PhaseCounters { narrowest: Some(counters), ..PhaseCounters::default() }
        }
    }

    #[test]
    fn a_failed_phase_keeps_operations_without_figures() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let reporter = TestReporter::default();
        let session = Session::new(&recorder, &stop, &reporter);
        session
            .phase(PhaseSpec::warm("first"), |context| {
                context.timed(Operation::Read, || Ok(())).unwrap();
                Ok(vec![Figure::new("a", Unit::Count, 1.0)])
            })
            .unwrap();
        let failed = session.phase(PhaseSpec::uncached("second"), |context| {
            context.timed(Operation::Write, || Ok(())).unwrap();
            Err(RunError::damaged("x".as_ref(), "y"))
        });
        assert!(failed.is_err());
        let phases = reporter.phases.into_inner();
        assert_eq!((phases[0].complete, phases[0].figures.len()), (true, 1));
        assert_eq!((phases[1].complete, phases[1].figures.len()), (false, 0));
        assert_eq!(phases[1].operations.len(), 1, "only the operations of this phase");
        let read_bytes = phases.iter().map(|phase| phase.wire.as_ref()?.read);
        assert!(read_bytes.eq([Some(1000); 2]), "traffic between phases belongs to no phase");
        assert_eq!(phases[1].operations[0].operation, Operation::Write);
    }
}
