//! Measures the cost of naming layers and of predictions, with the results in a database:
//! `cargo run --release -p longhaul-service --example attribution_cost -- DATABASE ROUNDS`.
//!
//! Prints the shortest of several repetitions in processor time, which other programs disturb least.

use std::path::Path;
use std::time::Duration;

use longhaul_analysis::attribution::{attribute, disk_seconds};
use longhaul_analysis::prediction::{AssumedChange, timed_runs, what_if};
use longhaul_store::Reader;
use rustix::time::{ClockId, clock_gettime};

const REPETITIONS: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, rounds] = &arguments[..] else {
        return Err("give a database and a number of rounds".into());
    };
    let reader = Reader::open(Path::new(database))?;
    let rounds: u32 = rounds.parse()?;
    let read = || -> longhaul_store::Result<_> {
        let phases = reader.phase_times(rounds, None)?;
        let nas = reader.nas_use_of(&phases)?;
        Ok((phases, nas))
    };
    let (phases, nas) = read()?;
    let change = AssumedChange { round_trip: Some(Duration::from_millis(20)), ..AssumedChange::default() };
    println!("{} phases", phases.len());
    println!("read them: {:?}", shortest(read));
    println!("name layers: {:?}", shortest(|| attribute(&phases, &disk_seconds(&nas))));
    println!("fit and predict: {:?}", shortest(|| what_if(&timed_runs(&phases, &nas), change)));
    Ok(())
}

/// Returns the processor time of the quickest of several calls.
fn shortest<T>(call: impl Fn() -> T) -> Duration {
    let times = (0..REPETITIONS).map(|_| {
        let began = processor_time();
        std::hint::black_box(call());
        processor_time().saturating_sub(began)
    });
    times.min().unwrap_or_default()
}

fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.cast_unsigned(), u32::try_from(used.tv_nsec).unwrap_or_default())
}
