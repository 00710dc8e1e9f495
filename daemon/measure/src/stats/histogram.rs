//! A base-2 exponential histogram of durations, with exact count, sum, minimum and maximum beside it.

use serde::{Deserialize, Serialize};

use super::buckets::{bucket_of, middle_ns, slot_of_index};
use super::varint;

/// First byte of the stored form.
const VERSION: u8 = 1;
/// Second byte of the stored form.
const SCALE: u8 = 6;

/// Durations, in buckets of 1.09 %. Merging two equals having recorded all in one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Histogram {
    /// Index of the bucket that `counts` begins with.
    first: i32,
    counts: Vec<u64>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// Why stored bytes are not a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// Written by another version.
    #[error("histogram of version {0}, scale {1}; this longhaul reads version 1, scale 6")]
    Version(u8, u8),
    /// The bytes end early, contradict themselves, or go on after the end.
    #[error("histogram bytes are damaged")]
    Damaged,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// A histogram from counted buckets, with what was kept exactly beside them.
    pub(crate) fn from_parts(first: i32, counts: Vec<u64>, sum_ns: u64, range_ns: (u64, u64)) -> Self {
        let count = counts.iter().sum();
        let mut histogram =
            Self { first, counts, count, sum_ns, min_ns: range_ns.0, max_ns: range_ns.1.max(range_ns.0) };
        histogram.trim();
        histogram
    }

    /// Adds one duration in nanoseconds.
    pub fn record(&mut self, nanoseconds: u64) {
        let index = bucket_of(nanoseconds);
        self.reach(index);
        self.counts[(index - self.first) as usize] += 1;
        self.min_ns = if self.count == 0 { nanoseconds } else { self.min_ns.min(nanoseconds) };
        self.max_ns = self.max_ns.max(nanoseconds);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(nanoseconds);
    }

    /// Adds everything in `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.reach(other.first);
        self.reach(other.first + other.counts.len() as i32 - 1);
        let shift = (other.first - self.first) as usize;
        for (mine, theirs) in self.counts[shift..].iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// How many durations it holds.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their exact sum, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The shortest, exactly; `None` if empty.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The longest, exactly; `None` if empty.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The `q` quantile by nearest rank in nanoseconds, within 0.54 %; `None` if empty.
    ///
    /// The value is the relative middle of the bucket, kept within the exact minimum and maximum.
    pub fn quantile_ns(&self, q: f64) -> Option<f64> {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let slot = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(middle_ns(self.first + slot as i32).clamp(self.min_ns as f64, self.max_ns as f64))
    }

    /// Index of the first bucket and the counts from there on: what an OpenTelemetry ExponentialHistogram of scale 6
    /// over microseconds holds.
    pub fn buckets(&self) -> (i32, &[u64]) {
        (self.first, &self.counts)
    }

    /// The stored form: version, scale, then as varints the zig-zag index of the first bucket, the number of buckets,
    /// sum, minimum and maximum in nanoseconds, and the counts: `count << 1`, or `run << 1 | 1` for a run of zeros.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, SCALE];
        varint::put(&mut out, varint::zigzag(self.first.into()));
        for value in [self.counts.len() as u64, self.sum_ns, self.min_ns, self.max_ns] {
            varint::put(&mut out, value);
        }
        for run in self.counts.chunk_by(|a, b| *a == 0 && *b == 0) {
            varint::put(&mut out, if run[0] == 0 { (run.len() as u64) << 1 | 1 } else { run[0] << 1 });
        }
        out
    }

    /// Reads the stored form.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistogramError> {
        let (header, mut rest) = bytes.split_at_checked(2).ok_or(HistogramError::Damaged)?;
        if header != [VERSION, SCALE] {
            return Err(HistogramError::Version(header[0], header[1]));
        }
        let decoded = Self::decode_body(&mut rest).ok_or(HistogramError::Damaged)?;
        if rest.is_empty() { Ok(decoded) } else { Err(HistogramError::Damaged) }
    }

    fn decode_body(rest: &mut &[u8]) -> Option<Self> {
        let first = i32::try_from(varint::unzigzag(varint::take(rest)?)).ok()?;
        let length = usize::try_from(varint::take(rest)?).ok()?;
        if length > 0 {
            slot_of_index(first)?;
            slot_of_index(first.checked_add(i32::try_from(length).ok()? - 1)?)?;
        }
        let (sum_ns, min_ns, max_ns) = (varint::take(rest)?, varint::take(rest)?, varint::take(rest)?);
        let mut counts = Vec::with_capacity(length);
        while counts.len() < length {
            let tagged = varint::take(rest)?;
            if tagged & 1 == 0 {
                counts.push(tagged >> 1);
                continue;
            }
            let run = usize::try_from(tagged >> 1).ok()?;
            if run == 0 || run > length - counts.len() {
                return None;
            }
            counts.resize(counts.len() + run, 0);
        }
        let count = counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count))?;
        let ends_count = counts.first().is_none_or(|c| *c > 0) && counts.last().is_none_or(|c| *c > 0);
        let consistent =
            min_ns <= max_ns && ends_count && (count > 0 || (first, max_ns, sum_ns) == (0, 0, 0));
        consistent.then_some(Self { first, counts, count, sum_ns, min_ns, max_ns })
    }

    /// Makes room for a bucket.
    fn reach(&mut self, index: i32) {
        if self.counts.is_empty() {
            self.first = index;
        }
        if index < self.first {
            let missing = (self.first - index) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = index;
        }
        let length = (index - self.first) as usize + 1;
        if length > self.counts.len() {
            self.counts.resize(length, 0);
        }
    }

    /// Drops empty buckets at both ends, so that equal contents are equal values.
    fn trim(&mut self) {
        let used = |count: &u64| *count > 0;
        let Some(begin) = self.counts.iter().position(used) else {
            *self = Self::default();
            return;
        };
        let end = self.counts.iter().rposition(used).map_or(0, |last| last + 1);
        self.counts.truncate(end);
        self.counts.drain(..begin);
        self.first += begin as i32;
    }
}

