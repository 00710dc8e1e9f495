//! Reads a file of another user. Its content is not trusted.

use longhaul_analysis::summary::Week;
use longhaul_model::{MAX_METRICS, Outcome, all_metrics};
use serde::Deserialize;

use crate::build::{PHASES, ShareBuilder};
use crate::share::{FORMAT, OTHER, SCHEMA, SharedResults, SharedRun, machine_label};

/// Maximum size of a file in bytes. A year of hourly rounds on four targets needs half of it.
pub const MAX_FILE_BYTES: usize = 64 << 20;
/// Maximum number of targets. Figures are computed for each pair of them.
const MAX_TARGETS: usize = 32;
/// Maximum number of epochs, plans and phases.
const MAX_ENTRIES: usize = 1000;
/// Maximum number of runs that all rounds plan, whose order is drawn again. Ten years of hourly rounds with ten tasks on four
/// targets plan fewer.
const MAX_PLANNED_RUNS: usize = 5_000_000;
/// Maximum number of days from the first to the last round: ten years.
const MAX_DAYS: u32 = 3660;
/// Longest plausible duration of a run or phase in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;
/// First week in which longhaul existed.
const FIRST_WEEK: (i16, i8) = (2025, 1);
/// First bytes of compressed files and archives: gzip, zip, xz, zstd, bzip2.
const COMPRESSED: [&[u8]; 5] =
    [&[0x1f, 0x8b], b"PK\x03\x04", &[0xfd, b'7', b'z', b'X', b'Z'], &[0x28, 0xb5, 0x2f, 0xfd], b"BZh"];

/// Error for a file that cannot be one of another machine. The messages continue a sentence that names the file.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The file is larger than any real one.
    #[error("it is larger than {} MB, the most that is read: export it again", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The file is compressed.
    #[error(
        "it is compressed, and longhaul does not unpack files from others: unpack it, check its size and give the JSON file"
    )]
    Compressed,
    /// The end of the file is missing.
    #[error("its end is missing ({0}): copy it again")]
    Truncated(serde_json::Error),
    /// The file is not JSON.
    #[error("it is not JSON ({0}): `longhaul export share` writes a file to merge")]
    InvalidJson(serde_json::Error),
    /// The file is JSON of another kind.
    #[error(
        "it is JSON, but its `format` is not \"{FORMAT}\": `longhaul export share` writes a file to merge"
    )]
    Foreign,
    /// A newer longhaul wrote the file.
    #[error(
        "it has format version {found}, but this longhaul reads versions up to {SCHEMA}: update longhaul"
    )]
    NewerSchema {
        /// Version of the file.
        found: u64,
    },
    /// A field is missing, unknown or of the wrong type.
    #[error("it is damaged ({0}): export it again")]
    Damaged(serde_json::Error),
    /// A value is impossible.
    #[error("it has an impossible value: {0}")]
    ImpossibleValue(String),
    /// The clock of the machine was wrong.
    #[error("its clock was wrong: {0}")]
    WrongClock(String),
}

#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    schema: Option<u64>,
}

/// Reads a file. `this_week` is the current week of the reader; rounds after it are refused. `None`: not checked.
///
/// # Errors
///
/// [`ShareError`] with the reason; it never panics.
pub fn read(bytes: &[u8], this_week: Option<Week>) -> Result<SharedResults, ShareError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ShareError::TooLarge);
    }
    if COMPRESSED.iter().any(|start| bytes.starts_with(start)) {
        return Err(ShareError::Compressed);
    }
    let header: Header = serde_json::from_slice(bytes).map_err(not_json)?;
    if header.format.as_deref() != Some(FORMAT) {
        return Err(ShareError::Foreign);
    }
    if let Some(found) = header.schema.filter(|schema| *schema > SCHEMA) {
        return Err(ShareError::NewerSchema { found });
    }
    let share: SharedResults = serde_json::from_slice(bytes).map_err(ShareError::Damaged)?;
    validate(&share).map_err(ShareError::ImpossibleValue)?;
    validate_clock(&share, this_week).map_err(ShareError::WrongClock)?;
    Ok(share)
}

fn not_json(error: serde_json::Error) -> ShareError {
    match error.classify() {
        serde_json::error::Category::Eof => ShareError::Truncated(error),
        serde_json::error::Category::Data => ShareError::Damaged(error),
        serde_json::error::Category::Io | serde_json::error::Category::Syntax => {
            ShareError::InvalidJson(error)
        }
    }
}

fn require(holds: bool, problem: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.to_owned()) }
}

/// Checks that every text is from a closed set, every index exists and every number is possible. After it, no other code needs
/// to check an index.
fn validate(share: &SharedResults) -> Result<(), String> {
    let is_hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    require(is_hex(&share.seed, 16), "`seed` is not 16 hexadecimal digits")?;
    require(share.machine == machine_label(&share.seed), "`machine` does not follow from `seed`")?;
    let is_version = |b: u8| b.is_ascii_digit() || b == b'.';
    require(
        share.longhaul.len() <= 20 && share.longhaul.bytes().all(is_version),
        "`longhaul` is not a version",
    )?;
    require(share.threshold > 1.0 && share.threshold <= 2.0, "`threshold` is not from 1 to 2")?;
    require(share.family.nas.bays.is_none_or(|bays| (1..=99).contains(&bays)), "`bays` is not from 1 to 99")?;
    require(share.family.system_major.is_none_or(|major| major < 1000), "`system_major` is not below 1000")?;
    require(share.targets.len() <= MAX_TARGETS, "it has more than 32 targets")?;
    let counts = [share.epochs.len(), share.plans.len(), share.phases.len()];
    require(
        counts.iter().all(|count| *count <= MAX_ENTRIES),
        "it has more than 1000 epochs, plans or phases",
    )?;
    validate_tables(share)?;
    share.runs().try_for_each(|(_, run)| validate_run(share, run))?;
    validate_histograms(share)?;
    validate_figures(share)
}

