//! The operations of simulated runs: thirty rows each, with histograms of eight calls.

use longhaul_export::Error;
use longhaul_export::fleet::{EachOperation, Week};
use longhaul_model::stored::StoredOperation;
use longhaul_model::{
    CacheState, ColdMethod, Histogram, Operation, OperationStats, Outcome, RunRecord, TASKS,
};

use super::expected::Expected;
use super::machine::Machine;
use super::random::Random;

const PHASES: [(&str, CacheState); 5] = [
    ("open-folder", CacheState::Cold),
    ("open-folder", CacheState::Warm),
    ("walk", CacheState::Cold),
    ("walk", CacheState::Warm),
    ("burst", CacheState::None),
];
const OPERATIONS: [Operation; 6] = [
    Operation::Readdir,
    Operation::Getattr,
    Operation::Open,
    Operation::Read,
    Operation::Write,
    Operation::Close,
];
const CALLS: u64 = 8;

/// The operations of a machine's runs in one week.
pub struct RunOperations<'a> {
    machine: &'a Machine,
    week: Week,
    /// Receives each operation, to be merged.
    expected: Option<&'a mut Expected>,
}

impl<'a> RunOperations<'a> {
    pub fn new(machine: &'a Machine, week: Week, expected: Option<&'a mut Expected>) -> Self {
        Self { machine, week, expected }
    }

    fn operation(&self, run: &RunRecord, row: usize) -> StoredOperation {
        let (phase, cache) = PHASES[row / OPERATIONS.len()];
        let operation = OPERATIONS[row % OPERATIONS.len()];
        let draw = self.machine.draws[run.number as usize - 1];
        let mut random = Random::of([self.machine.number, 64 + row as u64, draw]);
        let middle_ns = 20_000.0 * (row as f64 + 1.0) * (1.0 + run.target as f64 * 0.1);
        let mut latency = Histogram::new();
        (0..CALLS)
            .for_each(|_| latency.record((middle_ns * random.uniform().mul_add(3.0, -1.5).exp2()) as u64));
        StoredOperation {
            run: run.number,
            round: run.round,
            epoch: run.epoch,
            target: self.machine.history.targets[run.target].name.clone(),
            // On one machine of ten the protocol of a target could not be determined.
            protocol: (self.machine.number % 10 != 9 || run.target != 0)
                .then(|| self.machine.protocols[run.target].clone()),
            workload: TASKS[run.workload].name().to_owned(),
            scale: run.scale,
            outcome: run.outcome,
            started: run.started,
            phase: phase.to_owned(),
            cache,
            cold_by: (cache == CacheState::Cold).then_some(ColdMethod::Evicted),
            stats: OperationStats { operation, latency, errors: u64::from(run.outcome == Outcome::Error) },
        }
    }

    /// Calls `each` for every operation, in the order of run numbers.
    pub fn for_each(&mut self, each: EachOperation<'_>) -> Result<(), Error> {
        let rounds = self.machine.history.rounds.iter().filter(|round| self.week.contains(round.day()));
        let rounds: std::collections::BTreeSet<i64> = rounds.map(|round| round.number).collect();
        for run in self.machine.history.runs.iter().filter(|run| rounds.contains(&run.round)) {
            for row in 0..PHASES.len() * OPERATIONS.len() {
                let stored = self.operation(run, row);
                if let Some(expected) = &mut self.expected {
                    expected.add_operation(&self.machine.origin.site, &stored);
                }
                each(&stored).map_err(|source| Error::Write { to: "memory".to_owned(), source })?;
            }
        }
        Ok(())
    }
}
