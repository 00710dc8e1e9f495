//! Where samples of counters and of the machine come from.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use longhaul_measure::model::{MachineStep, Mount, Reading, TargetName};
use longhaul_measure::platform;

use crate::host::Pulse;

/// How long the service waits for a look. A helper program of the system may take longer: then the look is taken later.
const PATIENCE: Duration = Duration::from_millis(100);
/// The stack of a thread that asks.
const STACK_BYTES: usize = 256 << 10;

/// Facts about the counters and the machine.
pub trait Sensors: Send {
    /// What every counter says now; `None`: that is not known yet.
    fn readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<Reading>>;

    /// The machine since the last look. Its moment is left to the caller.
    fn machine(&mut self) -> MachineStep;

    /// What the machine is like, for the journal: facts that change seldom; `None`: that is not known yet.
    fn facts(&mut self) -> Option<BTreeMap<String, String>>;
}

/// Asks something on a thread of its own, so that a slow helper program of the system delays nobody.
struct Asker<Question, Answer> {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
    /// An answer is still to come.
    is_waiting: bool,
}

impl<Question: Send + 'static, Answer: Send + 'static> Asker<Question, Answer> {
    fn new(name: &str, ask: impl Fn(Question) -> Answer + Send + 'static) -> Self {
        let (questions, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let work = move || asked.into_iter().try_for_each(|question| answer.send(ask(question)));
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        // Should the system refuse a thread, nothing is known here, and everything else goes on.
        let _ = thread.spawn(work);
        Self { questions, answers, is_waiting: false }
    }

    /// The answer; `None`: it is not there yet, and will be that of a later question.
    fn ask(&mut self, question: impl FnOnce() -> Question) -> Option<Answer> {
        if !self.is_waiting {
            self.questions.try_send(question()).ok()?;
            self.is_waiting = true;
        }
        let answer = self.answers.recv_timeout(PATIENCE).ok()?;
        self.is_waiting = false;
        Some(answer)
    }
}

/// This machine.
pub struct SystemSensors {
    counters: Asker<Vec<(TargetName, Mount)>, Vec<Reading>>,
    facts: Asker<(), BTreeMap<String, String>>,
    pulse: Pulse,
}

impl Default for SystemSensors {
    fn default() -> Self {
        Self {
            counters: Asker::new("counters", |mounts: Vec<(TargetName, Mount)>| platform::readings(&mounts)),
            facts: Asker::new("facts", |()| platform::machine_facts()),
            pulse: Pulse::default(),
        }
    }
}

impl Sensors for SystemSensors {
    fn readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<Reading>> {
        self.counters.ask(|| mounts.to_vec())
    }

    fn machine(&mut self) -> MachineStep {
        let share = self.pulse.processor_share();
        MachineStep {
            looks: 1,
            processor_share: share,
            processor_peak: share,
            memory_least: self.pulse.memory_available(),
            load_most: platform::load_average(),
            signal_least: platform::signal_dbm().map(f64::from),
            ..MachineStep::default()
        }
    }

    fn facts(&mut self) -> Option<BTreeMap<String, String>> {
        self.facts.ask(|| ())
    }
}
