//! The configuration file: TOML, every key known, every error with file, line and key.

mod sampling;
mod schedule;
mod telemetry;
mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::bounded;
use longhaul_measure::model::{Role, Scale, Target, TargetName};
use longhaul_measure::workloads::{Settings, WORKLOADS, Workload, everything, workload};
use serde::Deserialize;

use sampling::FileSampling;
pub use sampling::Sampling;
pub use schedule::{Design, LEVELS, Log, Schedule, Web};
use schedule::{FileLog, FileSchedule, FileWeb};
use telemetry::FileTelemetry;
pub use verdict::Premises;
use verdict::{FileMix, FileVerdict};

/// A commented sample with every key at its default; `longhaul config --print` prints it, and a test reads it.
pub const SAMPLE: &str = include_str!("sample.toml");

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the database is; `None`: in the platform's data folder.
    pub database: Option<PathBuf>,
    /// How large corpora are.
    pub scale: Scale,
    /// Which workloads run, by name; all if the file does not say.
    pub workloads: Vec<String>,
    /// What is measured.
    pub targets: Vec<Target>,
    /// What holds a run in bounds.
    pub limits: Limits,
    /// What is set for all workloads.
    pub settings: Settings,
    /// What the weekly summary is asked.
    pub premises: Premises,
    /// When the background service measures.
    pub schedule: Schedule,
    /// What it samples between and beside rounds.
    pub sampling: Sampling,
    /// Where its page and control interface are.
    pub web: Web,
    /// Its log.
    pub log: Log,
    /// What is exported to an OpenTelemetry collector.
    pub telemetry: longhaul_telemetry::settings::Configured,
}

/// What holds a run in bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// How long a run may take before it is booked as hung.
    pub cap: Duration,
    /// Bytes that may be read and written on one target in 24 hours; `None`: as many as it takes.
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
            workloads: WORKLOADS.iter().map(|workload| workload.name().to_owned()).collect(),
            targets: vec![],
            limits: Limits::default(),
            settings: Settings::default(),
            premises: Premises::default(),
            schedule: Schedule::default(),
            sampling: Sampling::default(),
            web: Web::default(),
            log: Log::default(),
            telemetry: longhaul_telemetry::settings::Configured::default(),
        }
    }
}

/// Why a configuration is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read {}: {source}. Give another file with --config", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file says something that has no meaning.
    #[error("{}:{line}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
}

/// What the file says, word for word.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    database: Option<PathBuf>,
    scale: Option<Scale>,
    workloads: Option<Vec<toml::Spanned<String>>>,
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
    mix: FileMix,
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileTarget {
    path: toml::Spanned<PathBuf>,
    role: Option<Role>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileLimits {
    cap_seconds: Option<toml::Spanned<u64>>,
    free_floor_percent: Option<toml::Spanned<f64>>,
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

/// Something wrong at a place in the file.
struct Wrong {
    at: usize,
    message: String,
}

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text =
            bounded::read_text(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads text; the path is for messages only.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file = toml::from_str::<File>(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Wrong { at, message: with_nearest_key(error.message()) }
        });
        file.and_then(Self::from_file).map_err(|wrong| ConfigError::Content {
            path: path.to_owned(),
            line: 1 + text.bytes().take(wrong.at).filter(|byte| *byte == b'\n').count(),
            message: wrong.message,
        })
    }

    fn from_file(file: File) -> Result<Self, Wrong> {
        let default = Self::default();
        let workloads = file.workloads.map(|names| names.into_iter().map(known_workload).collect());
        let targets = file.targets.into_iter().map(|(name, target)| target_of(&name, target));
        Ok(Self {
            database: file.database,
            scale: file.scale.unwrap_or(default.scale),
            workloads: workloads.unwrap_or(Ok(default.workloads))?,
            targets: targets.collect::<Result<_, _>>()?,
            limits: Limits {
                cap: within(file.limits.cap_seconds, "cap-seconds", 1..=86_400)?
                    .map_or(default.limits.cap, Duration::from_secs),
                bytes_per_day: file
                    .limits
                    .megabytes_per_day
                    .map(|megabytes| megabytes.saturating_mul(1_000_000)),
            },
            settings: Settings {
                tree_files: within(file.folder_index.files, "files", 1..=10_000_000)?,
                band_bytes: within(file.time_machine.band_mebibytes, "band-mebibytes", 1..=256)?
                    .map_or(default.settings.band_bytes, |mebibytes| mebibytes << 20),
                free_floor: within(file.limits.free_floor_percent, "free-floor-percent", 0.0..=90.0)?
                    .map_or(default.settings.free_floor, |percent| percent / 100.0),
                operations_per_second: within(
                    file.limits.operations_per_second,
                    "operations-per-second",
                    1..=1_000_000,
                )?,
                ..default.settings
            },
            premises: Premises::from_file(file.verdict, file.mix)?,
            schedule: file.schedule.read()?,
            sampling: file.sampling.read()?,
            web: file.web.read()?,
            log: file.log.read()?,
            telemetry: file.telemetry.read()?,
        })
    }
}

