//! The configuration file, in TOML. Unknown keys are errors, and every error names file, line and key.

mod analysis;
mod fleet;
mod layers;
mod loader;
mod managed;
mod managed_sample;
mod nas;
mod notify;
mod recording;
mod sampling;
mod schedule;
mod telemetry;
mod value;
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::workloads::Settings;
use longhaul_model::{FreeSpaceReserve, Role, STANDARD_TASKS, Scale, Target, TargetName, YOUR_DAY};
use longhaul_nas::NasSettings;
use serde::Deserialize;

pub use analysis::{AnalysisConfig, USAGE_PER_WEEK};
use analysis::{FileUsageProfile, FileVerdict};
use fleet::FileFleet;
pub use fleet::FleetConfig;
pub use layers::{FixedSetting, IgnoredSetting, shown_value};
pub use loader::{Argument, ConfigLoader, FixedSettingError, ManagedSettings};
pub use managed::ManagedFile;
pub use managed_sample::commented_sample;
use nas::FileNas;
use notify::FileNotify;
use recording::FileRecording;
use sampling::FileSampling;
pub use sampling::SamplingSettings;
pub use schedule::{Design, LOG_LEVELS, Log, Schedule, Web};
use schedule::{FileLog, FileSchedule, FileWeb};
use telemetry::{FileTelemetry, parse_absolute_path};
use value::{InvalidValue, in_range, unreadable_value};
use workloads::parse_workloads;

use crate::notifications::NotifyConfig;
use crate::recordings::{RecordingName, Recordings};

/// Commented sample configuration with every key at its default. `longhaul config
/// --print` prints it; tests parse it.
pub const SAMPLE_CONFIG: &str = include_str!("sample.toml");

/// The settings read from the configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Path of the database file. `None`: `longhaul.sqlite` in the platform's data folder.
    pub database: Option<PathBuf>,
    /// Size of the test data on each target.
    pub scale: Scale,
    /// Names of the workloads to run. Default: all workloads that are not presets.
    pub workloads: Vec<String>,
    /// The targets to measure.
    pub targets: Vec<Target>,
    /// Limits on the duration of a run and on daily traffic.
    pub limits: Limits,
    /// Settings shared by all workloads.
    pub settings: Settings,
    /// The settings of the weekly summary.
    pub analysis: AnalysisConfig,
    /// Schedule of the rounds that the background service runs.
    pub schedule: Schedule,
    /// Settings of passive sampling between and during rounds.
    pub sampling: SamplingSettings,
    /// Settings of the dashboard and of the API that controls the service.
    pub web: Web,
    /// Settings of the service's log file.
    pub log: Log,
    /// The settings of the OpenTelemetry export.
    pub telemetry: longhaul_telemetry::settings::TelemetryConfig,
    /// The settings of the notifications.
    pub notify: NotifyConfig,
    /// The NAS whose disks and processors are read before and after runs. `None`: none.
    pub nas: Option<NasSettings>,
    /// The settings of the export to a collection of many machines.
    pub fleet: FleetConfig,
    /// The recording that rounds replay as the workload `your-day`. `None`: none.
    pub replay: Option<RecordingName>,
    /// The settings that the administrator has set.
    pub managed: ManagedSettings,
}

/// Limits on the duration of a run and on daily traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Longest duration of a run, after which it is stored as hung.
    pub cap: Duration,
    /// Bytes that may be read and written on one target within 24 hours. `None`: no limit.
    pub bytes_per_day: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cap: Duration::from_secs(900), bytes_per_day: None }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            database: None,
            scale: Scale::Standard,
            workloads: STANDARD_TASKS.iter().map(|workload| workload.name().to_owned()).collect(),
            targets: vec![],
            limits: Limits::default(),
            settings: Settings::default(),
            analysis: AnalysisConfig::default(),
            schedule: Schedule::default(),
            sampling: SamplingSettings::default(),
            web: Web::default(),
            log: Log::default(),
            telemetry: longhaul_telemetry::settings::TelemetryConfig::default(),
            notify: NotifyConfig::default(),
            nas: None,
            fleet: FleetConfig::default(),
            replay: None,
            managed: ManagedSettings::default(),
        }
    }
}

