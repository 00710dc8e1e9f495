//! A file system that hangs for real: one in user space whose server is stopped.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::JoinHandle;

use rustix::process::Signal;
use serde_json::Value;
use support::mounts::Fuse;
use support::{Call, Place, Said, arena, assert_all_ok, assert_failure, machine, schema};

/// A place with a local target and one on a file system in user space.
struct Scene {
    // dropped first: what is mounted below the place has to go before it
    fuse: Fuse,
    place: Place,
    stuck: PathBuf,
    local: PathBuf,
}

impl Scene {
    /// `None`, said loudly, where there can be no such file system.
    fn set(test: &str) -> Option<Self> {
        Self::set_on(test, Fuse::over)
    }

    fn set_on(test: &str, mount: fn(&Path, &Path) -> Fuse) -> Option<Self> {
        if let Some(why) = machine::without_proc().or_else(Fuse::impossible) {
            machine::skip(test, why);
            return None;
        }
        let place = Place::new();
        place.configure("[folder-index]\nfiles = 4000\n");
        let (source, stuck, local) = (place.folder("source"), place.folder("mount"), place.folder("local"));
        let fuse = mount(&source, &stuck);
        Some(Self { fuse, place, stuck, local })
    }

    fn run(&self) -> Call<'_> {
        let targets = [("stuck", self.stuck.as_path()), ("local", self.local.as_path())];
        self.place.run(&["folder-index"], &targets).word("--cap").word("3")
    }

    /// Builds every slice, so that from now on a worker that is inside a tree is in the middle of a run.
    fn build(&self) {
        assert_all_ok(&self.run().word("--rounds").word("4").expect(0).runs());
    }

    /// Waits until a worker walks a tree on the mount, and stops the mount's server.
    fn freeze_in_a_walk(&self) {
        let trees = arena(&self.stuck).join("folder-index");
        machine::wait_until("a walk", || {
            let workers = machine::workers_of(self.place.root());
            workers.into_iter().any(|pid| machine::walks_below(pid, &trees))
        });
        self.fuse.freeze();
    }
}

#[test]
fn all_tasks_run_on_a_file_system_in_user_space() {
    let Some(scene) = Scene::set("all_tasks_run_on_a_file_system_in_user_space") else { return };
    let said = scene.place.run(&[], &[("fuse", &scene.stuck)]).expect(0);
    assert_all_ok(&said.runs());
    assert_eq!(said.runs().len(), 5);
    let protocols = said.runs().into_iter().map(|run| run["protocol"].as_str().unwrap().to_owned());
    assert!(protocols.into_iter().all(|protocol| protocol.starts_with("FUSE")), "{said}");
    scene.place.longhaul("clean fuse --yes").expect(0);
    assert_eq!(std::fs::read_dir(&scene.stuck).unwrap().count(), 0);
}

#[test]
fn a_database_on_a_file_system_in_user_space_is_refused() {
    let Some(scene) = Scene::set("a_database_on_a_file_system_in_user_space_is_refused") else { return };
    let database = scene.stuck.join("longhaul.sqlite");
    let call = scene.place.run(&["folder-index"], &[("local", &scene.local)]);
    let said = call.word("--database").word(&database).expect(1);
    said.complains_of(&[database.to_str().unwrap(), "FUSE", "--database PATH"]);
}

#[test]
fn a_hung_target_is_booked_while_the_others_go_on_and_is_back_when_it_returns() {
    let test = "a_hung_target_is_booked_while_the_others_go_on_and_is_back_when_it_returns";
    let Some(scene) = Scene::set(test) else { return };
    scene.build();
    let mut running = scene.run().word("--rounds").word("1000").start();
    scene.freeze_in_a_walk();
    let mut most_workers = 0;
    machine::wait_until("three runs on the target that hangs", || {
        most_workers = most_workers.max(machine::workers_of(scene.place.root()).len());
        hung(&running.so_far()).len() >= 3
    });
    scene.fuse.thaw();
    running.wait_for("the target to be back", |said| {
        let outcomes = said.outcomes_on("stuck");
        outcomes.contains(&"hung".to_owned()) && outcomes.last().is_some_and(|outcome| outcome == "ok")
    });
    running.signal(Signal::INT);
    let said = running.finish(3);
    check(&said, &scene);
    assert!(most_workers <= 2, "one worker per target, but there were {most_workers}");
}