fn validate_tables(share: &SharedResults) -> Result<(), String> {
    let is_target = |target: usize| target < share.targets.len();
    let is_task = |task: &String| task == OTHER || ShareBuilder::is_shared(task);
    require(share.epochs.iter().all(|epoch| is_target(epoch.target)), "an epoch has an unknown target")?;
    for plan in &share.plans {
        require(!plan.targets.is_empty(), "a plan has no target")?;
        require(plan.tasks.iter().all(is_task), "a plan has an unknown task")?;
        require(plan.targets.iter().copied().all(is_target), "a plan has an unknown target")?;
        require(
            plan.tasks.len() <= 100 && plan.targets.len() <= MAX_TARGETS,
            "a plan has more than 100 tasks or 32 targets",
        )?;
    }
    for phase in &share.phases {
        let is_phase = phase.phase == OTHER || PHASES.contains(&phase.phase.as_str());
        require(is_phase && is_task(&phase.task), "a phase has an unknown name or task")?;
    }
    for round in &share.rounds {
        require(round.plan < share.plans.len(), "a round has an unknown plan")?;
        require(round.minute < 24 * 60, "a round starts after minute 1439 of its day")?;
    }
    let planned = share.rounds.iter().map(|round| share.plans[round.plan].runs()).sum::<usize>();
    require(planned <= MAX_PLANNED_RUNS, "its rounds plan more than 5 million runs")
}

fn is_duration(seconds: f64) -> bool {
    (0.0..=MAX_SECONDS).contains(&seconds)
}

fn validate_run(share: &SharedResults, run: &SharedRun) -> Result<(), String> {
    require(run.epoch < share.epochs.len(), "a run has an unknown epoch")?;
    require(ShareBuilder::is_shared(&run.task), "a run has an unknown task")?;
    require(is_duration(run.seconds), "a run took a negative time or more than a day")?;
    require(run.at_ms.unsigned_abs() < 7 * 86_400_000, "a run started more than a week from its round")?;
    let has_times = run.outcome == Outcome::Ok || run.times.is_empty();
    require(has_times && run.times.len() <= MAX_METRICS, "a failed run has times, or a run has too many")?;
    let is_time = |time: &Option<f64>| time.is_none_or(|seconds| seconds > 0.0 && is_duration(seconds));
    require(run.times.iter().all(is_time), "a time is not positive or longer than a day")?;
    for phase in &run.phases {
        require(
            share.phases.get(phase.key).is_some_and(|key| key.task == run.task),
            "a run has an unknown phase",
        )?;
        require(is_duration(phase.seconds), "a phase took a negative time or more than a day")?;
    }
    Ok(())
}

fn validate_histograms(share: &SharedResults) -> Result<(), String> {
    for histogram in &share.histograms {
        let is_known = histogram.target < share.targets.len() && histogram.phase < share.phases.len();
        require(is_known, "a histogram has an unknown target or phase")?;
        let total = histogram.counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
        let last = i64::from(histogram.first) + histogram.counts.len() as i64;
        let has_buckets = (-10_000..10_000).contains(&i64::from(histogram.first)) && last < 20_000;
        require(total.is_some() && has_buckets, "a histogram has impossible buckets")?;
    }
    Ok(())
}

fn validate_figures(share: &SharedResults) -> Result<(), String> {
    for figure in &share.figures {
        let is_target = figure.a < share.targets.len() && figure.b < share.targets.len();
        let is_key =
            |key: &str| all_metrics().any(|(task, metric)| key == format!("{}/{}", task.name(), metric.name));
        require(
            is_target && (figure.key == "overall" || is_key(&figure.key)),
            "a figure has an unknown key or target",
        )?;
        let values = [figure.ln_ratio, figure.standard_error, figure.ln_e, figure.half_width.unwrap_or(0.0)];
        require(values.iter().all(|value| value.abs() < 1e6), "a figure is not a plausible number")?;
    }
    Ok(())
}

fn validate_clock(share: &SharedResults, this_week: Option<Week>) -> Result<(), String> {
    let (year, week) = FIRST_WEEK;
    let earliest = format!("{year}-W{week:02}").parse::<Week>().map_err(|error| error.to_string())?;
    if share.first_week < earliest {
        return Err(format!("its first round is in week {}, before longhaul existed", share.first_week));
    }
    let days = share.rounds.iter().map(|round| round.day).max().unwrap_or(0);
    if days > MAX_DAYS {
        return Err("more than ten years lie between its first and its last round".to_owned());
    }
    let last = Week::of_day(share.first_week.first_day() + i64::from(days));
    match this_week {
        // A day ahead of the reader is possible elsewhere on Earth.
        Some(this_week) if last.first_day() > this_week.last_day() + 1 => {
            Err(format!("its last round is in week {last}, which is in the future"))
        }
        Some(_) | None => Ok(()),
    }
}
