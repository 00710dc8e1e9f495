//! No name, path, address or user of a machine is in its file.

use longhaul_demo::machine::{MachineSpec, SyntheticMachine, synthetic_machine};
use longhaul_model::draw::{draw, draw_below};
use longhaul_model::{Failure, Operation, Protocol, TargetName};

use super::machines::share_of;
use crate::read;

/// Number of threads that check them.
const THREADS: u64 = 4;
const WORDS: [&str; 10] = [
    "annas-nas",
    "/Volumes/anna",
    "192.168.77.12",
    "fe80::7a31",
    "anna@example.org",
    "smb://annas-nas/media",
    "C:\\Users\\anna",
    "SN-0042-7781",
    "nas.annas.home",
    "\u{202e}gnp.anna",
];

/// Returns a text that must not be shared, with a number that makes it unique.
fn private(file: u64, place: u64) -> String {
    format!("{}-zq{file}", WORDS[draw_below(file, 8, place, WORDS.len() as u64) as usize])
}

/// Puts private texts wherever a machine stores text.
fn with_private_names(mut machine: SyntheticMachine, file: u64) -> SyntheticMachine {
    let names: Vec<TargetName> = (0..2).map(|target| format!("zq{file}-{target}").parse().unwrap()).collect();
    let renamed =
        |name: &TargetName| if name.as_str() == "smb" { names[0].clone() } else { names[1].clone() };
    for target in &mut machine.targets {
        target.name = renamed(&target.name);
        target.path = private(file, 1).into();
    }
    for epoch in &mut machine.epochs {
        epoch.target = renamed(&epoch.target);
        epoch.path = private(file, 2).into();
        epoch.negotiated.insert(private(file, 3), private(file, 4));
    }
    machine.epochs[0].protocol = Some(Protocol::Other(private(file, 5)));
    for round in &mut machine.rounds {
        round.round.planned.iter_mut().for_each(|planned| planned.target = renamed(&planned.target));
        if let Some(end) = &mut round.end {
            end.reason = Some(private(file, 6));
        }
        if let Some(link) = round.round.before.as_mut().and_then(|before| before.link.as_mut()) {
            link.name = private(file, 7);
        }
    }
    for stored in &mut machine.runs {
        let run = &mut stored.run;
        run.target = renamed(&run.target);
        run.facts.insert(private(file, 8), private(file, 9));
        run.conditions.system = Some(format!("Linux 6.1-{}", private(file, 10)));
        run.conditions.negotiated.insert(private(file, 11), private(file, 12));
        run.phases.iter_mut().take(1).for_each(|phase| phase.name = private(file, 13));
        run.failure = Some(Failure {
            operation: Some(Operation::Open),
            path: Some(private(file, 14)),
            error: Some(private(file, 15)),
            message: private(file, 16),
        });
    }
    machine
}

/// Checks that the file with this number has no private text.
fn check_file(file: u64) {
    let spec = MachineSpec { days: 1, rounds_per_day: 1, ..MachineSpec::small(draw(3, 1, file), 0.0) };
    let text = share_of(with_private_names(synthetic_machine(&spec), file)).to_json();
    let mark = format!("zq{file}");
    assert!(!text.contains(&mark) && !text.contains("anna"), "file {file}: {text}");
    assert!(!text.contains(['/', '@', '\\']), "file {file} has a path or an address: {text}");
    assert!(read(text.as_bytes(), None).is_ok(), "file {file}");
}

fn check_files(files: u64) {
    std::thread::scope(|scope| {
        for first in 0..THREADS {
            scope.spawn(move || (first..files).step_by(THREADS as usize).for_each(check_file));
        }
    });
}

#[test]
fn no_private_text_is_in_a_thousand_files() {
    check_files(1000);
}

#[test]
#[ignore = "takes half a minute: .ci/run runs it by name"]
fn no_private_text_is_in_ten_thousand_files() {
    check_files(10_000);
}
