//! The answers of a simulated service to the callers of `longhaul doctor`.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use longhaul_service::command::Command;
use longhaul_service::config::Config;
use longhaul_service::handle::ServiceHandle;
use longhaul_service::status::Check;
use parking_lot::Mutex;

use crate::world::{HOUR, SimulatedEvent, Simulation, folder};

#[test]
fn doctor_answers_each_of_two_waiting_callers() {
    static ANSWERS: Mutex<Vec<Receiver<Vec<Check>>>> = Mutex::new(vec![]);
    // Both commands arrive before the service handles one of them, as during a round.
    let ask_twice = |handle: &ServiceHandle, _: &Path| {
        for _ in 0..2 {
            let (reply, answer) = sync_channel(1);
            handle.send(Command::Examine(reply));
            ANSWERS.lock().push(answer);
        }
    };
    let folder = folder();
    let mut simulation =
        Simulation::new(folder.path()).lasting(2 * HOUR).then(HOUR, SimulatedEvent::Call(ask_twice));
    // The scripted workers do not know the doctor.
    simulation.config = Config::default();
    simulation.run();
    let answers: Vec<_> = ANSWERS.lock().iter().map(Receiver::try_recv).collect();
    let is_answered = |answer: &Result<Vec<Check>, _>| answer.as_ref().is_ok_and(|checks| !checks.is_empty());
    assert!(answers.len() == 2 && answers.iter().all(is_answered), "{answers:?}");
}
