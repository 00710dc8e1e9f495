//! Runs the telemetry exporter on a synthetic database, and computes what a collector must receive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_model::status::SignalStatus;
use longhaul_model::time::DAY;
use longhaul_model::{
    CounterScope, CounterSource, Histogram, LoadContext, MachineStep, ProbeKind, ProbeStep, Role, Target,
    Timestamp, Traffic, TrafficStep,
};
use longhaul_store::{FinishedRound, Reader, Samples, SharedWriter, Signal, Store, Writer};
use longhaul_telemetry::diagnostics::Diagnostics;
use longhaul_telemetry::environment::EnvironmentVariables;
use longhaul_telemetry::exporter::{Exporter, ExporterDeps, ServiceView};
use longhaul_telemetry::settings::{ExportSettings, TelemetryConfig};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::ExponentialHistogramDataPoint;

use super::{Place, machine, template};

/// Length of a sample step: five minutes.
pub const STEP: Duration = Duration::from_mins(5);

/// Synthetic database, and an exporter that sends it.
pub struct Export {
    /// Test environment that contains the database. It is removed when dropped.
    _place: Place,
    /// Path of the database.
    pub database: PathBuf,
    writer: Arc<Writer>,
    /// Running exporter.
    pub exporter: Exporter,
}

impl Export {
    /// Creates a database of this many days with 17 rounds, and starts an exporter with these environment variables.
    pub fn new(days: u32, settings: &[(&str, &str)]) -> Self {
        let place = Place::new();
        let database = place.path("weeks.sqlite");
        template::made_up_days(&database, days);
        let writer = Arc::new(Writer::spawn(Store::open(&database, &[]).unwrap()));
        let exporter = exporter(&database, &writer);
        let export = Self { _place: place, database, writer, exporter };
        export.configure(settings);
        export
    }

    /// Replaces the exporter by a new one on the same database, as a restart of the service does.
    pub fn restarted(self, settings: &[(&str, &str)]) -> Self {
        self.exporter.stop();
        let exporter = exporter(&self.database, &self.writer);
        let export = Self { exporter, ..self };
        export.configure(settings);
        export
    }

    /// Applies environment variables. The retention is 100 years, because the synthetic rounds are old.
    pub fn configure(&self, variables: &[(&str, &str)]) {
        let keep = 100 * 365 * DAY;
        let configured = TelemetryConfig { retention: keep, ..TelemetryConfig::default() };
        let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = EnvironmentVariables::from_pairs(pairs);
        self.exporter
            .configure(ExportSettings::resolve(&configured, &environment).map_err(|error| error.to_string()));
    }

    /// Stores samples.
    pub fn sample(&self, new: Samples) {
        self.writer.add_samples(new).unwrap();
    }

    /// Returns the export status of a signal.
    pub fn status(&self, signal: Signal) -> SignalStatus {
        let status = self.exporter.status();
        status.signals.into_iter().find(|found| found.name == signal.name()).unwrap_or_default()
    }

    /// Waits until no item of any signal is pending.
    pub fn wait_until_empty(&self) {
        machine::wait_until("everything to be sent", || {
            let reader = Reader::open(&self.database).unwrap();
            Signal::ALL.into_iter().all(|signal| reader.pending_items(signal, 1).unwrap().is_empty())
        });
    }

    /// Returns every finished round in the database.
    pub fn rounds(&self) -> Vec<FinishedRound> {
        let reader = Reader::open(&self.database).unwrap();
        let numbers = reader.items_between(Signal::Metrics, Timestamp::MIN, Timestamp::MAX).unwrap();
        numbers.into_iter().map(|number| reader.finished_round(number).unwrap().unwrap()).collect()
    }
}

/// Returns this many five-minute steps of samples: probe latencies of two targets, and traffic of one.
pub fn samples(begin: Timestamp, steps: u32) -> Samples {
    let target = |name: &str| Target {
        name: name.parse().unwrap(),
        path: format!("/m/{name}").into(),
        role: Role::Share,
    };
    let targets = vec![target("smb"), target("nfs")];
    let mut new = Samples { now: begin, ..Samples::default() };
    for number in 0..steps {
        let at = begin + number * STEP;
        for (place, target) in targets.iter().enumerate() {
            let mut probe = ProbeStep::new(target.name.clone(), at, ProbeKind::Getattr, LoadContext::Idle);
            (0..60).for_each(|answer| probe.latency.record(1000 * (answer + 1) * (place as u64 + 1)));
            new.probes.push(probe);
        }
        let traffic = Traffic {
            source: CounterSource::Mountstats,
            scope: CounterScope::Mount,
            seconds: 300.0,
            user_read: Some(1000),
            user_written: None,
            longhaul_read: None,
            longhaul_written: None,
            requests: Some(3),
            retransmits: Some(0),
            errors: None,
            reconnects: None,
            round_trips: None,
            tcp_rtt_us: None,
        };
        new.traffic.push(TrafficStep::new(Some(targets[1].name.clone()), at, traffic));
        new.machine.push(MachineStep { at_us: at, observations: 30, ..MachineStep::default() });
    }
    Samples { targets, ..new }
}

fn exporter(database: &Path, writer: &Arc<Writer>) -> Exporter {
    let shared = SharedWriter::default();
    shared.replace(writer);
    let parts = ExporterDeps {
        database: database.to_owned(),
        writer: shared,
        export_pause: Arc::default(),
        service_view: Box::new(|| Some(ServiceView::default())),
        diagnostics: Diagnostics::default(),
        on_status: Box::new(drop),
    };
    Exporter::start(parts, |text| panic!("{text}")).unwrap()
}

/// Returns the value of a string attribute.
pub fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// Converts a time to nanoseconds since 1970 UTC, the unit of OpenTelemetry.
pub fn nanoseconds(at: Timestamp) -> u64 {
    at.as_us().cast_unsigned() * 1000
}

/// Key of a histogram: target, workload, cache state, operation, and end of the run in nanoseconds since 1970 UTC.
pub type Key = (String, String, String, String, u64);

/// Returns the key of a data point.
pub fn key_of(point: &ExponentialHistogramDataPoint) -> Key {
    let of = |key| text(&point.attributes, key).unwrap().to_owned();
    let names =
        ["longhaul.target", "longhaul.workload", "longhaul.cache.state", "longhaul.file.operation.name"];
    let [target, workload, state, operation] = names.map(of);
    (target, workload, state, operation, point.time_unix_nano)
}

/// Returns every stored histogram. Phases of a run with the same cache state are merged.
pub fn stored_histograms(rounds: &[FinishedRound]) -> BTreeMap<Key, Histogram> {
    let mut found: BTreeMap<Key, Histogram> = BTreeMap::new();
    for run in rounds.iter().flat_map(|round| &round.runs).map(|stored| &stored.run) {
        for phase in &run.phases {
            for stats in &phase.operations {
                let key = (
                    run.target.to_string(),
                    run.workload.clone(),
                    phase.cache.name().to_owned(),
                    stats.operation.name().to_owned(),
                    longhaul_telemetry::trace::end_ns(run),
                );
                found.entry(key).or_default().merge(&stats.latency);
            }
        }
    }
    found
}
