//! Formats totals as OpenMetrics text (prometheus.io/docs/specs/om/open_metrics_spec, version 1.0.0), using the
//! same table of instruments as the OTLP export.
//!
//! The text format has no exponential histograms, so histograms have a bucket at every second power of two.
//! These bounds are also bounds of the stored buckets, so every count is exact.

use std::fmt::Write as _;

use longhaul_model::Histogram;

use crate::attributes::Labels;
use crate::current_state::CurrentState;
use crate::instruments::{INSTRUMENTS, Instrument, Kind, current_state_points};
use crate::totals::Totals;
use crate::values::Value;

/// Media type of the text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Exponents of the powers of two, in microseconds, that bucket bounds are taken from: from 1 µs to 18 minutes.
const BUCKET_POWERS: std::ops::RangeInclusive<i32> = 0..=30;
/// Number of stored buckets per power of two.
const BUCKETS_PER_POWER: i32 = 64;

/// Returns the totals and the current state as OpenMetrics text.
pub fn text(totals: &Totals, now: &CurrentState) -> String {
    let observed = current_state_points(now);
    let series = totals.series().filter(|(index, labels, _)| is_current(&INSTRUMENTS[*index], labels, now));
    let live = observed.iter().map(|(index, point)| (*index, &point.labels, &point.value));
    let mut all: Vec<(usize, &Labels, &Value)> = series.chain(live).collect();
    all.sort_by_key(|(index, ..)| *index);
    let mut out = String::new();
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let instrument = &INSTRUMENTS[group[0].0];
        metadata(&mut out, instrument);
        for (_, labels, value) in group {
            samples(&mut out, instrument, &label_text(labels), value);
        }
    }
    out.push_str("# EOF\n");
    out
}

/// Returns whether a series still tells something. A gauge of a target that is no longer configured would keep its last value
/// for ever.
fn is_current(instrument: &Instrument, labels: &Labels, now: &CurrentState) -> bool {
    let is_configured = |name: &String| now.targets.iter().any(|target| target.name.as_str() == name);
    instrument.kind != Kind::Gauge || labels.get("longhaul.target").is_none_or(is_configured)
}

/// Returns the name under which Prometheus stores an instrument that it receives over OTLP, so that a query
/// works for both scraping and OTLP
/// (opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics).
pub fn prometheus_name(instrument: &Instrument) -> String {
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

fn metadata(out: &mut String, instrument: &Instrument) {
    let (name, kind) = (prometheus_name(instrument), prometheus_type(instrument.kind));
    let help = instrument.help;
    let _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

const fn prometheus_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
    }
}

fn samples(out: &mut String, instrument: &Instrument, labels: &str, value: &Value) {
    let name = prometheus_name(instrument);
    let _ = match value {
        Value::Number(number) => writeln!(out, "{name}{} {number}", in_braces(labels)),
        Value::Count(count) => {
            writeln!(out, "{name}_total{} {count}", in_braces(labels))
        }
        Value::Histogram(latency) => {
            buckets(out, &name, labels, latency);
            let (labels, count, sum) = (in_braces(labels), latency.count(), latency.sum_ns() as f64 / 1e3);
            writeln!(out, "{name}_count{labels} {count}\n{name}_sum{labels} {sum}")
        }
    };
}

fn buckets(out: &mut String, name: &str, labels: &str, latency: &Histogram) {
    let comma = if labels.is_empty() { "" } else { "," };
    for power in BUCKET_POWERS.step_by(2) {
        let (count, bound) = (count_at_most(latency, power), f64::from(power).exp2());
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound:.1}\"}} {count}");
    }
    let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", latency.count());
}

/// Returns the exact number of recorded times that are at most `2^power` microseconds.
fn count_at_most(latency: &Histogram, power: i32) -> u64 {
    let (first, counts) = latency.buckets();
    let below = usize::try_from(power * BUCKETS_PER_POWER - first).unwrap_or(0);
    counts.iter().take(below).sum()
}

fn in_braces(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

fn label_text(labels: &Labels) -> String {
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
    use crate::current_state::CurrentTarget;
    use crate::item::Item;
    use crate::metrics::Temporality;
    use crate::tests::samples;
    use crate::totals::Period;

    #[test]
    fn bucket_counts_are_exact() {
        let mut latency = Histogram::new();
        [900, 1_000, 1_001, 4_000, 4_001, 1 << 40].into_iter().for_each(|ns| latency.record(ns));
        let counts: Vec<u64> = [0, 2, 4, 30].map(|power| count_at_most(&latency, power)).into();
        assert_eq!(counts, [2, 4, 5, 5]);
    }

    #[test]
    fn text_has_each_family_once_and_an_eof_line() {
        let mut totals = Totals::new(Period::All);
        Item::Round(Box::new(samples::round(1))).points(Temporality::Cumulative, &mut totals);
        let text = text(&totals, &CurrentState::default());
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
    fn gauges_of_a_removed_target_are_left_out() {
        let mut totals = Totals::new(Period::All);
        Item::Round(Box::new(samples::round(1))).points(Temporality::Cumulative, &mut totals);
        let target = CurrentTarget {
            name: "smb".parse().unwrap(),
            stuck_seconds: 0.0,
            bytes_used: 0,
            bytes_allowed: None,
        };
        let configured = text(&totals, &CurrentState { targets: vec![target], ..CurrentState::default() });
        let removed = text(&totals, &CurrentState::default());
        let gauge = "\nlonghaul_target_available{longhaul_target=\"smb\"} ";
        assert!(configured.contains(gauge) && !removed.contains(gauge), "{removed}");
        assert!(removed.contains("\nlonghaul_runs_total{"), "counters never go back: {removed}");
    }

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
