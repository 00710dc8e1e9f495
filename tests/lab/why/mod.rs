//! Test of attribution on real servers: faults with a known place are injected, alone and in pairs, and `longhaul why` must
//! name the layer with the largest part, with shares close to what was injected. Without faults nothing may stand out.
//!
//! What a fault adds is measured: the time with it less the time without. It is not taken from the settings of the fault,
//! because a delay of 15 ms below a file system with a journal is not one of 15 ms for a program.
//!
//! `LONGHAUL_WHY_TRIALS` is the number of trials (default 6, about ten minutes on idle cores), from number
//! `LONGHAUL_WHY_FIRST` on (default 0); a trial is one or two faults drawn from its number, and each metric that they slow
//! down counts.
//!
//! `LONGHAUL_WHY_AGAIN` is the copy of a database that the test left before: its runs are judged again, without machines.

mod faults;
mod readings;
mod runs;
mod score;

use longhaul_model::draw::draw;

use crate::machines::{Findings, Lab, note};

use self::faults::{Fault, is_pair};
use self::runs::{FORGOTTEN_AFTER, NasSource, Runs, SHARES, Share};
use self::score::{Alone, Score, Slowed, Trial, judge};

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn the_layer_of_an_injected_fault_is_named() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (trials, seed) = (number("LONGHAUL_WHY_TRIALS", 6), number("LONGHAUL_WHY_SEED", 1));
    let recorded = std::env::var_os("LONGHAUL_WHY_AGAIN");
    let mut runs = recorded.map_or_else(Runs::live, |copy| Runs::recorded(copy.as_ref()));
    for share in SHARES {
        runs.measure(share, NasSource::None);
    }
    let mut score = Score::default();
    let first = number("LONGHAUL_WHY_FIRST", 0);
    for trial in first..first + trials {
        run_trial(&mut runs, drawn(trial, seed), &mut score);
    }
    let findings = score.findings();
    match runs.lab() {
        Some(lab) => findings.assert(lab),
        None => assert!(findings.wrong.is_empty(), "{:?}", findings.wrong),
    }
}

/// Faults, each with a share that waits for it and what its first screen then says.
const ON_THE_FIRST_SCREEN: [(Fault, &str, &str); 5] = [
    (Fault::Disk(40), "smb3", "the NAS stands out"),
    (Fault::Disk(40), "nfs4", "the NAS stands out"),
    (Fault::Delay(10), "smb3", "the network stands out"),
    (Fault::Delay(10), "nfs4", "the network stands out"),
    (Fault::BusyNas(27), "smb3", "the NAS stands out"),
];

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn slow_disk_long_wire_and_busy_nas_are_on_the_first_screen() {
    let runs = Runs::live();
    let lab = runs.lab().expect("machines run");
    let mut findings = Findings::default();
    for (fault, name, words) in ON_THE_FIRST_SCREEN {
        let share = SHARES.into_iter().find(|share| share.name == name).expect("it is a share");
        // Files are made without the fault; then most rounds have it.
        lab.ask("rm -f /m/local/why/screen.sqlite*");
        let quiet = first_screen(lab, share, 1);
        fault.begin(lab);
        let slowed = first_screen(lab, share, 2);
        fault.end(lab);
        note(&format!("{name}, {fault:?}:\n{quiet}{slowed}"));
        findings.check(!quiet.contains("Why:"), || format!("{name} without a fault: {quiet}"));
        findings
            .check(slowed.contains(&format!("{name}: {words}")), || format!("{name}, {fault:?}: {slowed}"));
    }
    findings.assert(lab);
}

/// Runs rounds on a share. Returns what `longhaul` prints then.
fn first_screen(lab: &Lab, share: Share, rounds: u32) -> String {
    std::thread::sleep(FORGOTTEN_AFTER);
    let longhaul = format!(
        "{} --database /m/local/why/screen.sqlite --config /m/local/why/c.toml",
        env!("CARGO_BIN_EXE_longhaul")
    );
    lab.ask(&format!(
        "printf '[folder-index]\nfiles = 900\n' >/m/local/why/c.toml; \
         {longhaul} run --rounds {rounds} --scale quick --workload folder-index \
         --workload incremental-backup --target {}={}/t >/m/local/why/output 2>&1 || {{ cat /m/local/why/output; exit 1; }}; {longhaul}",
        share.name, share.path
    ))
}

/// Returns the trial of a number.
fn drawn(number: u64, seed: u64) -> Trial {
    let source = if draw(seed, number, 2).is_multiple_of(2) { NasSource::Disk } else { NasSource::None };
    let first = Fault::drawn(number, seed);
    let second = Some(Fault::drawn(number, seed ^ 0xffff)).filter(|second| is_pair(first, *second));
    Trial { number, share: SHARES[(number % 3) as usize], source, first, second }
}

/// Runs the tasks without a fault, with the first one, with both, and with the second one.
fn run_trial(runs: &mut Runs, trial: Trial, score: &mut Score) {
    let begin = |runs: &Runs, fault: Fault| runs.lab().into_iter().for_each(|lab| fault.begin(lab));
    let end = |runs: &Runs, fault: Fault| runs.lab().into_iter().for_each(|lab| fault.end(lab));
    let quiet = runs.measure(trial.share, trial.source);
    score.add_quiet(trial, &quiet);
    begin(runs, trial.first);
    let measured = runs.measure(trial.share, trial.source);
    let first = Alone { fault: trial.first, run: &measured };
    judge(trial, Slowed { quiet: &quiet, alone: &[first], now: &measured }, score);
    let Some(fault) = trial.second else { return end(runs, trial.first) };
    begin(runs, fault);
    let both = runs.measure(trial.share, trial.source);
    end(runs, trial.first);
    let measured = runs.measure(trial.share, trial.source);
    end(runs, fault);
    let second = Alone { fault, run: &measured };
    judge(trial, Slowed { quiet: &quiet, alone: &[second], now: &measured }, score);
    judge(trial, Slowed { quiet: &quiet, alone: &[first, second], now: &both }, score);
}
