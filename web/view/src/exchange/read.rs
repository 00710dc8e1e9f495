//! Reads and validates an exchange file of another user.

use longhaul_analysis::summary::Estimate;
use serde_json::Value;

use super::file::{Exchange, ExchangedComparison, KIND, SCHEMA};

/// Maximum size of a file in bytes. A year of ten targets needs far less.
pub const MAX_FILE_BYTES: usize = 8 << 20;
/// Maximum length of a name or activity in a file, in characters.
const MAX_TEXT_CHARS: usize = 200;

/// Error for a file that cannot be read as an exchange file. The messages continue a sentence that names the file.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The file is not JSON, or it is truncated.
    #[error(
        "it is not JSON, or its end is missing ({0}): ask for the file again; `longhaul report --json FILE` writes it"
    )]
    InvalidJson(serde_json::Error),
    /// The file is JSON of another kind.
    #[error("it is JSON, but not from `longhaul report --json`: its `kind` is {0}, not \"{KIND}\"")]
    Foreign(String),
    /// The file was written by a newer longhaul.
    #[error(
        "it has format version {found}, but this longhaul reads versions up to {SCHEMA}; a newer longhaul reads it"
    )]
    UnsupportedSchema {
        /// Format version of the file.
        found: u64,
    },
    /// The file has a known format version, but a field is missing or has the wrong type.
    #[error("it is damaged: {0}")]
    Damaged(serde_json::Error),
    /// A figure has an impossible value.
    #[error("it contains an impossible value: {0}")]
    InvalidValue(String),
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error("it has {0} bytes; a file of `longhaul report --json` has at most {MAX_FILE_BYTES}")]
    TooLarge(usize),
}

/// Parses and validates the text of an exchange file.
///
/// # Errors
///
/// Returns an error unless the text is a valid file of `longhaul report --json` with a supported format version.
pub fn read(text: &str) -> Result<Exchange, ExchangeError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(ExchangeError::TooLarge(text.len()));
    }
    let value: Value = serde_json::from_str(text).map_err(ExchangeError::InvalidJson)?;
    match value.get("kind") {
        Some(Value::String(kind)) if kind == KIND => {}
        Some(kind) => return Err(ExchangeError::Foreign(shortened(&kind.to_string()))),
        None => return Err(ExchangeError::Foreign("missing".to_owned())),
    }
    // The version is checked before the other fields, so that a newer file is not reported as damaged.
    match value.get("schema").and_then(Value::as_u64) {
        Some(found) if found > u64::from(SCHEMA) => return Err(ExchangeError::UnsupportedSchema { found }),
        Some(_) | None => {}
    }
    let exchange = serde_json::from_value(value).map_err(ExchangeError::Damaged)?;
    check(&exchange).map_err(ExchangeError::InvalidValue)?;
    Ok(exchange)
}

fn shortened(text: &str) -> String {
    crate::charts::svg::truncated(text, 40)
}

fn check(exchange: &Exchange) -> Result<(), String> {
    if !(exchange.threshold > 1.0 && exchange.threshold < 100.0) {
        return Err(format!("threshold {}", exchange.threshold));
    }
    for pair in &exchange.pairs {
        for claim in pair.headline.iter().chain(&pair.tasks) {
            check_comparison(claim)?;
        }
    }
    for times in &exchange.times {
        let (low, high) = times.daily_range.unzip();
        for seconds in [times.median, low, high, times.p95].into_iter().flatten() {
            // Charts of times have a logarithmic axis, so times must be positive.
            if !(seconds.is_finite() && seconds > 0.0) {
                return Err(format!("{} takes {seconds} s", shortened(&times.key)));
            }
        }
    }
    for speed in exchange.scores.iter().filter_map(|scores| scores.speed) {
        check_estimate("speed", speed)?;
    }
    let longest = all_texts(exchange).map(|word| word.chars().count()).max();
    match longest {
        Some(longest) if longest > MAX_TEXT_CHARS => Err(format!("a name of {longest} characters")),
        Some(_) | None => Ok(()),
    }
}

fn check_comparison(claim: &ExchangedComparison) -> Result<(), String> {
    let key = shortened(&claim.key);
    if !(claim.alpha > 0.0 && claim.alpha < 1.0) {
        return Err(format!("{key} has alpha {}", claim.alpha));
    }
    match claim.ratio {
        Some(ratio) => check_estimate(&key, ratio),
        None if claim.verdict.is_decided() => Err(format!("{key} is decided without a ratio")),
        None => Ok(()),
    }
}

fn check_estimate(key: &str, estimate: Estimate) -> Result<(), String> {
    let Estimate { value, low, high, days } = estimate;
    let is_valid = low > 0.0 && low <= value && value <= high && high.is_finite() && days > 0;
    if is_valid { Ok(()) } else { Err(format!("{key}: {value} within {low} to {high}, {days} days")) }
}

fn all_texts(exchange: &Exchange) -> impl Iterator<Item = &str> {
    let targets = exchange.targets.iter().flat_map(|target| {
        [Some(target.name.as_str()), target.protocol.as_deref(), target.counted_from.as_deref()]
            .into_iter()
            .flatten()
    });
    let pairs = exchange.pairs.iter().flat_map(|pair| {
        let claims = pair.headline.iter().chain(&pair.tasks);
        let activities = claims.flat_map(|claim| [claim.key.as_str(), claim.activity.as_str()]);
        [pair.a.as_str(), pair.b.as_str()].into_iter().chain(pair.less_reliable.as_deref()).chain(activities)
    });
    let times = exchange
        .times
        .iter()
        .flat_map(|times| [times.key.as_str(), times.activity.as_str(), times.target.as_str()]);
    let scores = exchange.scores.iter().map(|scores| scores.target.as_str());
    targets.chain(pairs).chain(times).chain(scores)
}
