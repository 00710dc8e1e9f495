//! An exporter over a database as after some weeks, and what of it has to arrive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::model::{
    Beside, Covers, MachineStep, ProbeKind, ProbeStep, Role, Source, Target, Traffic, TrafficStep,
};
use longhaul_measure::stats::Histogram;
use longhaul_store::{FinishedRound, Reader, Samples, SharedWriter, Signal, Store, Writer};
use longhaul_telemetry::diagnostics::Diagnostics;
use longhaul_telemetry::environment::Environment;
use longhaul_telemetry::exporter::{Exporter, Parts, View};
use longhaul_telemetry::settings::{Configured, Settings};
use longhaul_telemetry::status::SignalStatus;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::ExponentialHistogramDataPoint;

use super::{Place, machine};

/// Five minutes.
pub const STEP_US: i64 = 300_000_000;

/// A database as after some weeks, and an exporter that sends it somewhere.
pub struct Export {
    /// Where everything is.
    pub place: Place,
    /// The database.
    pub database: PathBuf,
    writer: Arc<Writer>,
    /// The exporter.
    pub exporter: Exporter,
}

impl Export {
    /// So many weeks, and an exporter with these variables.
    pub fn new(weeks: u32, settings: &[(&str, &str)]) -> Self {
        let place = Place::new();
        let database = place.path("weeks.sqlite");
        let call = place.longhaul("bench year --weeks").word(weeks.to_string());
        call.word("--database").word(&database).expect(0);
        let writer = Arc::new(Writer::spawn(Store::open(&database, &[]).unwrap()));
        let exporter = exporter(&database, &writer);
        let export = Self { place, database, writer, exporter };
        export.configure(settings);
        export
    }

    /// Another process takes over, as far as an exporter can tell.
    pub fn restarted(self, settings: &[(&str, &str)]) -> Self {
        self.exporter.stop();
        let exporter = exporter(&self.database, &self.writer);
        let export = Self { exporter, ..self };
        export.configure(settings);
        export
    }

    /// Puts variables in force, with a patience that rounds of last year need.
    pub fn configure(&self, variables: &[(&str, &str)]) {
        let keep = Duration::from_secs(100 * 365 * 86_400);
        let configured = Configured { keep, ..Configured::default() };
        let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::of(pairs);
        self.exporter.configure(Settings::of(&configured, &environment).map_err(|error| error.to_string()));
    }

    /// Stores samples.
    pub fn sample(&self, new: Samples) {
        self.writer.add_samples(new).unwrap();
    }

    /// How it stands with a signal.
    pub fn status(&self, signal: Signal) -> SignalStatus {
        let status = self.exporter.status();
        status.signals.into_iter().find(|found| found.name == signal.name()).unwrap_or_default()
    }

    /// Waits until nothing waits any more.
    pub fn wait_until_empty(&self) {
        machine::wait_until("everything to be sent", || {
            let reader = Reader::open(&self.database).unwrap();
            Signal::ALL.into_iter().all(|signal| reader.waiting(signal, 1).unwrap().is_empty())
        });
    }

    /// Every round that was made.
    pub fn rounds(&self) -> Vec<FinishedRound> {
        let reader = Reader::open(&self.database).unwrap();
        let numbers = reader.items_between(Signal::Metrics, i64::MIN, i64::MAX).unwrap();
        numbers.into_iter().map(|number| reader.finished_round(number).unwrap().unwrap()).collect()
    }
}

/// So many five minutes of samples from a moment on, as two targets are asked and one is counted.
pub fn samples(begin_us: i64, steps: i64) -> Samples {
    let target = |name: &str| Target {
        name: name.parse().unwrap(),
        path: format!("/m/{name}").into(),
        role: Role::Share,
    };
    let targets = vec![target("smb"), target("nfs")];
    let mut new = Samples { now_us: begin_us, ..Samples::default() };
    for number in 0..steps {
        let at_us = begin_us + number * STEP_US;
        for (place, target) in targets.iter().enumerate() {
            let mut probe = ProbeStep::new(target.name.clone(), at_us, ProbeKind::Getattr, Beside::Calm);
            (0..60).for_each(|answer| probe.latency.record(1000 * (answer + 1) * (place as u64 + 1)));
            new.probes.push(probe);
        }
        let traffic = Traffic {
            source: Source::Mountstats,
            covers: Covers::Mount,
            seconds: 300.0,
            user_read: Some(1000),
            user_written: None,
            own_read: None,
            own_written: None,
            requests: Some(3),
            retransmissions: Some(0),
            errors: None,
            reconnects: None,
            round_trips: None,
            packet_round_trip_us: None,
        };
        new.traffic.push(TrafficStep::of(Some(targets[1].name.clone()), at_us, traffic));
        new.machine.push(MachineStep { at_us, looks: 30, ..MachineStep::default() });
    }
    Samples { targets, ..new }
}

fn exporter(database: &Path, writer: &Arc<Writer>) -> Exporter {
    let shared = SharedWriter::default();
    shared.set(writer);
    let parts = Parts {
        database: database.to_owned(),
        writer: shared,
        gate: Arc::default(),
        view: Box::new(|| Some(View::default())),
        diagnostics: Diagnostics::default(),
        tell: Box::new(drop),
    };
    Exporter::start(parts).unwrap()
}

/// The value of an attribute that is text.
pub fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// By target, task, cache state, call and end of the run.
pub type Key = (String, String, String, String, u64);

/// Which histogram a point is.
pub fn key_of(point: &ExponentialHistogramDataPoint) -> Key {
    let of = |key| text(&point.attributes, key).unwrap().to_owned();
    let names =
        ["longhaul.target", "longhaul.workload", "longhaul.cache.state", "longhaul.file.operation.name"];
    let [target, workload, state, operation] = names.map(of);
    (target, workload, state, operation, point.time_unix_nano)
}

/// Every histogram that is stored, phases of one cache state together.
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
                    longhaul_telemetry::trace::ended(run),
                );
                found.entry(key).or_default().merge(&stats.latency);
            }
        }
    }
    found
}
