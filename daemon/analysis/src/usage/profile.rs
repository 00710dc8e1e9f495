//! Decides for each line of the usage profile where its number comes from: configuration, counted, ordinary week.

use std::collections::BTreeMap;

use longhaul_model::{PROFILE_LINES, ProfileLine, RequestKind};
use serde::Serialize;

use super::counted::{CountedUsage, MIN_DAYS, TargetUsage};

/// Usage profile with the source of each line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageProfile {
    /// Lines in the order of the configuration.
    pub lines: Vec<UsageLine>,
    /// Number of days over which lines were counted; `None` if none was, or if the configuration sets a line.
    pub counted_days: Option<f64>,
}

/// Line of the usage profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageLine {
    /// Key in the configuration.
    pub key: &'static str,
    /// Times a week that minutes are computed with.
    pub per_week: f64,
    /// Source of the number.
    pub source: LineSource,
    /// Times a week that were counted, even if they are not used; `None` if they cannot be told.
    pub counted: Option<f64>,
    /// Reason why the line is not counted; `None` if it is.
    pub not_counted: Option<NotCounted>,
}

/// Source of a line of the usage profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineSource {
    /// The configuration.
    Configuration,
    /// Counted on the mounts.
    Counted,
    /// An ordinary week.
    OrdinaryWeek,
    /// None: the configuration has other lines, and this one is not counted.
    None,
}

/// Reason why a line is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotCounted {
    /// No target has a counter of requests.
    NoCounter,
    /// The counters do not count files that are opened.
    OpensNotCounted,
    /// No round has shown yet how many requests the task takes.
    NoTaskYet,
    /// Fewer than [`MIN_DAYS`] days were counted.
    TooFewDays,
    /// Nothing was counted.
    Unused,
    /// Requests do not show which program made them.
    NotInCounters,
}

impl UsageProfile {
    /// Returns the waits a week, by `task/metric`; empty for an ordinary week. Zero is what the configuration says is never done.
    pub fn waits_a_week(&self) -> BTreeMap<String, f64> {
        let is_own =
            |line: &UsageLine| matches!(line.source, LineSource::Configuration | LineSource::Counted);
        if !self.lines.iter().any(is_own) {
            return BTreeMap::new();
        }
        let is_used = |line: &UsageLine| line.per_week > 0.0 || line.source == LineSource::Configuration;
        let used = self.lines.iter().zip(&PROFILE_LINES).filter(|(line, _)| is_used(line));
        used.flat_map(|(line, of)| of.waits_a_week(line.per_week)).collect()
    }
}

/// Returns the usage profile. `configured` has waits a week by `task/metric`, as in the configuration.
pub fn usage_profile(configured: &BTreeMap<String, f64>, counted: &CountedUsage) -> UsageProfile {
    let lines: Vec<UsageLine> =
        PROFILE_LINES.iter().map(|line| usage_line(line, configured, counted)).collect();
    let is_counted = lines.iter().any(|line| line.source == LineSource::Counted);
    UsageProfile { lines, counted_days: (is_counted && configured.is_empty()).then_some(counted.days as f64) }
}

fn usage_line(line: &ProfileLine, configured: &BTreeMap<String, f64>, counted: &CountedUsage) -> UsageLine {
    let times = counted_times(line.key, counted);
    let given = line.waits.first().and_then(|(metric, waits)| Some(configured.get(*metric)? / waits));
    let (per_week, source) = match (given, times) {
        (Some(given), _) => (given, LineSource::Configuration),
        (None, Ok(times)) => (times, LineSource::Counted),
        (None, Err(_)) if configured.is_empty() => (line.ordinary, LineSource::OrdinaryWeek),
        (None, Err(_)) => (0.0, LineSource::None),
    };
    UsageLine { key: line.key, per_week, source, counted: times.ok(), not_counted: times.err() }
}

