//! Reads a NAS in the way that the user chose.

use std::time::{Duration, Instant};

use longhaul_measure::platform::wall_clock;
use longhaul_model::NasReading;

use crate::error::NasError;
use crate::settings::NasSource;
use crate::{node_exporter, snmp, ssh};

/// Reads a NAS once. Only the resolution of its name can take longer than the limit.
///
/// # Errors
///
/// If the NAS does not answer within the limit, refuses, or answers something else.
pub fn read(source: &NasSource, limit: Duration) -> Result<NasReading, NasError> {
    let deadline = Instant::now() + limit;
    let reading = match source {
        NasSource::Snmp(settings) => snmp::read(settings, deadline),
        NasSource::NodeExporter(url) => node_exporter::read(url, deadline),
        NasSource::Ssh(host) => ssh::read(host, deadline),
    }?;
    Ok(NasReading { at: wall_clock(), ..reading })
}
