//! The `[sampling]` section of the configuration file.

use std::time::Duration;

use longhaul_model::{ProbeKind, ProbePolicy};
use serde::Deserialize;

use super::value::{InvalidValue, in_range};

/// Settings of passive sampling between and during rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingSettings {
    /// Policy for when the latency probe may access a target.
    pub probe_policy: ProbePolicy,
    /// Interval between two requests of the latency probe.
    pub probe_interval: Duration,
    /// True if the latency probe also writes.
    pub probe_writes: bool,
    /// Interval between two readings of the system's counters. `None`: counters are not read.
    pub counter_interval: Option<Duration>,
}

impl Default for SamplingSettings {
    fn default() -> Self {
        Self {
            probe_policy: ProbePolicy::default(),
            probe_interval: Duration::from_secs(5),
            probe_writes: false,
            counter_interval: Some(Duration::from_secs(10)),
        }
    }
}

impl SamplingSettings {
    /// Returns the requests that the latency probe sends in rotation.
    pub fn probe_kinds(&self) -> Vec<ProbeKind> {
        ProbeKind::ALL.into_iter().filter(|kind| self.probe_writes || *kind != ProbeKind::WriteSync).collect()
    }
}

/// The `[sampling]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileSampling {
    probe_when: Option<ProbePolicy>,
    probe_interval_seconds: Option<toml::Spanned<u64>>,
    probe_writes: Option<bool>,
    counter_interval_seconds: Option<toml::Spanned<u64>>,
}

impl FileSampling {
    pub(super) fn validate(self) -> Result<SamplingSettings, InvalidValue> {
        let default = SamplingSettings::default();
        let counters_every =
            match in_range(self.counter_interval_seconds, "counter-interval-seconds", 0..=3_600)? {
                Some(0) => None,
                Some(seconds) => Some(Duration::from_secs(seconds)),
                None => default.counter_interval,
            };
        Ok(SamplingSettings {
            probe_policy: self.probe_when.unwrap_or_default(),
            probe_interval: in_range(self.probe_interval_seconds, "probe-interval-seconds", 1..=3_600)?
                .map_or(default.probe_interval, Duration::from_secs),
            probe_writes: self.probe_writes.unwrap_or(default.probe_writes),
            counter_interval: counters_every,
        })
    }
}
