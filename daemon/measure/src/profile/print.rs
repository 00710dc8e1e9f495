//! The figures that an original prints, under its names and in its units.

use serde::{Deserialize, Serialize};

use crate::model::{Operation, Phase, Unit};

/// One figure as the original prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Print {
    /// Its name there.
    pub name: String,
    /// Its unit there.
    pub unit: PrintUnit,
    /// Of which phase it is.
    pub phase: String,
    /// What it is: a figure of the phase (`rate`, `read`, `write`, `seconds`, ...), or something of an operation's
    /// latencies (`read.mean`, `sync.p95`, `write.max`, `read.count`).
    pub of: String,
}

/// A unit as originals write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrintUnit {
    /// A million bytes a second.
    #[serde(rename = "MB/s")]
    Megabytes,
    /// 1024 * 1024 bytes a second.
    #[serde(rename = "MiB/s")]
    Mebibytes,
    /// 1024 bytes a second, as bonnie writes it.
    #[serde(rename = "K/sec")]
    Kibibytes,
    /// Things a second.
    #[serde(rename = "/sec")]
    PerSecond,
    /// Calls a second.
    #[serde(rename = "IOPS")]
    Iops,
    /// Frames a second.
    #[serde(rename = "fps")]
    Frames,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Thousandths of a second.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Millionths of a second.
    #[serde(rename = "us")]
    Microseconds,
    /// A count.
    #[serde(rename = "")]
    Count,
}

impl PrintUnit {
    /// How it is written.
    pub const fn symbol(self) -> &'static str {
        self.facts().0
    }

    /// The kind of figure that may be printed in it.
    pub const fn unit(self) -> Unit {
        self.facts().1
    }

    /// A figure, which is in base units, in this unit.
    pub fn of(self, value: f64) -> f64 {
        value / self.facts().2
    }

    const fn facts(self) -> (&'static str, Unit, f64) {
        match self {
            Self::Megabytes => ("MB/s", Unit::BytesPerSecond, 1e6),
            Self::Mebibytes => ("MiB/s", Unit::BytesPerSecond, 1_048_576.0),
            Self::Kibibytes => ("K/sec", Unit::BytesPerSecond, 1024.0),
            Self::PerSecond => ("/sec", Unit::PerSecond, 1.0),
            Self::Iops => ("IOPS", Unit::PerSecond, 1.0),
            Self::Frames => ("fps", Unit::PerSecond, 1.0),
            Self::Seconds => ("s", Unit::Seconds, 1.0),
            Self::Milliseconds => ("ms", Unit::Seconds, 1e-3),
            Self::Microseconds => ("us", Unit::Seconds, 1e-6),
            Self::Count => ("", Unit::Count, 1.0),
        }
    }
}

/// What a figure is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken<'a> {
    /// A figure of the phase.
    Figure(&'a str),
    /// The latencies of an operation.
    Latency(Operation, Statistic),
}

/// What of the latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The shortest.
    Min,
    /// The mean.
    Mean,
    /// The longest.
    Max,
    /// The median.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// How many there were.
    Count,
    /// How many there were in a second of the phase.
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
    /// The kind of number that it is.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Count => Unit::Count,
            Self::Rate => Unit::PerSecond,
            Self::Min | Self::Mean | Self::Max | Self::P50 | Self::P95 | Self::P99 => Unit::Seconds,
        }
    }
}

impl Print {
    /// What it is taken from; `None` if that is not known.
    pub fn taken(&self) -> Option<Taken<'_>> {
        let Some((operation, statistic)) = self.of.split_once('.') else {
            return Some(Taken::Figure(&self.of));
        };
        let (_, statistic) = STATISTICS.iter().find(|(name, _)| *name == statistic)?;
        Some(Taken::Latency(Operation::from_name(operation)?, *statistic))
    }

    /// Its value in a phase, in its own unit; `None` where the phase does not know it.
    pub fn value(&self, phase: &Phase) -> Option<f64> {
        let value = match self.taken()? {
            Taken::Figure(name) => phase.figures.iter().find(|figure| figure.name == name)?.value,
            Taken::Latency(operation, statistic) => latency(phase, operation, statistic)?,
        };
        Some(self.unit.of(value))
    }
}

fn latency(phase: &Phase, operation: Operation, statistic: Statistic) -> Option<f64> {
    let stats = phase.operations.iter().find(|stats| stats.operation == operation)?;
    let (latency, seconds) = (&stats.latency, |ns: f64| ns / 1e9);
    let net = || phase.figures.iter().find(|figure| figure.name == "seconds").map(|figure| figure.value);
    match statistic {
        Statistic::Min => latency.min_ns().map(|ns| seconds(ns as f64)),
        Statistic::Max => latency.max_ns().map(|ns| seconds(ns as f64)),
        Statistic::Mean => Some(seconds(latency.sum_ns() as f64 / latency.count() as f64)),
        Statistic::P50 => latency.quantile_ns(0.5).map(seconds),
        Statistic::P95 => latency.quantile_ns(0.95).map(seconds),
        Statistic::P99 => latency.quantile_ns(0.99).map(seconds),
        Statistic::Count => Some(latency.count() as f64),
        Statistic::Rate => Some(latency.count() as f64 / net().filter(|seconds| *seconds > 0.0)?),
    }
}
