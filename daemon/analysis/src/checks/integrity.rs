//! Integrity of the data: what was verified, what did not match, and the error rate that this excludes.

use std::collections::BTreeMap;

use longhaul_model::{DataAge, StoredMismatch, TargetName, Timestamp, VerifiedTotal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::stats::bisect;

/// Confidence with which a rate is excluded.
const CONFIDENCE: f64 = 0.95;

/// Verified data of one target over one protocol.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct IntegrityLine {
    /// Target from which the data was read.
    pub target: TargetName,
    /// Protocol of the target; `None` if it could not be determined.
    pub protocol: Option<String>,
    /// Number of bytes that were compared with what was written.
    pub bytes_verified: u64,
    /// Number of those bytes that are known to have come from the server or disk. Only these are evidence about it.
    pub bytes_over_the_wire: u64,
    /// Number of times that a file was compared up to its end.
    pub files_verified: u64,
    /// Verified bytes by the age of the data.
    pub by_age: Vec<VerifiedAge>,
    /// Number of wrong ranges.
    pub mismatches: u64,
    /// Number of bytes for which a rate above one wrong range is excluded (95 %); `None` if no byte crossed the wire.
    pub excluded_rate_bytes: Option<f64>,
    /// Start of the first run that counted, in microseconds since 1970 UTC; `None` if none did.
    #[schema(value_type = Option<i64>)]
    pub first_us: Option<Timestamp>,
    /// Start of the last run that counted, in microseconds since 1970 UTC; `None` if none did.
    #[schema(value_type = Option<i64>)]
    pub last_us: Option<Timestamp>,
    /// The wrong ranges, oldest first.
    pub wrong_ranges: Vec<StoredMismatch>,
}

/// Verified bytes of one age.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VerifiedAge {
    /// Age of the data.
    pub age: DataAge,
    /// Number of bytes that were compared.
    pub bytes: u64,
}

/// Target and protocol of a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct IntegrityKey {
    target: TargetName,
    protocol: Option<String>,
}

/// Returns one line for each target and protocol.
pub fn integrity_lines(totals: &[VerifiedTotal], mismatches: &[StoredMismatch]) -> Vec<IntegrityLine> {
    let mut lines: BTreeMap<IntegrityKey, IntegrityLine> = BTreeMap::new();
    for total in totals {
        let protocol = total.protocol.as_ref().map(ToString::to_string);
        line(&mut lines, IntegrityKey { target: total.target.clone(), protocol }).add(total);
    }
    for mismatch in mismatches {
        let key = IntegrityKey { target: mismatch.target.clone(), protocol: mismatch.protocol.clone() };
        line(&mut lines, key).wrong_ranges.push(mismatch.clone());
    }
    lines.into_values().map(IntegrityLine::with_excluded_rate).collect()
}

fn line(lines: &mut BTreeMap<IntegrityKey, IntegrityLine>, key: IntegrityKey) -> &mut IntegrityLine {
    lines.entry(key.clone()).or_insert_with(|| IntegrityLine {
        target: key.target,
        protocol: key.protocol,
        bytes_verified: 0,
        bytes_over_the_wire: 0,
        files_verified: 0,
        by_age: vec![],
        mismatches: 0,
        excluded_rate_bytes: None,
        first_us: None,
        last_us: None,
        wrong_ranges: vec![],
    })
}

impl IntegrityLine {
    fn add(&mut self, total: &VerifiedTotal) {
        self.bytes_verified += total.bytes;
        self.bytes_over_the_wire += total.wire_bytes;
        self.files_verified += total.files;
        match self.by_age.iter_mut().find(|known| known.age == total.age) {
            Some(known) => known.bytes += total.bytes,
            None => self.by_age.push(VerifiedAge { age: total.age, bytes: total.bytes }),
        }
        self.by_age.sort_by_key(|known| known.age);
        self.first_us = Some(self.first_us.map_or(total.first, |first| first.min(total.first)));
        self.last_us = self.last_us.max(Some(total.last));
    }

    /// Returns the line with its number of wrong ranges and the rate that it excludes.
    fn with_excluded_rate(self) -> Self {
        let mismatches = self.wrong_ranges.len() as u64;
        let excluded_rate_bytes = excluded_bytes(self.bytes_over_the_wire, mismatches);
        Self { mismatches, excluded_rate_bytes, ..self }
    }
}

/// Returns the number of bytes for which a rate above one wrong range is excluded, after this many wrong ranges among so
/// many bytes; `None` without any byte.
fn excluded_bytes(bytes: u64, wrong_ranges: u64) -> Option<f64> {
    (bytes > 0).then(|| bytes as f64 / poisson_upper_bound(wrong_ranges))
}

