//! The figures that the original tool of a preset prints, with the tool's own names and units.

use serde::{Deserialize, Serialize};

use longhaul_model::{Operation, Phase, Unit};

/// One figure, as the original tool prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrintedFigure {
    /// Name of the figure in the original tool's output.
    pub name: String,
    /// Unit in the original tool's output.
    pub unit: PrintUnit,
    /// Name of the phase that the figure belongs to.
    pub phase: String,
    /// Source of the value: a figure of the phase (`rate`, `read`, `write`, `seconds`, ...), or a statistic of an
    /// operation's latencies (`read.mean`, `sync.p95`, `write.max`, `read.count`).
    pub source: String,
}

/// A unit, as the original tools write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrintUnit {
    /// Megabytes (1,000,000 bytes) per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Mebibytes (1024 * 1024 bytes) per second.
    #[serde(rename = "MiB/s")]
    MebibytesPerSecond,
    /// Kibibytes (1024 bytes) per second, in the notation of bonnie++.
    #[serde(rename = "K/sec")]
    KibibytesPerSecond,
    /// Repetitions, files or other items per second.
    #[serde(rename = "/sec")]
    PerSecond,
    /// I/O calls per second.
    #[serde(rename = "IOPS")]
    Iops,
    /// Frames per second.
    #[serde(rename = "fps")]
    FramesPerSecond,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// A number without a unit.
    #[serde(rename = "")]
    Count,
}

impl PrintUnit {
    /// Returns the symbol of the unit, such as `MB/s`; empty for a count.
    pub const fn symbol(self) -> &'static str {
        self.conversion().0
    }

    /// Returns the base unit of figures that can be printed in this unit.
    pub const fn base_unit(self) -> Unit {
        self.conversion().1
    }

    /// Converts a value from the base unit to this unit.
    pub fn convert(self, value: f64) -> f64 {
        value / self.conversion().2
    }

    const fn conversion(self) -> (&'static str, Unit, f64) {
        match self {
            Self::MegabytesPerSecond => ("MB/s", Unit::BytesPerSecond, 1e6),
            Self::MebibytesPerSecond => ("MiB/s", Unit::BytesPerSecond, 1_048_576.0),
            Self::KibibytesPerSecond => ("K/sec", Unit::BytesPerSecond, 1024.0),
            Self::PerSecond => ("/sec", Unit::PerSecond, 1.0),
            Self::Iops => ("IOPS", Unit::PerSecond, 1.0),
            Self::FramesPerSecond => ("fps", Unit::PerSecond, 1.0),
            Self::Seconds => ("s", Unit::Seconds, 1.0),
            Self::Milliseconds => ("ms", Unit::Seconds, 1e-3),
            Self::Microseconds => ("us", Unit::Seconds, 1e-6),
            Self::Count => ("", Unit::Count, 1.0),
        }
    }
}

/// The source of a printed figure's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureSource<'a> {
    /// The figure of the phase with this name.
    Figure(&'a str),
    /// A statistic of the latencies of an operation.
    Latency(Operation, Statistic),
}

/// A statistic of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The shortest latency.
    Min,
    /// The mean latency.
    Mean,
    /// The longest latency.
    Max,
    /// The median latency.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The number of calls.
    Count,
    /// The number of calls per second of the phase.
    Rate,
}

const STATISTICS: [(&str, Statistic); 8] = [
    ("min", Statistic::Min),
    ("mean", Statistic::Mean),
    ("max", Statistic::Max),
    ("p50", Statistic::P50),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("count", Statistic::Count),
    ("rate", Statistic::Rate),
];

impl Statistic {
    /// Returns the unit of the statistic.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Count => Unit::Count,
            Self::Rate => Unit::PerSecond,
            Self::Min | Self::Mean | Self::Max | Self::P50 | Self::P95 | Self::P99 => Unit::Seconds,
        }
    }
}

impl PrintedFigure {
    /// Parses the source of the value; `None` if the operation or the statistic is unknown.
    pub fn source(&self) -> Option<FigureSource<'_>> {
        let Some((operation, statistic)) = self.source.split_once('.') else {
            return Some(FigureSource::Figure(&self.source));
        };
        let (_, statistic) = STATISTICS.iter().find(|(name, _)| *name == statistic)?;
        Some(FigureSource::Latency(Operation::from_name(operation)?, *statistic))
    }

    /// Returns the value of this figure in a phase, in its print unit.
    ///
    /// `None` if the phase has no such figure, or made no such call.
    pub fn value(&self, phase: &Phase) -> Option<f64> {
        let value = match self.source()? {
            FigureSource::Figure(name) => phase.figures.iter().find(|figure| figure.name == name)?.value,
            FigureSource::Latency(operation, statistic) => latency_statistic(phase, operation, statistic)?,
        };
        Some(self.unit.convert(value))
    }
}

fn latency_statistic(phase: &Phase, operation: Operation, statistic: Statistic) -> Option<f64> {
    let stats = phase.operations.iter().find(|stats| stats.operation == operation)?;
    let (latency, seconds) = (&stats.latency, |ns: f64| ns / 1e9);
    let phase_seconds =
        || phase.figures.iter().find(|figure| figure.name == "seconds").map(|figure| figure.value);
    match statistic {
        Statistic::Min => latency.min_ns().map(|ns| seconds(ns as f64)),
        Statistic::Max => latency.max_ns().map(|ns| seconds(ns as f64)),
        Statistic::Mean => Some(seconds(latency.sum_ns() as f64 / latency.count() as f64)),
        Statistic::P50 => latency.quantile_ns(0.5).map(seconds),
        Statistic::P95 => latency.quantile_ns(0.95).map(seconds),
        Statistic::P99 => latency.quantile_ns(0.99).map(seconds),
        Statistic::Count => Some(latency.count() as f64),
        Statistic::Rate => Some(latency.count() as f64 / phase_seconds().filter(|seconds| *seconds > 0.0)?),
    }
}
