//! Percentages with their interval.

use longhaul_analysis::summary::RatioEstimate;

/// A percentage with its interval, rounded to the decimals that the width of the interval justifies.
pub(super) struct Percent {
    /// Estimate.
    pub(super) value: f64,
    /// Lower end of the interval.
    pub(super) low: f64,
    /// Upper end of the interval.
    pub(super) high: f64,
    decimals: usize,
}

impl Percent {
    fn new(value: f64, low: f64, high: f64) -> Self {
        let half = (high - low).abs() / 2.0;
        let of_width = if half >= 2.0 { 0 } else { usize::from(half < 0.2) + 1 };
        // A difference must not look like none: the end of an interval that excludes zero is not printed as zero.
        let nearest = low.abs().min(high.abs());
        let is_shown = |decimals: &usize| nearest * 10f64.powi(*decimals as i32) >= 0.5;
        let excludes_zero = (low > 0.0) == (high > 0.0) && nearest > 0.0;
        let decimals = if excludes_zero { (of_width..=2).find(is_shown).unwrap_or(2) } else { of_width };
        Self { value, low, high, decimals }
    }

    /// Converts a ratio of two targets to the percentage of time that the faster one saves.
    pub(super) fn saved(ratio: RatioEstimate) -> Self {
        let less = if ratio.value > 1.0 { ratio.inverse() } else { ratio };
        let saved = |ratio: f64| (1.0 - ratio) * 100.0;
        Self::new(saved(less.value), saved(less.high), saved(less.low))
    }

    /// Converts a ratio to the percentage of additional time.
    pub(super) fn increase(ratio: RatioEstimate) -> Self {
        let more = |ratio: f64| (ratio - 1.0) * 100.0;
        Self::new(more(ratio.value), more(ratio.low), more(ratio.high))
    }

    /// Formats a value with the decimals of this percentage.
    pub(super) fn format(&self, value: f64) -> String {
        format!("{value:.*} %", self.decimals)
    }

    /// Formats the interval, for example `19.6 to 21.9 %`.
    pub(super) fn range(&self) -> String {
        format!("{:.*} to {}", self.decimals, self.low, self.format(self.high))
    }

    /// Formats the interval of a percentage of additional time, for example `5 % less to 53 % more` or `19 to 34 % more`.
    pub(super) fn span(&self) -> String {
        match (self.low < 0.0, self.high < 0.0) {
            (false, false) => format!("{} more", self.range()),
            (true, true) => format!("{:.*} to {} less", self.decimals, -self.high, self.format(-self.low)),
            (_, _) => format!("{} to {}", self.less_or_more(-self.low), self.less_or_more(-self.high)),
        }
    }

    /// Formats a value as less or more time, for example `3 % less`.
    fn less_or_more(&self, value: f64) -> String {
        let direction = if value >= 0.0 { "less" } else { "more" };
        format!("{} {direction}", self.format(value.abs()))
    }
}

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.format(self.value))
    }
}