/// Returns the exact upper bound (one-sided, 95 %) of the expected number of events after `events` were seen: the mean at
/// which a Poisson variable is at most `events` with a probability of 5 %. For 0 events it is -ln 0.05, the rule of three.
fn poisson_upper_bound(events: u64) -> f64 {
    let (low, high) = (events as f64, events as f64 + 10.0 * (events as f64 + 4.0).sqrt());
    bisect(low, high, |mean| poisson_cdf(events, mean) > 1.0 - CONFIDENCE).1
}

/// Returns the probability that a Poisson variable with this mean is at most `events`.
fn poisson_cdf(events: u64, mean: f64) -> f64 {
    // From the largest term downwards, in logarithms, so that e^-mean does not underflow.
    let ln_factorial: f64 = (1..=events).map(|number| (number as f64).ln()).sum();
    let mut term = (events as f64 * mean.ln() - mean - ln_factorial).exp();
    let mut sum = 0.0;
    for number in (0..=events).rev() {
        sum += term;
        term *= number as f64 / mean;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Protocol;
    use longhaul_model::draw::draw;

    #[test]
    fn upper_bounds_equal_the_published_ones() {
        // Garwood's exact limits: half the 95th percentile of chi-squared with 2k + 2 degrees of freedom.
        let golden = [
            (0, 2.995_732),
            (1, 4.743_865),
            (2, 6.295_794),
            (3, 7.753_657),
            (5, 10.513_035),
            (10, 16.962_219),
        ];
        for (events, bound) in golden {
            assert!(
                (poisson_upper_bound(events) - bound).abs() < 1e-6,
                "{events}: {}",
                poisson_upper_bound(events)
            );
        }
        assert!((poisson_upper_bound(0) + 0.05_f64.ln()).abs() < 1e-12, "rule of three");
        assert!((poisson_upper_bound(1000) - 1053.6).abs() < 0.5, "{}", poisson_upper_bound(1000));
    }

    /// Returns a Poisson variable: the number of exponential gaps within `mean`.
    fn poisson(mean: f64, seed: u64) -> u64 {
        let mut left = mean;
        let mut events = 0;
        loop {
            let uniform = (draw(seed, 0x706f_6973, events) as f64 + 1.0) / (u64::MAX as f64 + 2.0);
            left += uniform.ln();
            if left < 0.0 {
                return events;
            }
            events += 1;
        }
    }

    #[test]
    fn a_true_rate_is_excluded_in_at_most_5_percent_of_worlds() {
        const WORLDS: u64 = 20_000;
        for mean in [0.5, 1.0, 2.9, 3.1, 7.0, 20.0] {
            let is_excluded = |world: &u64| poisson_upper_bound(poisson(mean, world * 1_000_003 + 17)) < mean;
            let bounds = (0..WORLDS).filter(is_excluded).count() as f64 / WORLDS as f64;
            // Four standard errors of a share of 5 % of 20,000 worlds are 0.6 %.
            assert!(bounds <= 0.056, "mean {mean}: excluded in {bounds}");
        }
    }

    fn total(protocol: Option<Protocol>, age: DataAge, bytes: u64) -> VerifiedTotal {
        VerifiedTotal {
            target: "smb".parse().unwrap(),
            protocol,
            age,
            bytes,
            files: 1,
            wire_bytes: bytes / 2,
            first: Timestamp::from_us(bytes.cast_signed()),
            last: Timestamp::from_us(bytes.cast_signed() + 5),
        }
    }

    #[test]
    fn integrity_has_one_line_for_each_target_and_protocol() {
        let smb = || Some(Protocol::Smb(Some("3.1.1".to_owned())));
        let totals = [
            total(smb(), DataAge::Weeks, 600),
            total(smb(), DataAge::Hours, 400),
            total(None, DataAge::Unknown, 7),
        ];
        let mismatch = StoredMismatch {
            times_found: 3,
            ..StoredMismatch::new(1, "nfs".parse().unwrap(), "photo-batch/16-0/IMG_0001.JPG")
        };
        let lines = integrity_lines(&totals, &[mismatch]);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            (lines[0].target.as_str(), lines[0].mismatches),
            ("nfs", 1),
            "found again is not found anew"
        );
        assert_eq!(lines[0].excluded_rate_bytes, None);
        let smb = &lines[2];
        assert_eq!((smb.bytes_verified, smb.bytes_over_the_wire, smb.files_verified), (1000, 500, 2));
        assert_eq!(smb.by_age[0], VerifiedAge { age: DataAge::Hours, bytes: 400 });
        assert_eq!(
            (smb.first_us, smb.last_us),
            (Some(Timestamp::from_us(400)), Some(Timestamp::from_us(605)))
        );
        assert!((smb.excluded_rate_bytes.unwrap() - 500.0 / 2.995_732).abs() < 1e-3);
    }
}
