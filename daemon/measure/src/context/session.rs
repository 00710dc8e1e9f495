//! A run in the making: its phases, one after the other.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Context, StopSwitch};
use crate::error::RunError;
use crate::model::{CacheState, ColdBy, Counters, Figure, Phase, Progress};
use crate::platform;
use crate::recorder::Recorder;
use crate::samplers::crossed;

/// What a phase is, before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSpec<'name> {
    /// Its name.
    pub name: &'name str,
    /// Whether it meets caches.
    pub cache: CacheState,
    /// How it was made cold.
    pub cold_by: Option<ColdBy>,
}

impl<'name> PhaseSpec<'name> {
    /// A phase that meets caches as they were left by this way of making them cold.
    pub const fn cold(name: &'name str, by: ColdBy) -> Self {
        Self { name, cache: CacheState::Cold, cold_by: Some(by) }
    }

    /// A phase that does again what was just done.
    pub const fn warm(name: &'name str) -> Self {
        Self { name, cache: CacheState::Warm, cold_by: None }
    }

    /// A phase for which neither word applies.
    pub const fn uncached(name: &'name str) -> Self {
        Self { name, cache: CacheState::None, cold_by: None }
    }
}

/// Hears of a run while it is made. Called between operations only.
pub trait Reporter {
    /// A preparation has come this far.
    fn progress(&self, progress: &Progress);
    /// A phase begins.
    fn phase_began(&self, spec: &PhaseSpec<'_>);
    /// A phase ended.
    fn phase_ended(&self, phase: Phase);
    /// What has crossed to and from the target so far; `None` where nothing counts it.
    fn counters(&self) -> Option<Counters> {
        None
    }
}

/// What all phases of a run share.
pub struct Session<'run> {
    recorder: &'run Recorder,
    stop: &'run StopSwitch,
    reporter: &'run dyn Reporter,
    facts: RefCell<BTreeMap<String, String>>,
}

impl<'run> Session<'run> {
    /// A run that has no phase yet.
    pub fn new(recorder: &'run Recorder, stop: &'run StopSwitch, reporter: &'run dyn Reporter) -> Self {
        Self { recorder, stop, reporter, facts: RefCell::default() }
    }

    /// Does a phase. It gets a door whose clock starts with it, and returns its figures; a phase that fails keeps the
    /// operations it made and has no figures.
    pub fn phase(
        &self,
        spec: PhaseSpec<'_>,
        body: impl FnOnce(&Context<'_>) -> Result<Vec<Figure>, RunError>,
    ) -> Result<(), RunError> {
        self.recorder.clear();
        self.reporter.phase_began(&spec);
        let before = self.reporter.counters();
        let began_us = platform::wall_clock_us();
        let context = Context::new(self.recorder, 0, self.stop);
        let result = body(&context);
        let seconds = context.elapsed();
        let after = self.reporter.counters();
        let recorded = self.recorder.recorded();
        let (figures, result) = match result {
            Ok(figures) => (Some(figures), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let phase = Phase {
            name: spec.name.to_owned(),
            cache: spec.cache,
            cold_by: spec.cold_by,
            began_us: Some(began_us),
            seconds,
            bytes_read: recorded.bytes_read,
            bytes_written: recorded.bytes_written,
            complete: figures.is_some(),
            figures: figures.unwrap_or_default(),
            operations: recorded.operations,
            calls: self.recorder.calls(context.began_ns),
            wire: before.zip(after).and_then(|(before, after)| crossed(&before, &after)),
        };
        self.reporter.phase_ended(phase);
        self.recorder.clear();
        result
    }

    /// A door for preparations: recorded so that a hang shows, and forgotten when a phase begins.
    pub fn preparation(&self) -> Context<'_> {
        Context::new(self.recorder, 0, self.stop)
    }

    /// Tells how far a preparation has come.
    pub fn progress(&self, progress: &Progress) {
        self.reporter.progress(progress);
    }

    /// Notes something that the run found out on its way.
    pub fn fact(&self, name: &str, value: impl Into<String>) {
        self.facts.borrow_mut().insert(name.to_owned(), value.into());
    }

    /// The facts that were found.
    pub fn into_facts(self) -> BTreeMap<String, String> {
        self.facts.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Covers, Operation, Source, Unit};
    use std::cell::Cell;

    /// Keeps the phases it hears of.
    #[derive(Default)]
    struct Ear(RefCell<Vec<Phase>>, Cell<u64>);

    impl Reporter for Ear {
        fn progress(&self, _: &Progress) {}
        fn phase_began(&self, _: &PhaseSpec<'_>) {}
        fn phase_ended(&self, phase: Phase) {
            self.0.borrow_mut().push(phase);
        }
        fn counters(&self) -> Option<Counters> {
            self.1.set(self.1.get() + 1000);
            let life = "one".to_owned();
            Some(Counters {
                read_bytes: Some(self.1.get()),
                ..Counters::of(Source::Mountstats, Covers::Mount, life)
            })
        }
    }

    #[test]
    fn a_phase_cut_short_keeps_its_operations_and_has_no_figures() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let ear = Ear::default();
        let session = Session::new(&recorder, &stop, &ear);
        session
            .phase(PhaseSpec::warm("first"), |context| {
                context.timed(Operation::Read, || Ok(())).unwrap();
                Ok(vec![Figure::new("a", Unit::Count, 1.0)])
            })
            .unwrap();
        let cut = session.phase(PhaseSpec::uncached("second"), |context| {
            context.timed(Operation::Write, || Ok(())).unwrap();
            Err(RunError::damaged("x".as_ref(), "y"))
        });
        assert!(cut.is_err());
        let phases = ear.0.into_inner();
        assert_eq!((phases[0].complete, phases[0].figures.len()), (true, 1));
        assert_eq!((phases[1].complete, phases[1].figures.len()), (false, 0));
        assert_eq!(phases[1].operations.len(), 1, "only its own operations");
        let crossed = phases.iter().map(|phase| phase.wire.as_ref()?.read);
        assert!(crossed.eq([Some(1000); 2]), "what crossed between phases belongs to none");
        assert_eq!(phases[1].operations[0].operation, Operation::Write);
    }
}
