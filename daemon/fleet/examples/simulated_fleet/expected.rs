//! The answers of `longhaul-analysis` and `longhaul-model` to the weekly questions.

use std::collections::BTreeMap;

use longhaul_analysis::summary::{Comparison, pair_verdicts};
use longhaul_export::fleet::{FleetTable, Week};
use longhaul_model::stored::StoredOperation;
use longhaul_model::{FreshnessOutcome, Histogram};
use serde_json::{Value, json};

use super::machine::Machine;

/// Site, protocol, workload, cache state and operation.
type LatencyGroup = [String; 5];

/// Answers, collected machine by machine.
#[derive(Default)]
pub struct Expected {
    rows: BTreeMap<&'static str, u64>,
    latency: BTreeMap<LatencyGroup, (Histogram, u64)>,
    comparisons: Vec<Value>,
    outcomes: BTreeMap<[String; 2], BTreeMap<&'static str, u64>>,
    freshness: BTreeMap<[String; 2], BTreeMap<&'static str, u64>>,
    integrity: BTreeMap<[String; 2], BTreeMap<&'static str, u64>>,
}

impl Expected {
    pub fn count(&mut self, table: FleetTable, rows: u64) {
        *self.rows.entry(table.name()).or_default() += rows;
    }

    pub fn add_operation(&mut self, site: &str, stored: &StoredOperation) {
        let protocol = stored.protocol.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
        let group = [
            site.to_owned(),
            family(&protocol),
            stored.workload.clone(),
            stored.cache.name().to_owned(),
            stored.stats.operation.name().to_owned(),
        ];
        let (latency, errors) = self.latency.entry(group).or_default();
        latency.merge(&stored.stats.latency);
        *errors += stored.stats.errors;
    }

    pub fn add_history(&mut self, machine: &Machine, week: Week) {
        for pair in pair_verdicts(&machine.history, week.last_day(), None) {
            self.comparisons.extend(pair.tasks.iter().map(|task| comparison(machine, task)));
        }
        let rounds = machine.history.rounds.iter().filter(|round| week.contains(round.day()));
        let rounds: std::collections::BTreeSet<i64> = rounds.map(|round| round.number).collect();
        let site = &machine.origin.site;
        let group = |target: usize| [site.clone(), family(&machine.protocols[target].to_string())];
        for run in machine.history.runs.iter().filter(|run| rounds.contains(&run.round)) {
            *self.outcomes.entry(group(run.target)).or_default().entry(run.outcome.name()).or_default() += 1;
        }
        for verified in &machine.verified {
            let position = machine.history.runs.binary_search_by_key(&verified.run, |run| run.number);
            let Some(run) = position.ok().map(|at| &machine.history.runs[at]) else { continue };
            if rounds.contains(&run.round) {
                let sums = self.integrity.entry(group(run.target)).or_default();
                *sums.entry("bytes").or_default() += verified.bytes;
                *sums.entry("mismatches").or_default() += verified.mismatches;
            }
        }
        for sample in machine.freshness.iter().filter(|sample| week.contains(sample.at.local_day(0))) {
            let protocol = sample.protocol.as_ref().map_or_else(String::new, ToString::to_string);
            let counts = self.freshness.entry([site.clone(), family(&protocol)]).or_default();
            match &sample.outcome {
                FreshnessOutcome::Seen { .. } => *counts.entry("seen").or_default() += 1,
                FreshnessOutcome::NotSeen { .. } => *counts.entry("not_seen").or_default() += 1,
                FreshnessOutcome::Void { .. } => {}
            }
        }
    }

    pub fn merge(&mut self, other: Self) {
        other.rows.into_iter().for_each(|(table, rows)| *self.rows.entry(table).or_default() += rows);
        for (group, (latency, errors)) in other.latency {
            let own = self.latency.entry(group).or_default();
            own.0.merge(&latency);
            own.1 += errors;
        }
        self.comparisons.extend(other.comparisons);
        merge_counts(&mut self.outcomes, other.outcomes);
        merge_counts(&mut self.freshness, other.freshness);
        merge_counts(&mut self.integrity, other.integrity);
    }

    pub fn to_json(&self, week: Week) -> Value {
        let grouped = |counts: &BTreeMap<[String; 2], BTreeMap<&'static str, u64>>| -> Vec<Value> {
            counts.iter().map(|([site, protocol], counts)| json!({ "site": site, "protocol": protocol, "counts": counts })).collect()
        };
        json!({
            "week": week.to_string(),
            "rows": self.rows,
            "latency": self.latency.iter().map(|(group, (latency, errors))| latency_json(group, latency, *errors)).collect::<Vec<_>>(),
            "comparisons": self.comparisons,
            "outcomes": grouped(&self.outcomes),
            "freshness": grouped(&self.freshness),
            "integrity": grouped(&self.integrity),
        })
    }
}

fn merge_counts(
    own: &mut BTreeMap<[String; 2], BTreeMap<&'static str, u64>>,
    other: BTreeMap<[String; 2], BTreeMap<&'static str, u64>>,
) {
    for (group, counts) in other {
        let sums = own.entry(group).or_default();
        counts.into_iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
    }
}

fn latency_json(group: &LatencyGroup, latency: &Histogram, errors: u64) -> Value {
    let [site, protocol, workload, cache, operation] = group;
    json!({
        "site": site, "protocol": protocol, "workload": workload, "cache": cache, "operation": operation,
        "calls": latency.count(), "errors": errors,
        "p50_ns": latency.quantile_ns(0.5), "p95_ns": latency.quantile_ns(0.95), "p99_ns": latency.quantile_ns(0.99),
    })
}

fn comparison(machine: &Machine, task: &Comparison) -> Value {
    json!({
        "source": machine.origin.source, "site": machine.origin.site, "metric": task.subject.key,
        "a": task.a.as_str(), "b": task.b.as_str(),
        // After a change of the ratio, the comparison has the newest part only.
        "is_whole": task.change.is_none(),
        "complete": task.rounds.complete, "planned": task.rounds.planned, "both_failed": task.rounds.both_failed,
        "won_by_a": task.rounds.won_by_a, "won_by_b": task.rounds.won_by_b, "incomplete_days": task.incomplete_days,
        "days": task.days.iter().map(|day| json!([day.date, day.ratio])).collect::<Vec<_>>(),
    })
}

/// Returns the name of a protocol without its version.
fn family(protocol: &str) -> String {
    protocol.split(' ').next().unwrap_or_default().to_lowercase()
}