/// Returns the counted times a week of a line, or the reason why there are none.
fn counted_times(key: &str, counted: &CountedUsage) -> Result<f64, NotCounted> {
    let (times, has_counter, missing): (_, fn(&TargetUsage) -> bool, _) = match key {
        "folder-openings" => (
            counted.folder_openings,
            |target| target.request(RequestKind::List).is_some(),
            NotCounted::NoCounter,
        ),
        "photo-sessions" => {
            (counted.photo_sessions, |target| target.files_read.is_some(), NotCounted::OpensNotCounted)
        }
        _ => return Err(NotCounted::NotInCounters),
    };
    let has_requests = counted.targets.iter().any(|target| !target.requests.is_empty());
    match times {
        _ if !has_requests => Err(NotCounted::NoCounter),
        _ if !counted.targets.iter().any(has_counter) => Err(missing),
        _ if counted.covered_days < MIN_DAYS => Err(NotCounted::TooFewDays),
        None => Err(NotCounted::NoTaskYet),
        Some(times) if times > 0.0 => Ok(times),
        Some(_) => Err(NotCounted::Unused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::CounterSource;

    fn counted(days: usize, folder_openings: Option<f64>, photo_sessions: Option<f64>) -> CountedUsage {
        let target = TargetUsage {
            target: "nas".parse().unwrap(),
            source: CounterSource::Mountstats,
            counted_hours: 1.0,
            left_out_hours: 0.0,
            requests: [("list", 1)].into(),
            files_read: Some(1),
            read_bytes: None,
            written_bytes: None,
            requests_per_opening: None,
        };
        CountedUsage { days, covered_days: days, targets: vec![target], folder_openings, photo_sessions }
    }

    fn sources(profile: &UsageProfile) -> Vec<(f64, LineSource)> {
        profile.lines.iter().map(|line| (line.per_week, line.source)).collect()
    }

    #[test]
    fn counted_lines_replace_an_ordinary_week_after_seven_days() {
        let none = BTreeMap::new();
        let early = usage_profile(&none, &counted(6, Some(40.0), Some(2.0)));
        assert_eq!((early.waits_a_week(), early.counted_days), (BTreeMap::new(), None));
        assert_eq!(early.lines[0].not_counted, Some(NotCounted::TooFewDays));
        let late = usage_profile(&none, &counted(7, Some(40.0), None));
        assert_eq!(late.counted_days, Some(7.0));
        assert_eq!(sources(&late)[..2], [(40.0, LineSource::Counted), (3.0, LineSource::OrdinaryWeek)]);
        let waits = late.waits_a_week();
        assert_eq!((waits["folder-index/folder-cold"], waits["photo-batch/switch-cold"]), (40.0, 60.0));
        assert_eq!(waits.len(), 3);
    }

    #[test]
    fn configuration_precedes_counted_and_replaces_the_ordinary_week() {
        let configured = BTreeMap::from([("incremental-backup/backup".to_owned(), 7.0)]);
        let profile = usage_profile(&configured, &counted(28, Some(40.0), None));
        let expected = [
            (40.0, LineSource::Counted),
            (0.0, LineSource::None),
            (7.0, LineSource::Configuration),
            (0.0, LineSource::None),
            (0.0, LineSource::None),
        ];
        assert_eq!((sources(&profile), profile.counted_days), (expected.to_vec(), None));
        assert_eq!(profile.waits_a_week().len(), 2);
    }

    #[test]
    fn configured_zero_is_not_an_ordinary_week() {
        let configured = BTreeMap::from([("folder-index/folder-cold".to_owned(), 0.0)]);
        let profile = usage_profile(&configured, &CountedUsage::default());
        assert_eq!(sources(&profile)[0], (0.0, LineSource::Configuration));
        assert!(profile.waits_a_week().values().all(|waits| *waits == 0.0));
        assert!(profile.waits_a_week().contains_key("folder-index/folder-cold"));
    }

    #[test]
    fn reasons_say_why_a_line_is_not_counted() {
        let reasons = |counted: &CountedUsage| -> Vec<Option<NotCounted>> {
            usage_profile(&BTreeMap::new(), counted).lines.iter().map(|line| line.not_counted).collect()
        };
        let of = |reason| [&[Some(reason); 2][..], &[Some(NotCounted::NotInCounters); 3]].concat();
        assert_eq!(reasons(&CountedUsage::default()), of(NotCounted::NoCounter));
        assert_eq!(reasons(&counted(9, None, None)), of(NotCounted::NoTaskYet));
        assert_eq!(reasons(&counted(9, Some(0.0), Some(0.0))), of(NotCounted::Unused));
        let mut without_opens = counted(9, Some(1.0), None);
        without_opens.targets[0].files_read = None;
        assert_eq!(reasons(&without_opens)[1], Some(NotCounted::OpensNotCounted));
    }
}
