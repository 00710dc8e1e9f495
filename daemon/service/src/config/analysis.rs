//! Settings of the weekly summary: the smallest difference that matters, and the user's usage profile.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use longhaul_model::PROFILE_LINES;

use serde::Deserialize;

use super::value::{InvalidValue, in_range};

/// Threshold of a difference that matters, and usage profile.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalysisConfig {
    /// Smallest ratio between two targets that matters, above 1. The first round of a database fixes it.
    pub threshold: f64,
    /// Number of times a week that the user waits for each metric, by `workload/metric`. Empty: unknown.
    pub usage_profile: BTreeMap<String, f64>,
}

impl Default for AnalysisConfig {
    fn default() -> Self {
        Self { threshold: 1.1, usage_profile: BTreeMap::new() }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileVerdict {
    threshold_percent: Option<toml::Spanned<f64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileUsageProfile {
    folder_openings: Option<toml::Spanned<f64>>,
    photo_sessions: Option<toml::Spanned<f64>>,
    backups: Option<toml::Spanned<f64>>,
    time_machine_bursts: Option<toml::Spanned<f64>>,
    recorded_days: Option<toml::Spanned<f64>>,
}

/// Valid times a week in the usage profile. 100,000 a week is ten a minute, day and night.
pub const USAGE_PER_WEEK: RangeInclusive<f64> = 0.0..=1e5;

impl AnalysisConfig {
    pub(super) fn from_file(verdict: FileVerdict, profile: FileUsageProfile) -> Result<Self, InvalidValue> {
        let default = Self::default();
        let threshold = in_range(verdict.threshold_percent, "threshold-percent", 1.0..=100.0)?;
        let times = [
            profile.folder_openings,
            profile.photo_sessions,
            profile.backups,
            profile.time_machine_bursts,
            profile.recorded_days,
        ];
        let mut usage_profile = BTreeMap::new();
        for (line, times) in PROFILE_LINES.iter().zip(times) {
            if let Some(times) = in_range(times, line.key, USAGE_PER_WEEK)? {
                usage_profile.extend(line.waits_a_week(times));
            }
        }
        Ok(Self {
            threshold: threshold.map_or(default.threshold, |percent| 1.0 + percent / 100.0),
            usage_profile,
        })
    }
}

#[cfg(test)]
mod tests {
    use longhaul_model::all_metrics;

    use crate::config::Config;

    #[test]
    fn every_usage_profile_key_is_a_metric() {
        let text = "[usage-profile]\nfolder-openings = 200\nphoto-sessions = 5\nbackups = 7\ntime-machine-bursts = 168\n\
                    recorded-days = 5\n[verdict]\nthreshold-percent = 5";
        let analysis = Config::parse(text, "c.toml".as_ref()).unwrap().analysis;
        let known: Vec<String> =
            all_metrics().map(|(workload, metric)| format!("{}/{}", workload.name(), metric.name)).collect();
        assert!(analysis.usage_profile.keys().all(|key| known.contains(key)), "{:?}", analysis.usage_profile);
        assert_eq!(
            (analysis.usage_profile.len(), analysis.usage_profile["photo-batch/switch-cold"]),
            (6, 100.0)
        );
        assert!((analysis.threshold - 1.05).abs() < 1e-12);
    }

    #[test]
    fn invalid_usage_profile_or_threshold_is_refused_at_its_line() {
        for bad in [
            "[usage-profile]\nbackups = -1",
            "[usage-profile]\nbackups = nan",
            "[usage-profile]\nfolder-openings = 200_000",
            "[usage-profile]\nbackup = 1",
            "[verdict]\nthreshold-percent = 0",
        ] {
            let error = Config::parse(bad, "c.toml".as_ref()).unwrap_err().to_string();
            assert!(error.starts_with("c.toml:2: "), "{error}");
        }
    }
}
