//! Rounds in the foreground, one after the other.

use std::time::Duration;

use longhaul_measure::model::Target;
use longhaul_store::{RoundStatus, Writer};

use crate::clock::SystemClock;
use crate::round::{Audience, Block, Maker, RoundError, Stop, Tasks};
use crate::worker::{Launcher, Worker};

/// How often a run is offered to a database that is locked or full before the runner gives up.
const ATTEMPTS: u32 = 5;
/// How long a slow operation may take after Ctrl-C before its worker is left behind.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// On which targets.
    pub targets: Vec<Target>,
    /// What, and how.
    pub tasks: Tasks,
    /// How many rounds.
    pub rounds: u32,
}

/// Hears of rounds in the foreground.
pub trait Foreground: Audience {
    /// A round begins: its number in the database, its place, and how many there will be.
    fn round_began(&mut self, number: i64, place: u32, rounds: u32);
    /// Whether another round may begin; asked before each.
    fn may_go_on(&mut self, place: u32) -> bool;
}

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Runs that were kept.
    pub runs: u32,
    /// Runs among them that did not end well, but for those that the person stopped.
    pub failed: u32,
    /// Whether the person stopped it.
    pub interrupted: bool,
}

/// Runs rounds.
pub struct Runner<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// The workers, one per target, in the order of the plan.
    pub workers: Vec<Worker>,
    /// Where runs are kept.
    pub writer: &'a Writer,
    /// Whether the person wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Runner<'a> {
    /// A runner with a worker for each target.
    pub fn new(
        plan: &'a Plan,
        launcher: &Launcher,
        writer: &'a Writer,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        let worker = |target: &Target| Worker::new(target.clone(), launcher.clone());
        Self { plan, workers: plan.targets.iter().map(worker).collect(), writer, interrupted }
    }

    /// Runs all rounds of the plan, or as many as the person and the audience let it. `turn` is how many rounds were
    /// begun before.
    ///
    /// # Errors
    ///
    /// If the database does not take a round or a run.
    pub fn run(
        &mut self,
        machine_seed: u64,
        turn: u64,
        stage: &mut dyn Foreground,
    ) -> Result<Tally, RoundError> {
        let mut tally = Tally::default();
        for place in 0..self.plan.rounds {
            tally.interrupted = (self.interrupted)();
            if tally.interrupted || !stage.may_go_on(place) {
                break;
            }
            let block = Block { machine_seed, turn: turn + u64::from(place), ..Block::default() };
            self.round(&block, place, stage, &mut tally)?;
        }
        Ok(tally)
    }

    fn round(
        &mut self,
        block: &Block,
        place: u32,
        stage: &mut dyn Foreground,
        tally: &mut Tally,
    ) -> Result<(), RoundError> {
        let interrupted = self.interrupted;
        let maker = Maker {
            tasks: &self.plan.tasks,
            writer: self.writer,
            clock: &SystemClock,
            stop: &|| interrupted().then(|| Stop::CutShort("stopped by the person".to_owned())),
            patience: PATIENCE,
            attempts: ATTEMPTS,
        };
        let mut workers: Vec<&mut Worker> = self.workers.iter_mut().collect();
        let number = maker.begin(block, &workers)?;
        stage.round_began(number, place, self.plan.rounds);
        let made = maker.make((number, block), &mut workers, stage, &mut || None)?;
        tally.runs += made.runs;
        tally.failed += made.failed;
        tally.interrupted = made.status == RoundStatus::CutShort || (self.interrupted)();
        Ok(())
    }
}
