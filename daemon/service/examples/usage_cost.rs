//! Measures the cost of counting usage: `cargo run --profile dist -p longhaul-service --example usage_cost`.
//!
//! Ten NFS mounts with the per-operation counts of a real kernel are parsed, and their requests are counted. The
//! counters are read and parsed for the traffic anyway, so the first number is an upper limit of the first part.

use std::time::{Duration, Instant};

use longhaul_measure::parse::mountstats;
use longhaul_model::{
    CounterReading, CounterScope, CounterSource, Counters, Mount, Protocol, RequestCounts, RequestKind,
    TargetName, Timestamp,
};
use longhaul_service::clock::ClockReading;
use longhaul_service::sampling::{Sampler, SamplingContext, Sensors};

const MOUNTS: usize = 10;
/// Number of readings of a batch.
const READINGS: u32 = 300;
const BATCHES: u32 = 20;

/// Sensors of mounts that are used all the time.
struct Busy {
    readings: u64,
    counts_kinds: bool,
}

impl Sensors for Busy {
    fn counter_readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<CounterReading>> {
        self.readings += 1;
        let kinds = RequestKind::ALL.into_iter().filter(|_| self.counts_kinds);
        let requests_by_kind =
            kinds.fold(RequestCounts::default(), |sum, kind| sum.with(kind, Some(self.readings)));
        let counters = |target: &TargetName| Counters {
            read_bytes: Some(self.readings << 20),
            requests: Some(self.readings * 6),
            requests_by_kind,
            ..Counters::new(CounterSource::Mountstats, CounterScope::Mount, target.to_string())
        };
        let reading = |(target, _): &(TargetName, Mount)| CounterReading {
            target: Some(target.clone()),
            counters: vec![Ok(counters(target))],
        };
        Some(mounts.iter().map(reading).collect())
    }
}

fn main() {
    let captured = include_bytes!("../../measure/tests/fixtures/mountstats-linux6.1.txt");
    let text = captured.repeat(MOUNTS / 2);
    println!(
        "parsing a reading of {MOUNTS} mounts: {:?}",
        fastest(|| assert_eq!(mountstats(&text).len(), MOUNTS))
    );
    for counts_kinds in [false, true] {
        let mut sampler = Sampler::new(Box::new(Busy { readings: 0, counts_kinds }));
        let mounts: Vec<(TargetName, Mount)> = (0..MOUNTS).map(mount).collect();
        let mut seconds = 0;
        let step = fastest(|| {
            seconds += 10;
            let now = ClockReading {
                wall: Timestamp::from_us(seconds * 1_000_000),
                awake_ns: seconds * 1_000_000_000,
                continuous_ns: seconds * 1_000_000_000,
                utc_offset_seconds: 0,
            };
            let context = SamplingContext { now, monotonic_ns: 0, mounts: &mounts, during: None };
            sampler.read_counters(&context, 0);
            if seconds % 300 == 0 {
                drop(sampler.take_samples(&now));
            }
        });
        println!("sampling step with requests by kind {counts_kinds}: {step:?}");
    }
}

fn mount(number: usize) -> (TargetName, Mount) {
    let name = format!("nas{number}").parse().expect("a name");
    (name, Mount::new(format!("/m/nas{number}"), "nas:/x", Protocol::Nfs(None)))
}

/// Returns the time of one call in the fastest batch, which other programs delayed least.
fn fastest(mut call: impl FnMut()) -> Duration {
    let batches = (0..BATCHES).map(|_| {
        let began = Instant::now();
        (0..READINGS).for_each(|_| call());
        began.elapsed() / READINGS
    });
    batches.min().unwrap_or_default()
}