/// The reason why a configuration file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file cannot be read.
    #[error("cannot read {}: {source}. Give another file with --config", path.display())]
    Read {
        /// Path of the configuration file.
        path: PathBuf,
        /// Error returned by the operating system.
        source: std::io::Error,
    },
    /// The administrator's file cannot be read, or others could have changed it.
    #[error("the administrator's file {} is not used, so nothing is measured: {source}. Ask your administrator to correct it", path.display())]
    Managed {
        /// Path of the administrator's file.
        path: PathBuf,
        /// The problem.
        source: std::io::Error,
    },
    /// The configuration file has a syntax error, an unknown key or an invalid value.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// Path of the configuration file.
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
        /// Description of the problem and of a valid value.
        message: String,
    },
}

/// The configuration file as written, before its values are validated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ConfigFile {
    database: Option<toml::Spanned<PathBuf>>,
    scale: Option<Scale>,
    workloads: Option<toml::Spanned<Vec<toml::Spanned<String>>>>,
    #[serde(default)]
    targets: BTreeMap<toml::Spanned<String>, FileTarget>,
    #[serde(default)]
    limits: FileLimits,
    #[serde(default)]
    folder_index: FileFolderIndex,
    #[serde(default)]
    time_machine: FileTimeMachine,
    #[serde(default)]
    verdict: FileVerdict,
    #[serde(default)]
    usage_profile: FileUsageProfile,
    #[serde(default)]
    schedule: FileSchedule,
    #[serde(default)]
    sampling: FileSampling,
    #[serde(default)]
    web: FileWeb,
    #[serde(default)]
    log: FileLog,
    #[serde(default)]
    telemetry: FileTelemetry,
    #[serde(default)]
    notify: FileNotify,
    #[serde(default)]
    nas: FileNas,
    #[serde(default)]
    fleet: FileFleet,
    #[serde(default)]
    recording: FileRecording,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a table: [targets.NAME] and, below it, path = \"FOLDER\""
)]
struct FileTarget {
    path: toml::Spanned<PathBuf>,
    role: Option<Role>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileLimits {
    cap_seconds: Option<toml::Spanned<u64>>,
    min_free_percent: Option<toml::Spanned<f64>>,
    megabytes_per_day: Option<u64>,
    operations_per_second: Option<toml::Spanned<u32>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileFolderIndex {
    files: Option<toml::Spanned<u64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileTimeMachine {
    band_mebibytes: Option<toml::Spanned<u64>>,
}

impl Config {
    /// Parses and validates configuration text on its own, without the administrator's settings: [`ConfigLoader`] reads
    /// the configuration that holds. `path` is used in error messages only.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file = toml::from_str::<ConfigFile>(text).map_err(|error| unreadable_value(text, &error));
        file.and_then(Self::from_file).map_err(|wrong| ConfigError::Invalid {
            path: path.to_owned(),
            line: 1 + text.bytes().take(wrong.offset).filter(|byte| *byte == b'\n').count(),
            message: wrong.message,
        })
    }

    /// Returns the settings of all workloads, with the file of the recording to replay. Recordings are stored next to the
    /// database.
    pub fn workload_settings(&self, database: &Path) -> Settings {
        let path = |name| Recordings::of_database(database).path(name);
        Settings { recording: self.replay.as_ref().map(path), ..self.settings.clone() }
    }

    fn from_file(file: ConfigFile) -> Result<Self, InvalidValue> {
        let default = Self::default();
        let workloads = file.workloads.map(parse_workloads);
        let targets = file.targets.into_iter().map(|(name, target)| parse_target(&name, target));
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        let nas = file.nas.validate(&targets)?;
        let replay = file.recording.validate()?;
        let mut workloads = workloads.unwrap_or(Ok(default.workloads))?;
        if replay.is_some() && !workloads.iter().any(|name| name == YOUR_DAY.name()) {
            workloads.push(YOUR_DAY.name().to_owned());
        }
        Ok(Self {
            database: file.database.map(|path| parse_absolute_path(path, "database")).transpose()?,
            scale: file.scale.unwrap_or(default.scale),
            workloads,
            targets,
            limits: Limits {
                cap: in_range(file.limits.cap_seconds, "cap-seconds", 1..=86_400)?
                    .map_or(default.limits.cap, Duration::from_secs),
                bytes_per_day: file
                    .limits
                    .megabytes_per_day
                    .map(|megabytes| megabytes.saturating_mul(1_000_000)),
            },
            settings: Settings {
                tree_files: in_range(file.folder_index.files, "files", 1..=10_000_000)?,
                band_bytes: in_range(file.time_machine.band_mebibytes, "band-mebibytes", 1..=256)?
                    .map_or(default.settings.band_bytes, |mebibytes| mebibytes << 20),
                reserve: in_range(file.limits.min_free_percent, "min-free-percent", 0.0..=90.0)?
                    .map_or(default.settings.reserve, |percent| FreeSpaceReserve::share(percent / 100.0)),
                operations_per_second: in_range(
                    file.limits.operations_per_second,
                    "operations-per-second",
                    1..=1_000_000,
                )?,
                ..default.settings
            },
            analysis: AnalysisConfig::from_file(file.verdict, file.usage_profile)?,
            schedule: file.schedule.validate()?,
            sampling: file.sampling.validate()?,
            web: file.web.validate()?,
            log: file.log.validate()?,
            telemetry: file.telemetry.validate()?,
            notify: file.notify.validate()?,
            nas,
            fleet: file.fleet.validate()?,
            replay,
            managed: ManagedSettings::default(),
        })
    }
}

fn parse_target(name: &toml::Spanned<String>, target: FileTarget) -> Result<Target, InvalidValue> {
    let wrong_name =
        |error: longhaul_model::TargetNameError| InvalidValue::new(name.span().start, error.to_string());
    let parsed: TargetName = name.get_ref().parse().map_err(wrong_name)?;
    if !target.path.get_ref().is_absolute() {
        let message = format!("the path of target `{parsed}` must start with `/`");
        return Err(InvalidValue::new(target.path.span().start, message));
    }
    Ok(Target { name: parsed, path: target.path.into_inner(), role: target.role.unwrap_or(Role::Share) })
}

/// Returns whether the configuration has a key. Sections with free names, such as `targets`, have every name.
fn is_known_key(path: &[String]) -> bool {
    let key = path.iter().map(|part| toml_edit::Key::new(part).to_string()).collect::<Vec<_>>().join(".");
    // A wrong type is found only in a key that exists.
    let error = toml::from_str::<ConfigFile>(&format!("{key} = 0")).err();
    error.is_none_or(|error| !error.message().starts_with("unknown field"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("c.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn sample_sets_nothing_but_the_defaults() {
        assert_eq!(parse(SAMPLE_CONFIG), Ok(Config::default()));
    }

    #[test]
    fn uncommented_sample_is_valid_and_sets_every_key() {
        let uncommented: String = SAMPLE_CONFIG
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        let config = parse(&uncommented).unwrap();
        assert_eq!(config.targets.len(), 3);
        assert!(config.database.is_some() && config.limits.bytes_per_day.is_some());
        assert_eq!(config.analysis.usage_profile.len(), 6);
        assert!(config.settings.tree_files.is_some() && config.schedule.skip_rules.quiet_hours.is_some());
        let names: Vec<_> = STANDARD_TASKS.iter().map(|workload| workload.name()).collect();
        let (last, standard) = config.workloads.split_last().unwrap();
        assert_eq!(standard, names, "the sample lists every workload");
        assert_eq!(last, "your-day", "a recording is replayed");
        assert_eq!(config.notify.channels.len(), 4);
        assert!(config.nas.is_some_and(|nas| nas.targets.is_some()) && config.replay.is_some());
        assert!(config.fleet.label.is_some() && config.fleet.credentials_file.is_some());
        assert!(config.notify.heartbeat.is_some() && config.notify.rules.digest.is_some());
    }

    #[test]
    fn presets_and_their_original_versions_can_be_added() {
        let config = parse("workloads = [\"dd\", \"time-machine\", \"blogbench-as-original\"]").unwrap();
        assert_eq!(config.workloads, ["dd", "time-machine", "blogbench-as-original"]);
        assert!(parse("workloads = [\"blogbnch\"]").unwrap_err().contains("did you mean `blogbench`?"));
    }

    #[test]
    fn every_section_may_be_missing_or_empty() {
        assert_eq!(parse(""), Ok(Config::default()));
        let sections = SAMPLE_CONFIG.lines().filter(|line| line.starts_with('['));
        for section in sections {
            assert_eq!(parse(section), Ok(Config::default()), "{section}");
        }
    }

    #[test]
    fn unknown_key_error_names_its_line_and_a_similar_key() {
        assert_eq!(
            parse("scale = \"quick\"\n[limits]\ncap-second = 3\n").unwrap_err(),
            "c.toml:3: unknown key `cap-second`; did you mean `cap-seconds`?"
        );
        assert_eq!(
            parse("\nworkloads = [\n  \"photo-bach\"]").unwrap_err(),
            "c.toml:3: there is no task `photo-bach`; did you mean `photo-batch`?"
        );
    }

    #[test]
    fn value_of_the_wrong_kind_is_refused_with_its_key() {
        let [unknown, near, large, inline, element] = [
            "scale = \"huge\"",
            "[schedule]\ndesign = \"week\"",
            "[web]\nport = 70000",
            "targets = { a = { path = \"/x\", role = 3 } }",
            "workloads = [3]",
        ]
        .map(|text| parse(text).unwrap_err());
        assert_eq!(unknown, "c.toml:1: `scale`: unknown value `huge`; it is one of quick, standard, large");
        assert_eq!(near, "c.toml:2: `design`: unknown value `week`; did you mean `weeks`?");
        assert!(large.starts_with("c.toml:2: `port`: invalid value: integer `70000`"), "{large}");
        assert!(inline.starts_with("c.toml:1: `role`: "), "{inline}");
        assert!(element.starts_with("c.toml:1: invalid type"), "an element has no key: {element}");
    }

    #[test]
    fn dashboard_listens_on_at_most_one_other_address() {
        let address = |text: &str| parse(&format!("[web]\naddress = \"{text}\""));
        assert_eq!(address("192.168.1.5").unwrap().web.address, Some([192, 168, 1, 5].into()));
        assert!(address("fd00::5").unwrap().web.address.is_some_and(|address| address.is_ipv6()));
        for wrong in ["0.0.0.0", "::", "nas.local", ""] {
            assert!(address(wrong).unwrap_err().starts_with("c.toml:2: `address`"), "{wrong}");
        }
    }

    #[test]
    fn invalid_values_and_targets_are_refused_at_their_line() {
        assert!(parse("[limits]\n\ncap-seconds = 0").unwrap_err().starts_with("c.toml:3: `cap-seconds`"));
        assert!(parse("[targets.smb]\npath = \"media\"").unwrap_err().starts_with("c.toml:2: the path"));
        assert!(parse("[targets.\"a/b\"]\npath = \"/x\"").unwrap_err().starts_with("c.toml:1: `a/b` is not"));
        let replay = parse("[recording]\nreplay = \"my day\"").unwrap_err();
        assert!(replay.starts_with("c.toml:2: `replay`: `my day` is not a recording name"), "{replay}");
        assert!(parse("scale = ").unwrap_err().starts_with("c.toml:1: "));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused_without_panic(text in "[a-z\\[\\]=.\"\n0-9#-]{0,200}") {
            let _ = parse(&text);
        }
    }
}