impl From<Histogram> for Vec<u8> {
    fn from(histogram: Histogram) -> Self {
        histogram.encode()
    }
}

impl TryFrom<Vec<u8>> for Histogram {
    type Error = HistogramError;

    fn try_from(bytes: Vec<u8>) -> Result<Self, Self::Error> {
        Self::decode(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    fn durations() -> impl Strategy<Value = Vec<u64>> {
        let spread = (1.0..42.0f64).prop_map(|power| power.exp2() as u64);
        proptest::collection::vec(spread, 1..400)
    }

    #[test]
    fn an_empty_histogram_has_no_quantile_and_survives_storage() {
        let empty = Histogram::new();
        assert_eq!((empty.quantile_ns(0.5), empty.min_ns(), empty.max_ns()), (None, None, None));
        assert_eq!(Histogram::decode(&empty.encode()), Ok(empty));
    }

    #[test]
    fn another_version_is_named_not_misread() {
        assert_eq!(Histogram::decode(&[2, 6, 0]), Err(HistogramError::Version(2, 6)));
        assert_eq!(Histogram::decode(&[1]), Err(HistogramError::Damaged));
    }

    #[test]
    fn five_hundred_operations_stay_near_the_measured_size() {
        let mut state = 1u64;
        let values: Vec<u64> = (0..500)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
                (200_000.0 * (3.0 * uniform).exp()) as u64
            })
            .collect();
        let size = of(&values).encode().len();
        assert!((100..500).contains(&size), "{size} bytes");
    }

    proptest! {
        #[test]
        fn every_quantile_is_as_close_as_promised_to_hdrhistogram(values in durations(), q in 0.0..=1.0f64) {
            let mut oracle = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 43, 4).unwrap();
            values.iter().for_each(|value| oracle.record(*value).unwrap());
            let expected = oracle.value_at_quantile(q) as f64;
            let found = of(&values).quantile_ns(q).unwrap();
            // 0.54 % of ours, 0.01 % of the oracle's, and a nanosecond of rounding.
            prop_assert!((found - expected).abs() <= expected * 0.0056 + 1.0, "{found} against {expected}");
        }

        #[test]
        fn count_sum_and_range_are_exact(values in durations()) {
            let histogram = of(&values);
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.sum_ns(), values.iter().sum::<u64>());
            prop_assert_eq!(histogram.min_ns(), values.iter().min().copied());
            prop_assert_eq!(histogram.max_ns(), values.iter().max().copied());
        }

        #[test]
        fn merging_equals_recording_in_one(a in durations(), b in durations(), c in durations()) {
            let whole = of(&[a.clone(), b.clone(), c.clone()].concat());
            let (mut left, mut right) = (of(&a), of(&c));
            left.merge(&of(&b));
            left.merge(&of(&c));
            right.merge(&of(&b));
            right.merge(&of(&a));
            prop_assert_eq!(&left, &whole);
            prop_assert_eq!(&right, &whole);
        }

        #[test]
        fn what_was_stored_is_read_back(values in durations()) {
            let histogram = of(&values);
            prop_assert_eq!(Histogram::decode(&histogram.encode()), Ok(histogram));
        }

        #[test]
        fn any_bytes_are_read_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(histogram) = Histogram::decode(&[&[1, 6], &bytes[..]].concat()) {
                prop_assert_eq!(Histogram::decode(&histogram.encode()), Ok(histogram.clone()));
                let _ = histogram.quantile_ns(0.5);
            }
        }
    }
}
