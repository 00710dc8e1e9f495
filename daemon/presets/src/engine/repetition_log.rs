//! The log of a thread's repetitions: totals, rates over time and, if an analysis needs it, every single
//! repetition.

use longhaul_analysis::stats::Steadiness;
use longhaul_model::{Figure, Unit};

/// The number of bins per second in which repetitions and bytes are counted.
const BINS_PER_SECOND: f64 = 10.0;
/// The number of equal parts into which a phase is divided to judge if its rate is steady.
const STEADINESS_PARTS: usize = 20;
/// The minimum average number of repetitions per part; with fewer, steadiness is not computed.
const MIN_REPETITIONS: u64 = 10;

/// One repetition of a thread's steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repetition {
    /// Time spent in file operations, in seconds.
    pub seconds: f64,
    /// Bytes read and written by this repetition.
    pub bytes: u64,
}

/// The repetitions of one thread, or of several threads after [`RepetitionLog::merge`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RepetitionLog {
    /// Number of finished repetitions.
    pub count: u64,
    /// Total bytes read.
    pub bytes_read: u64,
    /// Total bytes written.
    pub bytes_written: u64,
    /// Seconds outside file operations, spent on generating and verifying content. Rates exclude them.
    pub overhead: f64,
    /// Seconds spent on the steps before the first repetition and on closing files at the end. Rates exclude them.
    pub setup_time: f64,
    /// Seconds spent waiting for the scheduled start of the next repetition.
    pub pacing_time: f64,
    /// Every repetition; `None` if only totals and rates are recorded.
    pub repetitions: Option<Vec<Repetition>>,
    /// Numbers of repetitions and of bytes in each bin; a bin is a tenth of a second.
    bins: Vec<(u64, u64)>,
    /// Total bytes, and total seconds in file operations, at the end of the last repetition.
    last_end: (u64, f64),
}

impl RepetitionLog {
    /// Creates a log that also records every single repetition.
    pub fn with_repetitions() -> Self {
        Self { repetitions: Some(vec![]), ..Self::default() }
    }

    /// Adds bytes that were read.
    pub fn add_read(&mut self, bytes: u64) {
        self.bytes_read += bytes;
    }

    /// Adds bytes that were written.
    pub fn add_written(&mut self, bytes: u64) {
        self.bytes_written += bytes;
    }

    /// Marks the start of the first repetition. `in_calls` is the time spent in file operations so far, in
    /// seconds.
    pub fn begin(&mut self, in_calls: f64) {
        self.last_end = (self.bytes_read + self.bytes_written, in_calls);
    }

    /// Records that a repetition ended `ended` seconds after the start of the phase.
    ///
    /// `in_calls` returns the time spent in file operations so far, in seconds; it is only called if every
    /// repetition is recorded.
    pub fn finish_repetition(&mut self, ended: f64, in_calls: impl FnOnce() -> f64) {
        let bytes = self.bytes_read + self.bytes_written - self.last_end.0;
        self.last_end.0 += bytes;
        self.count += 1;
        let tenth = (ended * BINS_PER_SECOND) as usize;
        if self.bins.len() <= tenth {
            self.bins.resize(tenth + 1, (0, 0));
        }
        self.bins[tenth].0 += 1;
        self.bins[tenth].1 += bytes;
        if let Some(each) = &mut self.repetitions {
            let in_calls = in_calls();
            each.push(Repetition { seconds: in_calls - self.last_end.1, bytes });
            self.last_end.1 = in_calls;
        }
    }

    /// Adds the log of another thread.
    pub fn merge(mut self, other: Self) -> Self {
        self.count += other.count;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.overhead += other.overhead;
        self.setup_time += other.setup_time;
        self.pacing_time += other.pacing_time;
        self.bins.resize(self.bins.len().max(other.bins.len()), (0, 0));
        for (mine, others) in self.bins.iter_mut().zip(other.bins) {
            *mine = (mine.0 + others.0, mine.1 + others.1);
        }
        self.repetitions = match (self.repetitions, other.repetitions) {
            (Some(mine), Some(others)) => Some([mine, others].concat()),
            _ => None,
        };
        self
    }

    /// Returns the figures that every phase has.
    ///
    /// Rates use the duration of the phase minus the average overhead and setup time of a thread.
    pub fn figures(&self, elapsed: f64, threads: u64) -> Vec<Figure> {
        let per_thread = |sum: f64| sum / threads.max(1) as f64;
        let overhead = per_thread(self.overhead);
        let seconds = (elapsed - overhead - per_thread(self.setup_time)).max(1e-9);
        let throughput = |name, bytes: u64| {
            (bytes > 0).then(|| Figure::new(name, Unit::BytesPerSecond, bytes as f64 / seconds))
        };
        let steadiness = self.steadiness();
        let share = |name, value: fn(&Steadiness) -> f64| {
            steadiness.as_ref().map(|steadiness| Figure::new(name, Unit::Share, value(steadiness)))
        };
        let figures = [
            throughput("write", self.bytes_written),
            throughput("read", self.bytes_read),
            Some(Figure::new("rate", Unit::PerSecond, self.count as f64 / seconds)),
            Some(Figure::new("seconds", Unit::Seconds, seconds)),
            Some(Figure::new("overhead", Unit::Seconds, overhead)),
            share("spread", |steadiness| steadiness.spread),
            share("drift", |steadiness| steadiness.drift.abs()),
        ];
        figures.into_iter().flatten().collect()
    }

    /// Returns the spread and drift of the rate over the phase; `None` if the phase is too short.
    ///
    /// The last bin is left out, because it covers less than a tenth of a second.
    fn steadiness(&self) -> Option<Steadiness> {
        let whole = &self.bins[..self.bins.len().saturating_sub(1)];
        if whole.len() < STEADINESS_PARTS || self.count < MIN_REPETITIONS * STEADINESS_PARTS as u64 {
            return None;
        }
        let sum = |some: &[(u64, u64)]| some.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let moves_bytes = sum(whole).1 > 0;
        let rates = whole.chunks_exact(whole.len() / STEADINESS_PARTS).map(|some| match moves_bytes {
            true => sum(some).1 as f64,
            false => sum(some).0 as f64,
        });
        Steadiness::of_rates(&rates.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(figures: &[Figure], name: &str) -> Option<f64> {
        figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    #[test]
    fn rates_exclude_overhead_and_setup_time() {
        let mut log = RepetitionLog::with_repetitions();
        log.begin(0.25);
        log.add_written(1000);
        log.finish_repetition(1.0, || 0.75);
        (log.overhead, log.setup_time) = (0.375, 0.125);
        assert_eq!(log.repetitions, Some(vec![Repetition { seconds: 0.5, bytes: 1000 }]));
        let figures = log.figures(1.0, 1);
        assert_eq!((figure(&figures, "write"), figure(&figures, "read")), (Some(2000.0), None));
        assert_eq!(figure(&figures, "spread"), None, "one repetition is too few for steadiness");
    }

    #[test]
    fn a_rate_that_drops_by_half_has_drift() {
        let rates = |late: u64| {
            let mut log = RepetitionLog::default();
            for tenth in 0..100u64 {
                for _ in 0..(if tenth < 75 { 20 } else { late }) {
                    log.finish_repetition(tenth as f64 / 10.0 + 0.05, || 0.0);
                }
            }
            log.figures(10.0, 1)
        };
        assert!(figure(&rates(20), "spread").unwrap() < 0.01);
        assert!(figure(&rates(10), "drift").unwrap() > 0.4, "drift is an absolute value");
    }
}
