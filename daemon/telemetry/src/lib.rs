//! Exports stored rounds and samples to an OpenTelemetry collector as traces and metrics.
//!
//! [`trace`] and [`instruments`] convert stored data to spans and data points, [`batch`] combines them into
//! messages, [`transport`] sends a message, its answer and [`retry`] decide whether it was delivered, and
//! [`exporter`] is the thread that does all of this between rounds. The store records what was delivered, so
//! nothing is lost if a collector is unavailable for weeks. Ids are derived from the stored data, so data sent
//! twice can be recognized as the same.
//!
//! ```
//! use longhaul_telemetry::endpoint;
//!
//! let base = endpoint::validate("http://127.0.0.1:4318").unwrap();
//! assert_eq!(endpoint::signal_url(&base, "traces"), "http://127.0.0.1:4318/v1/traces");
//! assert!(endpoint::validate("collector:4318").is_err());
//! ```

mod attributes;
pub mod batch;
pub mod check_results;
pub mod current_state;
pub mod diagnostics;
pub mod endpoint;
pub mod environment;
pub mod export_pause;
pub mod exporter;
pub mod headers;
pub mod identity;
pub mod instruments;
pub mod item;
pub mod metrics;
mod observations;
pub mod openmetrics;
pub mod retry;
pub mod scrape;
pub mod settings;
mod time;
pub mod totals;
pub mod trace;
pub mod transport;
pub mod values;

#[cfg(test)]
mod tests;

/// Resource attributes that the user adds, by key.
pub type ResourceAttributes = std::collections::BTreeMap<String, String>;
