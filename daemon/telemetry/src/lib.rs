//! Stored rounds as OpenTelemetry traces and metrics, and their way to a collector.
//!
//! [`trace`] and [`instruments`] turn what is stored into values, [`batch`] puts rounds together as a message, [`sender`]
//! hands it over, [`answer`] and [`outbox`] decide what became of it, and [`exporter`] is the thread that does all of that
//! between rounds. What a collector has is kept in the store, so that one that is away for weeks loses nothing; ids follow
//! from what is stored, so that what is sent twice can be told to be the same.

pub mod answer;
mod attributes;
pub mod batch;
pub mod diagnostics;
pub mod endpoint;
pub mod environment;
pub mod exporter;
pub mod gate;
pub mod headers;
pub mod identity;
pub mod instruments;
pub mod item;
mod local_network;
pub mod metrics;
pub mod now;
mod observe;
pub mod openmetrics;
pub mod outbox;
pub mod scrape;
pub mod sender;
pub mod settings;
pub mod status;
mod time;
pub mod trace;
pub mod values;

#[cfg(test)]
mod tests;

/// What the person adds to the resource, by key.
pub type Added = std::collections::BTreeMap<String, String>;
