//! Runs a function for many seeds on all processors.

use std::thread::{available_parallelism, scope};

/// Returns the value of `one` for each seed below `replicates`, in the order of the seeds.
pub fn replicate<T: Send>(replicates: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = available_parallelism().map_or(1, |threads| threads.get() as u64);
    let share = replicates.div_ceil(threads);
    let part = |thread: u64| thread * share..((thread + 1) * share).min(replicates);
    scope(|scope| {
        let one = &one;
        let started: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || part(thread).map(one).collect::<Vec<T>>()))
            .collect();
        started.into_iter().flat_map(|thread| thread.join().expect("a replicate does not panic")).collect()
    })
}

/// Returns the share of seeds below `replicates` for which `happened` returns true.
pub fn share(replicates: u64, happened: impl Fn(u64) -> bool + Sync) -> f64 {
    let happened = replicate(replicates, happened).into_iter().filter(|happened| *happened);
    happened.count() as f64 / replicates as f64
}
