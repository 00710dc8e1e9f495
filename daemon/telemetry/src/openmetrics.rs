//! Totals as OpenMetrics text (prometheus.io/docs/specs/om/open_metrics_spec, version 1.0.0), from the same table of
//! instruments.
//!
//! The text form has no exponential histograms, so theirs are told at every second power of two: those bounds are bounds of
//! the store's buckets too, so that each count is exact.

use std::fmt::Write as _;

use longhaul_measure::stats::Histogram;

use crate::attributes::Labels;
use crate::instruments::{INSTRUMENTS, Instrument, Kind, of_now};
use crate::now::Now;
use crate::values::{Totals, Value};

/// The media type of the text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The powers of two, in microseconds, that are told as bounds: from 1 µs to 18 minutes.
const POWERS: std::ops::RangeInclusive<i32> = 0..=30;
/// Buckets of the store for each power of two.
const PER_POWER: i32 = 64;

/// The text.
pub fn text(totals: &Totals, now: &Now) -> String {
    let observed = of_now(now);
    let series = totals.series();
    let live = observed.iter().map(|(place, point)| (*place, &point.labels, &point.value));
    let mut all: Vec<(usize, &Labels, &Value)> = series.chain(live).collect();
    all.sort_by_key(|(place, ..)| *place);
    let mut out = String::new();
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let instrument = &INSTRUMENTS[group[0].0];
        head(&mut out, instrument);
        for (_, labels, value) in group {
            samples(&mut out, instrument, (&labels_of(labels), value));
        }
    }
    out.push_str("# EOF\n");
    out
}

/// The name that Prometheus gives what it receives by OTLP, so that a question fits both ways
/// (opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics).
pub fn name_of(instrument: &Instrument) -> String {
    let unit = match instrument.unit {
        "s" => "_seconds",
        "us" => "_microseconds",
        "By" => "_bytes",
        "By/s" => "_bytes_per_second",
        "1/s" => "_per_second",
        "1" => "_ratio",
        _ => "",
    };
    format!("{}{unit}", instrument.name.replace('.', "_"))
}

fn head(out: &mut String, instrument: &Instrument) {
    let (name, kind) = (name_of(instrument), kind_of(instrument.kind));
    let help = instrument.help;
    let _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

const fn kind_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
    }
}

fn samples(out: &mut String, instrument: &Instrument, (labels, value): (&str, &Value)) {
    let name = name_of(instrument);
    let _ = match value {
        Value::Number(number) => writeln!(out, "{name}{} {number}", braced(labels)),
        Value::Count(count) => {
            writeln!(out, "{name}_total{} {count}", braced(labels))
        }
        Value::Histogram(latency) => {
            buckets(out, &name, (labels, latency));
            let (labels, count, sum) = (braced(labels), latency.count(), latency.sum_ns() as f64 / 1e3);
            writeln!(out, "{name}_count{labels} {count}\n{name}_sum{labels} {sum}")
        }
    };
}

fn buckets(out: &mut String, name: &str, (labels, latency): (&str, &Histogram)) {
    let comma = if labels.is_empty() { "" } else { "," };
    for power in POWERS.step_by(2) {
        let (count, bound) = (at_most(latency, power), f64::from(power).exp2());
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound:.1}\"}} {count}");
    }
    let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", latency.count());
}

/// How many calls took at most `2^power` microseconds, exactly.
fn at_most(latency: &Histogram, power: i32) -> u64 {
    let (first, counts) = latency.buckets();
    let below = usize::try_from(power * PER_POWER - first).unwrap_or(0);
    counts.iter().take(below).sum()
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

fn labels_of(labels: &Labels) -> String {
    let label = |(key, value): (&std::borrow::Cow<'static, str>, &String)| {
        format!("{}=\"{}\"", key.replace('.', "_"), escaped(value))
    };
    labels.iter().map(label).collect::<Vec<_>>().join(",")
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Item;
    use crate::metrics::Temporality;
    use crate::tests::samples;
    use crate::values::Period;

    #[test]
    fn a_bound_is_counted_exactly() {
        let mut latency = Histogram::new();
        [900, 1_000, 1_001, 4_000, 4_001, 1 << 40].into_iter().for_each(|ns| latency.record(ns));
        let counts: Vec<u64> = [0, 2, 4, 30].map(|power| at_most(&latency, power)).into();
        assert_eq!(counts, [2, 4, 5, 5]);
    }

    #[test]
    fn the_text_has_each_family_once_and_an_end() {
        let mut totals = Totals::over(Period::All);
        Item::Round(Box::new(samples::round(1))).points(Temporality::Cumulative, &mut totals);
        let text = text(&totals, &Now::default());
        let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut once = families.clone();
        once.dedup();
        assert_eq!(families, once);
        assert!(text.contains("\nlonghaul_file_operation_duration_microseconds_bucket{"), "{text}");
        assert!(text.contains("\nlonghaul_runs_total{") && text.ends_with("# EOF\n"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn a_value_cannot_break_out_of_its_quotes() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
