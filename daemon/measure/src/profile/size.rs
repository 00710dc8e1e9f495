//! How large the files of a set are.

use serde::{Deserialize, Serialize};

use super::Bytes;
use crate::corpus::draw::{draw, draw_below, draw_home_size};

/// How large the files of a set are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a size: 16384, \"16 KiB\", \"home\", a list of sizes, { from, to } or { mean, shape }"
)]
pub enum Size {
    /// As those of a home directory: the table of filebench's networkfs.
    Named(Named),
    /// All the same.
    Fixed(Bytes),
    /// One after the other, and from the first again.
    Each(Vec<Bytes>),
    /// Even between the two, both included.
    Between {
        /// The least.
        from: Bytes,
        /// The most.
        to: Bytes,
    },
    /// A gamma distribution, as in filebench.
    Gamma {
        /// Its mean.
        mean: Bytes,
        /// Its shape.
        shape: f64,
    },
}

/// A distribution that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// The files of a home directory.
    Home,
}

impl Size {
    /// The bytes of a file of the set that is made from `seed`.
    pub fn of(&self, seed: u64, number: u64) -> u64 {
        match self {
            Self::Named(Named::Home) => draw_home_size(seed, 0x686f_6d65, number),
            Self::Fixed(bytes) => bytes.0,
            Self::Each(sizes) => sizes[(number % sizes.len() as u64) as usize].0,
            Self::Between { from, to } => from.0 + draw_below(seed, 0x6265_7477, number, to.0 - from.0 + 1),
            Self::Gamma { mean, shape } => gamma(seed, number, *shape, mean.0 as f64) as u64,
        }
    }

    /// The same with bytes divided; tables that have a name stay what they are.
    pub fn divided(&self, by: u64) -> Self {
        let small = |bytes: &Bytes| Bytes(if bytes.0 == 0 { 0 } else { (bytes.0 / by).max(1) });
        match self {
            Self::Named(named) => Self::Named(*named),
            Self::Fixed(bytes) => Self::Fixed(small(bytes)),
            Self::Each(sizes) => Self::Each(sizes.iter().map(small).collect()),
            Self::Between { from, to } => Self::Between { from: small(from), to: small(to) },
            Self::Gamma { mean, shape } => Self::Gamma { mean: small(mean), shape: *shape },
        }
    }
}

/// A gamma-distributed number (Marsaglia and Tsang, ACM TOMS 26, 2000), at most 64 times the mean.
fn gamma(seed: u64, number: u64, shape: f64, mean: f64) -> f64 {
    let even = |stream, turn| (draw(seed ^ turn, stream, number) >> 11) as f64 / (1u64 << 53) as f64;
    let (d, mut found) = (shape - 1.0 / 3.0, 1.0);
    let c = 1.0 / (9.0 * d).sqrt();
    for turn in 0..64u64 {
        let (a, b, u) = (1.0 - even(1, turn), even(2, turn), 1.0 - even(3, turn));
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        let v = (1.0 + c * normal).powi(3);
        if v > 0.0 && u.ln() < 0.5 * normal * normal + d - d * v + d * v.ln() {
            found = d * v / shape;
            break;
        }
    }
    (mean * found.min(64.0)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(size: &Size) -> f64 {
        (0..20_000).map(|number| size.of(7, number) as f64).sum::<f64>() / 20_000.0
    }

    #[test]
    fn gamma_sizes_have_their_mean_and_spread() {
        let size = Size::Gamma { mean: Bytes(131_072), shape: 1.5 };
        assert!((mean(&size) / 131_072.0 - 1.0).abs() < 0.03, "{}", mean(&size));
        let variance =
            (0..20_000).map(|n| (size.of(7, n) as f64 / 131_072.0 - 1.0).powi(2)).sum::<f64>() / 20_000.0;
        assert!((variance - 1.0 / 1.5).abs() < 0.05, "{variance}");
    }

    #[test]
    fn blogs_articles_are_as_long_as_the_source_says() {
        let articles = Size::Between { from: Bytes(1024), to: Bytes(32_767) };
        assert!((mean(&articles) - 16_900.0).abs() < 200.0, "{}", mean(&articles));
        assert!((0..9999).all(|number| (1024..=32_767).contains(&articles.of(1, number))));
    }

    #[test]
    fn listed_sizes_take_turns_and_are_divided() {
        let sizes = Size::Each(vec![Bytes(2_000_000), Bytes(4)]);
        assert_eq!([0, 1, 2].map(|number| sizes.of(1, number)), [2_000_000, 4, 2_000_000]);
        assert_eq!(sizes.divided(1000), Size::Each(vec![Bytes(2000), Bytes(1)]));
    }
}
