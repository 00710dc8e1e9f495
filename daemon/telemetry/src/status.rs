//! The status of the telemetry export.

pub use longhaul_model::status::{ExportStatus, SignalStatus};
