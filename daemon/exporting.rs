//! The exporter beside the service: what it sees of the service, and where its settings come from.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use longhaul_service::config::Config;
use longhaul_service::desk::Desk;
use longhaul_service::status::{Status, TargetState, TargetStatus};
use longhaul_store::SharedWriter;
use longhaul_telemetry::diagnostics::Diagnostics;
use longhaul_telemetry::environment::Environment;
use longhaul_telemetry::exporter::{Exporter, Parts, View};
use longhaul_telemetry::now::{Now, TargetNow};
use longhaul_telemetry::settings::Settings;

/// Starts it; it does nothing until it is told where to.
pub fn start(
    desk: &Arc<Desk>,
    (database, writer): (PathBuf, SharedWriter),
    diagnostics: Diagnostics,
) -> anyhow::Result<Exporter> {
    let (seen, told) = (Arc::clone(desk), Arc::clone(desk));
    let parts = Parts {
        database,
        writer,
        gate: Arc::clone(&desk.gate),
        view: Box::new(move || view(&seen)),
        diagnostics,
        tell: Box::new(move |status| told.set_telemetry(status)),
    };
    Exporter::start(parts).context("start the exporter's thread")
}

/// What the configuration and the standard variables say.
pub fn settings(config: &Config) -> Result<Option<Settings>, String> {
    Settings::of(&config.telemetry, &Environment::of_process()).map_err(|error| error.to_string())
}

/// What is so just now, in the exporter's words.
pub fn now(desk: &Desk) -> Now {
    desk.status().as_ref().map(now_of).unwrap_or_default()
}

fn view(desk: &Desk) -> Option<View> {
    let status = desk.status()?;
    Some(View { next_us: status.next_us, now: now_of(&status) })
}

fn now_of(status: &Status) -> Now {
    Now {
        at_us: status.now_us,
        targets: status.targets.iter().map(|target| target_of(target, status.now_us)).collect(),
        rounds: Some(status.rounds),
        signals: status.telemetry.signals.clone(),
    }
}

fn target_of(target: &TargetStatus, now_us: i64) -> TargetNow {
    let stuck_us = match target.state {
        TargetState::Hung { since_us, .. } => (now_us - since_us).max(0),
        TargetState::Measuring { .. }
        | TargetState::Waiting { .. }
        | TargetState::Unavailable { .. }
        | TargetState::Blocked { .. } => 0,
    };
    TargetNow {
        name: target.name.clone(),
        stuck_seconds: stuck_us as f64 / 1e6,
        bytes_per_day: target.bytes_per_day,
        bytes_allowed: target.bytes_allowed,
    }
}
