//! Connects the exporter to the service: the status that it can read, and the source of its settings.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use longhaul_model::Timestamp;
use longhaul_service::config::Config;
use longhaul_service::handle::ServiceHandle;
use longhaul_service::status::{Status, TargetState, TargetStatus};
use longhaul_store::SharedWriter;
use longhaul_telemetry::check_results::CheckResults;
use longhaul_telemetry::current_state::{CurrentState, CurrentTarget};
use longhaul_telemetry::diagnostics::Diagnostics;
use longhaul_telemetry::exporter::{Exporter, ExporterDeps, ServiceView};
use longhaul_telemetry::settings::ExportSettings;

/// Starts the exporter. It sends nothing until it is configured.
pub fn start_exporter(
    handle: &Arc<ServiceHandle>,
    database: PathBuf,
    writer: SharedWriter,
    diagnostics: Diagnostics,
) -> anyhow::Result<Exporter> {
    let (status_source, status_sink) = (Arc::clone(handle), Arc::clone(handle));
    let parts = ExporterDeps {
        database,
        writer,
        export_pause: Arc::clone(&handle.export_pause),
        service_view: Box::new(move || service_view(&status_source)),
        diagnostics,
        on_status: Box::new(move |status| status_sink.set_telemetry(status)),
    };
    Exporter::start(parts, handle.problem_reporter("telemetry")).context("start the exporter's thread")
}

/// Returns the export settings from the configuration and the standard OTEL environment variables; `None` if
/// nothing is exported.
pub fn resolve_settings(config: &Config) -> Result<Option<ExportSettings>, String> {
    ExportSettings::resolve(&config.telemetry, &config.telemetry_environment())
        .map_err(|error| error.to_string())
}

/// Returns the current state of the service in the form that the exporter needs.
pub fn current_state(handle: &ServiceHandle) -> CurrentState {
    handle.status().as_ref().map(state_of).unwrap_or_default()
}

fn service_view(handle: &ServiceHandle) -> Option<ServiceView> {
    let status = handle.status()?;
    Some(ServiceView { next_round: status.next_round_us, state: state_of(&status) })
}

fn state_of(status: &Status) -> CurrentState {
    CurrentState {
        at: status.now_us,
        targets: status.targets.iter().map(|target| current_target(target, status.now_us)).collect(),
        rounds: Some(status.rounds),
        signals: status.telemetry.signals.clone(),
        checks: CheckResults::default(),
    }
}

fn current_target(target: &TargetStatus, now: Timestamp) -> CurrentTarget {
    let stuck_seconds = match target.state {
        TargetState::Hung { since_us, .. } => now.seconds_since(since_us).max(0.0),
        TargetState::Measuring { .. }
        | TargetState::Waiting { .. }
        | TargetState::Unavailable { .. }
        | TargetState::Blocked { .. } => 0.0,
    };
    CurrentTarget {
        name: target.name.clone(),
        stuck_seconds,
        bytes_used: target.bytes_last_24h,
        bytes_allowed: target.bytes_limit,
    }
}
