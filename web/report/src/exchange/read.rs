//! Reading somebody else's file: what it is not is said, what cannot be is refused.

use longhaul_measure::summary::Estimate;
use serde_json::Value;

use super::{Claim, Exchange, KIND, SCHEMA};

/// No file is larger, in bytes: a year of ten targets is far below.
pub const LARGEST: usize = 8 << 20;
/// No name or activity in a file is longer, in characters.
const LONGEST: usize = 200;

/// Why a file cannot be shown beside one's own.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// No JSON, or cut off.
    #[error(
        "it is not JSON, or its end is missing ({0}): ask for the file again; `longhaul report --json FILE` writes it"
    )]
    NoJson(serde_json::Error),
    /// Some other JSON.
    #[error("it is JSON, but not from `longhaul report --json`: its `kind` is {0}, not \"{KIND}\"")]
    Foreign(String),
    /// Made by a newer longhaul.
    #[error("it has form {found}, and this longhaul knows forms up to {SCHEMA}: a newer longhaul reads it")]
    Newer {
        /// The form of the file.
        found: u64,
    },
    /// The right form with something missing or of the wrong kind.
    #[error("it is damaged: {0}")]
    Damaged(serde_json::Error),
    /// A figure that cannot be.
    #[error("it holds a figure that cannot be: {0}")]
    Impossible(String),
    /// Larger than any such file.
    #[error("it has {0} bytes; no file of `longhaul report --json` has more than {LARGEST}")]
    TooLarge(usize),
}

/// Reads a file's text.
///
/// # Errors
///
/// For whatever is not a file of `longhaul report --json` of a form that is known here.
pub fn read(text: &str) -> Result<Exchange, ExchangeError> {
    if text.len() > LARGEST {
        return Err(ExchangeError::TooLarge(text.len()));
    }
    let value: Value = serde_json::from_str(text).map_err(ExchangeError::NoJson)?;
    match value.get("kind") {
        Some(Value::String(kind)) if kind == KIND => {}
        Some(kind) => return Err(ExchangeError::Foreign(shortened(&kind.to_string()))),
        None => return Err(ExchangeError::Foreign("missing".to_owned())),
    }
    match value.get("schema").and_then(Value::as_u64) {
        Some(found) if found > u64::from(SCHEMA) => return Err(ExchangeError::Newer { found }),
        Some(_) | None => {}
    }
    let exchange = serde_json::from_value(value).map_err(ExchangeError::Damaged)?;
    check(&exchange).map_err(ExchangeError::Impossible)?;
    Ok(exchange)
}

fn shortened(text: &str) -> String {
    crate::charts::svg::shortened(text, 40)
}

fn check(exchange: &Exchange) -> Result<(), String> {
    if !(exchange.threshold > 1.0 && exchange.threshold < 100.0) {
        return Err(format!("threshold {}", exchange.threshold));
    }
    for pair in &exchange.pairs {
        for claim in pair.headline.iter().chain(&pair.tasks) {
            check_claim(claim)?;
        }
    }
    for times in &exchange.times {
        let (low, high) = times.days_range.unzip();
        for seconds in [times.median, low, high, times.p95].into_iter().flatten() {
            if !(seconds.is_finite() && seconds > 0.0) {
                return Err(format!("{} takes {seconds} s", shortened(&times.key)));
            }
        }
    }
    for speed in exchange.scores.iter().filter_map(|scores| scores.speed) {
        check_estimate("speed", speed)?;
    }
    let longest = words(exchange).map(|word| word.chars().count()).max();
    match longest {
        Some(longest) if longest > LONGEST => Err(format!("a name of {longest} characters")),
        Some(_) | None => Ok(()),
    }
}

fn check_claim(claim: &Claim) -> Result<(), String> {
    let key = shortened(&claim.key);
    if !(claim.alpha > 0.0 && claim.alpha < 1.0) {
        return Err(format!("{key} has the chance {} of missing", claim.alpha));
    }
    match claim.ratio {
        Some(ratio) => check_estimate(&key, ratio),
        None if claim.verdict.is_decided() => Err(format!("{key} is decided without a ratio")),
        None => Ok(()),
    }
}

fn check_estimate(key: &str, estimate: Estimate) -> Result<(), String> {
    let Estimate { value, low, high, days } = estimate;
    let is_sound = low > 0.0 && low <= value && value <= high && high.is_finite() && days > 0;
    if is_sound { Ok(()) } else { Err(format!("{key}: {value} within {low} to {high}, {days} days")) }
}

fn words(exchange: &Exchange) -> impl Iterator<Item = &str> {
    let targets = exchange.targets.iter().flat_map(|target| {
        [Some(target.name.as_str()), target.protocol.as_deref(), target.settled.as_deref()]
            .into_iter()
            .flatten()
    });
    let pairs = exchange.pairs.iter().flat_map(|pair| {
        let claims = pair.headline.iter().chain(&pair.tasks);
        let activities = claims.flat_map(|claim| [claim.key.as_str(), claim.activity.as_str()]);
        [pair.a.as_str(), pair.b.as_str()].into_iter().chain(pair.fails_more.as_deref()).chain(activities)
    });
    let times = exchange
        .times
        .iter()
        .flat_map(|times| [times.key.as_str(), times.activity.as_str(), times.target.as_str()]);
    let scores = exchange.scores.iter().map(|scores| scores.target.as_str());
    targets.chain(pairs).chain(times).chain(scores)
}
