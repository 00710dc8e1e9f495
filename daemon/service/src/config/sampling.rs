//! The part of the configuration that is about passive sampling.

use std::time::Duration;

use longhaul_measure::model::{ProbeKind, Touch};
use serde::Deserialize;

use super::{Wrong, within};

/// What is sampled between and beside rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// When the probe may touch a target.
    pub touch: Touch,
    /// From slot to slot of the probe.
    pub probe_every: Duration,
    /// Whether the probe writes, too.
    pub probe_writes: bool,
    /// From look to look at the counters; `None`: they are not looked at.
    pub counters_every: Option<Duration>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            touch: Touch::default(),
            probe_every: Duration::from_secs(5),
            probe_writes: false,
            counters_every: Some(Duration::from_secs(10)),
        }
    }
}

impl Sampling {
    /// What the probe asks, in rotation.
    pub fn kinds(&self) -> Vec<ProbeKind> {
        ProbeKind::ALL.into_iter().filter(|kind| self.probe_writes || *kind != ProbeKind::WriteSync).collect()
    }
}

/// `[sampling]`, word for word.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileSampling {
    touch: Option<Touch>,
    probe_seconds: Option<toml::Spanned<u64>>,
    probe_writes: Option<bool>,
    counters_seconds: Option<toml::Spanned<u64>>,
}

impl FileSampling {
    pub(super) fn read(self) -> Result<Sampling, Wrong> {
        let default = Sampling::default();
        let counters_every = match within(self.counters_seconds, "counters-seconds", 0..=3_600)? {
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => default.counters_every,
        };
        Ok(Sampling {
            touch: self.touch.unwrap_or_default(),
            probe_every: within(self.probe_seconds, "probe-seconds", 1..=3_600)?
                .map_or(default.probe_every, Duration::from_secs),
            probe_writes: self.probe_writes.unwrap_or(default.probe_writes),
            counters_every,
        })
    }
}