fn hung(said: &Said) -> Vec<Value> {
    said.runs().into_iter().filter(|run| run["outcome"] == "hung").collect()
}

fn check(said: &Said, scene: &Scene) {
    schema::check_output_of_interrupted(&said.lines());
    let local = said.outcomes_on("local");
    assert!(local.len() >= 3 && local.iter().rev().skip(1).all(|outcome| outcome == "ok"), "{said}");
    let hung = hung(said);
    for run in &hung {
        assert_failure(run, "hung", &[scene.stuck.to_str().unwrap(), "Check the NAS"]);
        assert!(run["failure"]["operation"].is_string(), "the operation is named: {run}");
        assert_eq!(run["seconds"], 3.0, "censored at the cap");
    }
    check_what_is_kept(&hung[0]);
}

/// The phases before the hang are whole, and the one in which it came keeps the operations that it made.
fn check_what_is_kept(run: &Value) {
    let phases = run["phases"].as_array().unwrap();
    let (last, before) = phases.split_last().expect("phases that were measured before the hang");
    assert!(before.len() >= 2 && before.iter().all(|phase| phase["complete"] == true), "{run}");
    assert_eq!((&last["complete"], last["figures"].as_array().unwrap().len()), (&false.into(), 0), "{run}");
    assert!(!last["ops"].as_array().unwrap().is_empty(), "{run}");
}

#[test]
fn a_target_that_hangs_from_the_start_holds_nothing_up() {
    let Some(scene) = Scene::set("a_target_that_hangs_from_the_start_holds_nothing_up") else { return };
    scene.fuse.freeze();
    let said = scene.run().expect(3);
    schema::check_output(&said.lines());
    assert_failure(&said.run_on("stuck"), "hung", &[scene.stuck.to_str().unwrap(), "Check the NAS"]);
    assert_all_ok(&said.runs_on("local"));
    scene.fuse.thaw();
    machine::wait_for_no_worker(scene.place.root());
    assert_all_ok(&scene.run().expect(0).runs());
}

#[test]
fn clean_of_a_hung_share_ends_soon_after_sigterm() {
    let Some(scene) = Scene::set("clean_of_a_hung_share_ends_soon_after_sigterm") else { return };
    assert_all_ok(&scene.run().expect(0).runs());
    scene.fuse.freeze();
    let mut cleaning = scene.place.longhaul("clean stuck --yes").start();
    machine::wait_until("a worker", || !machine::workers_of(scene.place.root()).is_empty());
    cleaning.signal(Signal::TERM);
    assert_eq!(cleaning.ended().code(), Some(1), "{}", cleaning.so_far());
    scene.fuse.thaw();
    machine::wait_for_no_worker(scene.place.root());
    scene.place.longhaul("clean stuck --yes").expect(0);
}

#[test]
fn a_worker_that_cannot_be_killed_is_left_behind_and_holds_nothing_up() {
    let test = "a_worker_that_cannot_be_killed_is_left_behind_and_holds_nothing_up";
    let Some(scene) = Scene::set_on(test, Fuse::writing_for_ever) else { return };
    let mut command = scene.run().word("--rounds").word("2").command();
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pipes = [read(running.stdout.take()), read(running.stderr.take())];
    assert_eq!(running.wait().unwrap().code(), Some(3));
    machine::wait_until("the pipes to close", || pipes.iter().all(JoinHandle::is_finished));
    // It is still there, and there is no second one; that of the local disk may still be about to end.
    machine::wait_until("all workers but one to end", || machine::workers_of(scene.place.root()).len() <= 1);
    assert_eq!(machine::workers_of(scene.place.root()).len(), 1);
    let [out, err] = pipes.map(|pipe| pipe.join().unwrap());
    let said = Said { out, err };
    schema::check_output(&said.lines());
    assert_all_ok(&said.runs_on("local"));
    let path = scene.stuck.to_str().unwrap();
    let [first, second] = &said.runs_on("stuck")[..] else { panic!("{said}") };
    assert_failure(first, "hung", &["`write` on", path, "has not returned for", "the cap is 3 s"]);
    assert_failure(second, "hung", &["`write` of an earlier run on", path, "has still not returned"]);
    scene.fuse.end();
    machine::wait_for_no_worker(scene.place.root());
}

/// Reads a pipe to its end.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    std::thread::spawn(move || {
        let mut said = String::new();
        pipe.read_to_string(&mut said).unwrap();
        said
    })
}
