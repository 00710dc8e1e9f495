//! What the weekly summary is asked: from which difference on it matters, and how often a week the person does what.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Wrong, within};

/// The person's own week, and the difference that matters.
#[derive(Debug, Clone, PartialEq)]
pub struct Premises {
    /// From which ratio on a difference matters, above 1. It is settled by the first round of a database.
    pub threshold: f64,
    /// How often a week each endpoint (`workload/name`) is waited for. Empty: not known.
    pub mix: BTreeMap<String, f64>,
}

impl Default for Premises {
    fn default() -> Self {
        Self { threshold: 1.1, mix: BTreeMap::new() }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileVerdict {
    threshold_percent: Option<toml::Spanned<f64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileMix {
    folder_openings: Option<toml::Spanned<f64>>,
    photo_sessions: Option<toml::Spanned<f64>>,
    backups: Option<toml::Spanned<f64>>,
    time_machine_bursts: Option<toml::Spanned<f64>>,
}

/// So often an image is switched in a photo session.
const SWITCHES: f64 = 20.0;
/// The most that anything is done in a week: more than once a second.
const MOST: f64 = 1e6;

impl Premises {
    pub(super) fn from_file(verdict: FileVerdict, mix: FileMix) -> Result<Self, Wrong> {
        let default = Self::default();
        let threshold = within(verdict.threshold_percent, "threshold-percent", 1.0..=100.0)?;
        let often = |value, key| within(value, key, 0.0..=MOST);
        let photos = often(mix.photo_sessions, "photo-sessions")?;
        let counts = [
            ("folder-index/folder-cold", often(mix.folder_openings, "folder-openings")?),
            ("photo-batch/photos-cold", photos),
            ("photo-batch/switch-cold", photos.map(|sessions| sessions * SWITCHES)),
            ("incremental-backup/backup", often(mix.backups, "backups")?),
            ("time-machine/burst", often(mix.time_machine_bursts, "time-machine-bursts")?),
        ];
        Ok(Self {
            threshold: threshold.map_or(default.threshold, |percent| 1.0 + percent / 100.0),
            mix: counts.into_iter().filter_map(|(key, count)| Some((key.to_owned(), count?))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use longhaul_measure::workloads::endpoints;

    use crate::config::Config;

    #[test]
    fn every_key_of_the_mix_is_an_endpoint() {
        let text = "[mix]\nfolder-openings = 200\nphoto-sessions = 5\nbackups = 7\ntime-machine-bursts = 168\n[verdict]\n\
                    threshold-percent = 5";
        let premises = Config::parse(text, "c.toml".as_ref()).unwrap().premises;
        let known: Vec<String> = endpoints()
            .map(|(workload, endpoint)| format!("{}/{}", workload.name(), endpoint.name))
            .collect();
        assert!(premises.mix.keys().all(|key| known.contains(key)), "{:?}", premises.mix);
        assert_eq!((premises.mix.len(), premises.mix["photo-batch/switch-cold"]), (5, 100.0));
        assert!((premises.threshold - 1.05).abs() < 1e-12);
    }

    #[test]
    fn a_mix_or_threshold_without_sense_is_refused_at_its_line() {
        for bad in ["[mix]\nbackups = -1", "[mix]\nbackups = nan", "[verdict]\nthreshold-percent = 0"] {
            let error = Config::parse(bad, "c.toml".as_ref()).unwrap_err().to_string();
            assert!(error.starts_with("c.toml:2: `"), "{error}");
        }
    }
}
