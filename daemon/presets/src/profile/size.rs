//! The sizes of the files in a set.

use serde::{Deserialize, Serialize};

use super::bytes::ByteSize;
use longhaul_model::draw::{draw, draw_below, draw_home_size};

/// The sizes of the files in a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a size: 16384, \"16 KiB\", \"home\", a list of sizes, { from, to } or { mean, shape }"
)]
pub enum Size {
    /// A distribution with a name, such as `"home"`.
    Named(SizeDistribution),
    /// The same size for all files.
    Fixed(ByteSize),
    /// The sizes of a list in order, starting again after the last one.
    Each(Vec<ByteSize>),
    /// A uniform distribution; both limits are included.
    Between {
        /// Minimum size.
        from: ByteSize,
        /// Maximum size.
        to: ByteSize,
    },
    /// A gamma distribution, as in filebench.
    Gamma {
        /// Mean of the distribution.
        mean: ByteSize,
        /// Shape parameter of the distribution.
        shape: f64,
    },
}

/// A size distribution with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDistribution {
    /// The file sizes of a home directory, from the table of filebench's networkfs.
    Home,
}

impl Size {
    /// Returns the size in bytes of file `number` in a set with this seed.
    pub fn file_bytes(&self, seed: u64, number: u64) -> u64 {
        match self {
            Self::Named(SizeDistribution::Home) => draw_home_size(seed, 0x686f_6d65, number),
            Self::Fixed(bytes) => bytes.0,
            Self::Each(sizes) => sizes[(number % sizes.len() as u64) as usize].0,
            Self::Between { from, to } => from.0 + draw_below(seed, 0x6265_7477, number, to.0 - from.0 + 1),
            Self::Gamma { mean, shape } => gamma(seed, number, *shape, mean.0 as f64) as u64,
        }
    }

    /// Returns smaller sizes, divided by `by`. Named distributions do not change.
    pub fn divided_by(&self, by: u64) -> Self {
        let small = |bytes: &ByteSize| ByteSize(if bytes.0 == 0 { 0 } else { (bytes.0 / by).max(1) });
        match self {
            Self::Named(named) => Self::Named(*named),
            Self::Fixed(bytes) => Self::Fixed(small(bytes)),
            Self::Each(sizes) => Self::Each(sizes.iter().map(small).collect()),
            Self::Between { from, to } => Self::Between { from: small(from), to: small(to) },
            Self::Gamma { mean, shape } => Self::Gamma { mean: small(mean), shape: *shape },
        }
    }
}

/// Returns a gamma-distributed number (Marsaglia and Tsang, ACM TOMS 26, 2000), at most 64 times the mean.
fn gamma(seed: u64, number: u64, shape: f64, mean: f64) -> f64 {
    let uniform = |stream, attempt| (draw(seed ^ attempt, stream, number) >> 11) as f64 / (1u64 << 53) as f64;
    let (d, mut ratio) = (shape - 1.0 / 3.0, 1.0);
    let c = 1.0 / (9.0 * d).sqrt();
    // Rejection sampling. The limit of 64 attempts only guarantees that the loop ends.
    for attempt in 0..64u64 {
        let (a, b, u) = (1.0 - uniform(1, attempt), uniform(2, attempt), 1.0 - uniform(3, attempt));
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        let v = (1.0 + c * normal).powi(3);
        if v > 0.0 && u.ln() < 0.5 * normal * normal + d - d * v + d * v.ln() {
            ratio = d * v / shape;
            break;
        }
    }
    (mean * ratio.min(64.0)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(size: &Size) -> f64 {
        (0..20_000).map(|number| size.file_bytes(7, number) as f64).sum::<f64>() / 20_000.0
    }

    #[test]
    fn gamma_sizes_have_the_expected_mean_and_variance() {
        let size = Size::Gamma { mean: ByteSize(131_072), shape: 1.5 };
        assert!((mean(&size) / 131_072.0 - 1.0).abs() < 0.03, "{}", mean(&size));
        let variance =
            (0..20_000).map(|n| (size.file_bytes(7, n) as f64 / 131_072.0 - 1.0).powi(2)).sum::<f64>()
                / 20_000.0;
        assert!((variance - 1.0 / 1.5).abs() < 0.05, "{variance}");
    }

    #[test]
    fn article_sizes_match_blogbench() {
        let articles = Size::Between { from: ByteSize(1024), to: ByteSize(32_767) };
        assert!((mean(&articles) - 16_900.0).abs() < 200.0, "{}", mean(&articles));
        assert!((0..9999).all(|number| (1024..=32_767).contains(&articles.file_bytes(1, number))));
    }

    #[test]
    fn listed_sizes_repeat_and_can_be_divided() {
        let sizes = Size::Each(vec![ByteSize(2_000_000), ByteSize(4)]);
        assert_eq!([0, 1, 2].map(|number| sizes.file_bytes(1, number)), [2_000_000, 4, 2_000_000]);
        assert_eq!(sizes.divided_by(1000), Size::Each(vec![ByteSize(2000), ByteSize(1)]));
    }
}
