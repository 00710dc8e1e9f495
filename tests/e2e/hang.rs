//! Tests with a FUSE file system whose server hangs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::JoinHandle;

use crate::fuse::hang::Fuse;
use crate::support::mounts::in_own_mounts;
use crate::support::{Call, CommandOutput, Place, assert_all_ok, assert_failure, machine, sandbox, schema};
use rustix::process::Signal;
use serde_json::Value;

/// Seconds that a run may take: several times as many as one takes on a busy machine.
const CAP: u8 = 6;

/// Test environment with a target on FUSE that can hang, and a local target.
struct HungRun {
    // Dropped first: the mount must be gone before the folder that contains it is removed.
    fuse: Fuse,
    place: Place,
    stuck: PathBuf,
    local: PathBuf,
}

impl HungRun {
    /// Creates the environment in the test's own mount namespace. `None` if the test ran in another process.
    fn new(test: impl Fn()) -> Option<Self> {
        Self::with_mount(test, Fuse::mount)
    }

    fn with_mount(test: impl Fn(), mount: fn(&Path) -> Fuse) -> Option<Self> {
        if !in_own_mounts(test) {
            return None;
        }
        let place = Place::new();
        place.configure("[folder-index]\nfiles = 2000\n");
        let (stuck, local) = (place.folder("mount"), place.folder("local"));
        let fuse = mount(&stuck);
        Some(Self { fuse, place, stuck, local })
    }

    fn run(&self) -> Call<'_> {
        let targets = [("stuck", self.stuck.as_path()), ("local", self.local.as_path())];
        self.place.run(&["folder-index"], &targets).arg("--cap").arg(CAP.to_string())
    }

    /// Creates every slice, so that a worker with an open folder of a tree is measuring, not creating files.
    fn build(&self) {
        assert_all_ok(&self.run().arg("--rounds").arg("4").expect(0).runs());
    }

    /// Waits until a worker walks a tree on the mount, then stops the mount's server.
    fn freeze_in_a_walk(&self) {
        let trees = sandbox(&self.stuck).join("folder-index");
        machine::wait_until("a walk", || {
            let workers = machine::workers_of(self.place.root());
            workers.into_iter().any(|pid| machine::is_walking(pid, &trees))
        });
        self.fuse.freeze();
    }
}

#[test]
fn all_workloads_run_on_fuse() {
    let Some(setup) = HungRun::new(all_workloads_run_on_fuse) else { return };
    let output = setup.place.run(&[], &[("fuse", &setup.stuck)]).expect(0);
    assert_all_ok(&output.runs());
    assert_eq!(output.runs().len(), 5);
    let protocols = output.runs().into_iter().map(|run| run["protocol"].as_str().unwrap().to_owned());
    assert!(protocols.into_iter().all(|protocol| protocol.starts_with("FUSE")), "{output}");
    setup.place.longhaul("targets clean fuse --yes").expect(0);
    assert_eq!(std::fs::read_dir(&setup.stuck).unwrap().count(), 0);
}

#[test]
fn database_on_fuse_is_refused() {
    let Some(setup) = HungRun::new(database_on_fuse_is_refused) else { return };
    let database = setup.stuck.join("longhaul.sqlite");
    let call = setup.place.run(&["folder-index"], &[("local", &setup.local)]);
    let output = call.arg("--database").arg(&database).expect(1);
    output.assert_stderr(&[database.to_str().unwrap(), "FUSE", "--database PATH"]);
}

#[test]
fn hung_target_is_stored_as_hung_and_recovers() {
    let Some(setup) = HungRun::new(hung_target_is_stored_as_hung_and_recovers) else { return };
    setup.build();
    let mut running = setup.run().arg("--rounds").arg("1000").start();
    setup.freeze_in_a_walk();
    let mut most_workers = 0;
    machine::wait_until("three hung runs", || {
        most_workers = most_workers.max(machine::workers_of(setup.place.root()).len());
        hung(&running.output_so_far()).len() >= 3
    });
    setup.fuse.thaw();
    running.wait_for("the target to recover", |output| {
        let outcomes = output.outcomes_on("stuck");
        outcomes.contains(&"hung".to_owned()) && outcomes.last().is_some_and(|outcome| outcome == "ok")
    });
    running.signal(Signal::INT);
    let output = running.finish(3);
    check(&output, &setup);
    assert!(most_workers <= 2, "one worker per target, but there were {most_workers}");
}

/// Returns the runs of which an operation did not return. On a busy machine others reach the cap, too.
fn hung(output: &CommandOutput) -> Vec<Value> {
    let is_hung = |run: &Value| run["outcome"] == "hung" && run["failure"]["operation"].is_string();
    output.runs().into_iter().filter(is_hung).collect()
}