fn known_workload(name: toml::Spanned<String>) -> Result<String, Wrong> {
    if workload(name.get_ref()).is_some() {
        return Ok(name.into_inner());
    }
    let names: Vec<&str> = everything().map(Workload::name).collect();
    let message =
        format!("there is no workload `{}`{}", name.get_ref(), did_you_mean(name.get_ref(), &names));
    Err(Wrong { at: name.span().start, message })
}

fn target_of(name: &toml::Spanned<String>, target: FileTarget) -> Result<Target, Wrong> {
    let wrong_name = |error: longhaul_measure::model::TargetNameError| Wrong {
        at: name.span().start,
        message: error.to_string(),
    };
    let parsed: TargetName = name.get_ref().parse().map_err(wrong_name)?;
    if !target.path.get_ref().is_absolute() {
        let message = format!("the path of target `{parsed}` has to begin with `/`");
        return Err(Wrong { at: target.path.span().start, message });
    }
    Ok(Target { name: parsed, path: target.path.into_inner(), role: target.role.unwrap_or(Role::Share) })
}

fn within<T: PartialOrd + std::fmt::Display>(
    value: Option<toml::Spanned<T>>,
    key: &str,
    range: std::ops::RangeInclusive<T>,
) -> Result<Option<T>, Wrong> {
    match value {
        Some(value) if !range.contains(value.get_ref()) => Err(Wrong {
            at: value.span().start,
            message: format!("`{key}` has to be between {} and {}", range.start(), range.end()),
        }),
        value => Ok(value.map(toml::Spanned::into_inner)),
    }
}

/// Adds the nearest known key to "unknown field `x`, expected one of `a`, `b`".
fn with_nearest_key(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((unknown, known)) if message.starts_with("unknown field") => {
            format!("unknown key `{unknown}`{}", did_you_mean(unknown, known))
        }
        _ => message.to_owned(),
    }
}

fn did_you_mean(word: &str, known: &[&str]) -> String {
    let nearest =
        known.iter().max_by(|a, b| strsim::jaro_winkler(word, a).total_cmp(&strsim::jaro_winkler(word, b)));
    match nearest {
        Some(nearest) if strsim::jaro_winkler(word, nearest) > 0.7 => format!("; did you mean `{nearest}`?"),
        _ => format!("; known are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("c.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_sample_says_nothing_but_the_defaults() {
        assert_eq!(parse(SAMPLE), Ok(Config::default()));
    }

    #[test]
    fn the_sample_without_its_comment_signs_is_valid_and_names_every_key() {
        let uncommented: String = SAMPLE
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        let config = parse(&uncommented).unwrap();
        assert_eq!(config.targets.len(), 3);
        assert!(config.database.is_some() && config.limits.bytes_per_day.is_some());
        assert_eq!(config.premises.mix.len(), 5);
        assert!(config.settings.tree_files.is_some() && config.schedule.rules.quiet.is_some());
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        assert_eq!(config.workloads, names, "the sample lists every workload");
    }

    #[test]
    fn a_classic_can_be_added_to_rounds_in_both_manners() {
        let config = parse("workloads = [\"dd\", \"time-machine\", \"bonnie-as-original\"]").unwrap();
        assert_eq!(config.workloads, ["dd", "time-machine", "bonnie-as-original"]);
        assert!(parse("workloads = [\"blogbnch\"]").unwrap_err().contains("did you mean `blogbench`?"));
    }

    #[test]
    fn no_section_has_to_be_there() {
        assert_eq!(parse(""), Ok(Config::default()));
        let sections = SAMPLE.lines().filter(|line| line.starts_with('['));
        for section in sections {
            assert_eq!(parse(section), Ok(Config::default()), "{section}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
        assert_eq!(
            parse("scale = \"quick\"\n[limits]\ncap-second = 3\n").unwrap_err(),
            "c.toml:3: unknown key `cap-second`; did you mean `cap-seconds`?"
        );
        assert_eq!(
            parse("\nworkloads = [\n  \"photo-bach\"]").unwrap_err(),
            "c.toml:3: there is no workload `photo-bach`; did you mean `photo-batch`?"
        );
    }

    #[test]
    fn the_page_is_on_one_other_address_at_most_and_never_on_all_of_them() {
        let address = |text: &str| parse(&format!("[web]\naddress = \"{text}\""));
        assert_eq!(address("192.168.1.5").unwrap().web.address, Some([192, 168, 1, 5].into()));
        assert!(address("fd00::5").unwrap().web.address.is_some_and(|address| address.is_ipv6()));
        for wrong in ["0.0.0.0", "::", "nas.local", ""] {
            assert!(address(wrong).unwrap_err().starts_with("c.toml:2: `address`"), "{wrong}");
        }
    }

    #[test]
    fn values_out_of_range_and_bad_targets_are_refused_at_their_line() {
        assert!(parse("[limits]\n\ncap-seconds = 0").unwrap_err().starts_with("c.toml:3: `cap-seconds`"));
        assert!(parse("[targets.smb]\npath = \"media\"").unwrap_err().starts_with("c.toml:2: the path"));
        assert!(parse("[targets.\"a/b\"]\npath = \"/x\"").unwrap_err().starts_with("c.toml:1: `a/b` is not"));
        assert!(parse("scale = ").unwrap_err().starts_with("c.toml:1: "));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "[a-z\\[\\]=.\"\n0-9#-]{0,200}") {
            let _ = parse(&text);
        }
    }
}
