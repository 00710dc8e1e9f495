//! What a thread notes of its repetitions: enough for rates, steadiness, and where it is asked for each of them.

use crate::model::{Figure, Unit};
use crate::stats::Steadiness;

/// How fine rates are kept, in a second.
const PER_SECOND: f64 = 10.0;
/// How many stretches of time a phase is cut into to see whether it is steady.
const STRETCHES: usize = 20;
/// The least repetitions in a stretch, on average, that say something about it.
const LEAST: u64 = 10;

/// One repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repetition {
    /// How long its calls took.
    pub seconds: f64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// What a thread did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Log {
    /// Repetitions.
    pub count: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Seconds outside calls, in which content is made and checked: they are not the target's.
    pub own: f64,
    /// Seconds in which it did what is done before, and closed what was still open at the end: no rate is about that.
    pub aside: f64,
    /// Seconds in which it waited for its next turn.
    pub waited: f64,
    /// Each repetition, where they are kept.
    pub each: Option<Vec<Repetition>>,
    /// Repetitions and bytes in each tenth of a second.
    tenths: Vec<(u64, u64)>,
    /// Bytes, and seconds in calls, when the last repetition ended.
    before: (u64, f64),
}

impl Log {
    /// A log that keeps each repetition, and not only their rates.
    pub fn with_each() -> Self {
        Self { each: Some(vec![]), ..Self::default() }
    }

    /// Counts bytes that were read.
    pub fn add_read(&mut self, bytes: u64) {
        self.read += bytes;
    }

    /// Counts bytes that were written.
    pub fn add_written(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Repetitions begin, after so many seconds in calls.
    pub fn begin(&mut self, in_calls: f64) {
        self.before = (self.read + self.written, in_calls);
    }

    /// A repetition ended at this second of the phase; `in_calls` says how many seconds calls have taken by then.
    pub fn note(&mut self, ended: f64, in_calls: impl FnOnce() -> f64) {
        let bytes = self.read + self.written - self.before.0;
        self.before.0 += bytes;
        self.count += 1;
        let tenth = (ended * PER_SECOND) as usize;
        if self.tenths.len() <= tenth {
            self.tenths.resize(tenth + 1, (0, 0));
        }
        self.tenths[tenth].0 += 1;
        self.tenths[tenth].1 += bytes;
        if let Some(each) = &mut self.each {
            let in_calls = in_calls();
            each.push(Repetition { seconds: in_calls - self.before.1, bytes });
            self.before.1 = in_calls;
        }
    }

    /// Adds what another thread did.
    pub fn merge(mut self, other: Self) -> Self {
        self.count += other.count;
        self.read += other.read;
        self.written += other.written;
        self.own += other.own;
        self.aside += other.aside;
        self.waited += other.waited;
        self.tenths.resize(self.tenths.len().max(other.tenths.len()), (0, 0));
        for (mine, others) in self.tenths.iter_mut().zip(other.tenths) {
            *mine = (mine.0 + others.0, mine.1 + others.1);
        }
        self.each = match (self.each, other.each) {
            (Some(mine), Some(others)) => Some([mine, others].concat()),
            _ => None,
        };
        self
    }

    /// The figures that every phase has. Their time is that of the phase without what threads did for themselves between calls,
    /// before and afterwards, on average.
    pub fn figures(&self, elapsed: f64, threads: u64) -> Vec<Figure> {
        let of_a_thread = |sum: f64| sum / threads.max(1) as f64;
        let own = of_a_thread(self.own);
        let seconds = (elapsed - own - of_a_thread(self.aside)).max(1e-9);
        let moved = |name, bytes: u64| {
            (bytes > 0).then(|| Figure::new(name, Unit::BytesPerSecond, bytes as f64 / seconds))
        };
        let steadiness = self.steadiness();
        let share = |name, value: fn(&Steadiness) -> f64| {
            steadiness.as_ref().map(|steadiness| Figure::new(name, Unit::Share, value(steadiness)))
        };
        let figures = [
            moved("write", self.written),
            moved("read", self.read),
            Some(Figure::new("rate", Unit::PerSecond, self.count as f64 / seconds)),
            Some(Figure::new("seconds", Unit::Seconds, seconds)),
            Some(Figure::new("own", Unit::Seconds, own)),
            share("spread", |steadiness| steadiness.spread),
            share("drift", |steadiness| steadiness.drift.abs()),
        ];
        figures.into_iter().flatten().collect()
    }

    /// Whether rates settled; `None` for a phase that is too short to say. The last tenth is not whole, and left out.
    fn steadiness(&self) -> Option<Steadiness> {
        let whole = &self.tenths[..self.tenths.len().saturating_sub(1)];
        if whole.len() < STRETCHES || self.count < LEAST * STRETCHES as u64 {
            return None;
        }
        let sum = |some: &[(u64, u64)]| some.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let moves_bytes = sum(whole).1 > 0;
        let rates = whole.chunks_exact(whole.len() / STRETCHES).map(|some| match moves_bytes {
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
    fn what_threads_do_for_themselves_is_not_the_targets_time() {
        let mut log = Log::with_each();
        log.begin(0.25);
        log.add_written(1000);
        log.note(1.0, || 0.75);
        (log.own, log.aside) = (0.375, 0.125);
        assert_eq!(log.each, Some(vec![Repetition { seconds: 0.5, bytes: 1000 }]));
        let figures = log.figures(1.0, 1);
        assert_eq!((figure(&figures, "write"), figure(&figures, "read")), (Some(2000.0), None));
        assert_eq!(figure(&figures, "spread"), None, "one repetition says nothing of steadiness");
    }

    #[test]
    fn a_rate_that_falls_to_its_half_is_not_steady() {
        let rates = |late: u64| {
            let mut log = Log::default();
            for tenth in 0..100u64 {
                for _ in 0..(if tenth < 75 { 20 } else { late }) {
                    log.note(tenth as f64 / 10.0 + 0.05, || 0.0);
                }
            }
            log.figures(10.0, 1)
        };
        assert!(figure(&rates(20), "spread").unwrap() < 0.01);
        assert!(figure(&rates(10), "drift").unwrap() > 0.4, "how far it moves, up or down");
    }
}