fn check(output: &CommandOutput, setup: &HungRun) {
    schema::check_output_of_interrupted(&output.lines());
    let local = output.outcomes_on("local");
    assert!(local.len() >= 3 && local.iter().rev().skip(1).all(|outcome| outcome == "ok"), "{output}");
    let hung = hung(output);
    for run in &hung {
        assert_failure(run, "hung", &[setup.stuck.to_str().unwrap(), "Check the NAS"]);
        assert_eq!(run["seconds"], f64::from(CAP), "censored at the cap");
    }
    check_partial_results(&hung[0]);
    // The settings of a task are options of the run also if its worker could not report them.
    let epochs: Vec<Value> = output.runs_on("stuck").iter().map(|run| run["epoch"].clone()).collect();
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
}

/// Checks that the phases before the hang are complete, and that the interrupted phase has its operations but no
/// figures.
fn check_partial_results(run: &Value) {
    let phases = run["phases"].as_array().unwrap();
    let (last, before) = phases.split_last().expect("phases before the hang");
    assert!(before.len() >= 2 && before.iter().all(|phase| phase["complete"] == true), "{run}");
    assert_eq!((&last["complete"], last["figures"].as_array().unwrap().len()), (&false.into(), 0), "{run}");
    assert!(!last["ops"].as_array().unwrap().is_empty(), "{run}");
}

#[test]
fn target_hung_from_the_start_blocks_no_other_target() {
    let Some(setup) = HungRun::new(target_hung_from_the_start_blocks_no_other_target) else { return };
    setup.fuse.freeze();
    let output = setup.run().expect(3);
    schema::check_output(&output.lines());
    assert_failure(&output.run_on("stuck"), "hung", &[setup.stuck.to_str().unwrap(), "Check the NAS"]);
    assert_all_ok(&output.runs_on("local"));
    setup.fuse.thaw();
    machine::wait_for_no_worker(setup.place.root());
    assert_all_ok(&setup.run().expect(0).runs());
}

#[test]
fn clean_of_a_hung_share_ends_soon_after_sigterm() {
    let Some(setup) = HungRun::new(clean_of_a_hung_share_ends_soon_after_sigterm) else { return };
    assert_all_ok(&setup.run().expect(0).runs());
    setup.fuse.freeze();
    let mut cleaning = setup.place.longhaul("targets clean stuck --yes").start();
    machine::wait_until("a worker", || !machine::workers_of(setup.place.root()).is_empty());
    cleaning.signal(Signal::TERM);
    assert_eq!(cleaning.wait_for_exit().code(), Some(1), "{}", cleaning.output_so_far());
    setup.fuse.thaw();
    machine::wait_for_no_worker(setup.place.root());
    setup.place.longhaul("targets clean stuck --yes").expect(0);
}

#[test]
fn unkillable_worker_does_not_block_the_exit() {
    let Some(setup) = HungRun::with_mount(unkillable_worker_does_not_block_the_exit, Fuse::with_stuck_writes)
    else {
        return;
    };
    let mut command = setup.run().arg("--rounds").arg("2").command();
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pipes = [read(running.stdout.take()), read(running.stderr.take())];
    assert_eq!(running.wait().unwrap().code(), Some(3));
    machine::wait_until("the pipes to close", || pipes.iter().all(JoinHandle::is_finished));
    // The stuck worker remains and has no duplicate. The worker of the local disk may still be ending.
    machine::wait_until("all workers but one to end", || machine::workers_of(setup.place.root()).len() <= 1);
    assert_eq!(machine::workers_of(setup.place.root()).len(), 1);
    let [out, err] = pipes.map(|pipe| pipe.join().unwrap());
    let output = CommandOutput { out, err };
    schema::check_output(&output.lines());
    assert_all_ok(&output.runs_on("local"));
    let (path, cap) = (setup.stuck.to_str().unwrap(), format!("the cap is {CAP} s"));
    let [first, second] = &output.runs_on("stuck")[..] else { panic!("{output}") };
    assert_failure(first, "hung", &["`write` on", path, "has not returned for", &cap]);
    assert_failure(second, "hung", &["`write` of an earlier run on", path, "has still not returned"]);
    setup.fuse.end();
    machine::wait_for_no_worker(setup.place.root());
}

/// Starts a thread that reads a pipe to its end.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    std::thread::spawn(move || {
        let mut output = String::new();
        pipe.read_to_string(&mut output).unwrap();
        output
    })
}
