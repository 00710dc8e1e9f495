//! Turns a new summary into events: the first result, and verdicts.

use std::collections::BTreeMap;

use longhaul_analysis::summary::{Comparison, PairSummary, WeeklySummary};
use longhaul_model::{ComparedPair, NotificationEvent, Timestamp};

use super::occurrence::Occurrence;

/// State of a verdict that is open again.
const OPEN: &str = "open";

/// Returns what a summary says for the first time, compared with the stored state of what was reported. `now` makes each
/// change of a verdict unique.
pub fn result_events(
    weekly: &WeeklySummary,
    state: &BTreeMap<String, String>,
    now: Timestamp,
) -> Vec<Occurrence> {
    weekly.pairs.iter().filter_map(|pair| pair_event(pair, state, now)).collect()
}

fn pair_event(pair: &PairSummary, state: &BTreeMap<String, String>, now: Timestamp) -> Option<Occurrence> {
    let headline = pair.headline.as_ref()?;
    let compared = ComparedPair { a: pair.a.clone(), b: pair.b.clone() };
    let names = format!("{}:{}", pair.a, pair.b);
    let verdict_key = format!("verdict:{names}");
    // Without its time, so that only the verdict itself is compared.
    let reported = state.get(&verdict_key).map(|value| value.split('@').next().unwrap_or_default());
    let verdict = verdict_word(pair, headline);
    let event = match (reported, verdict.as_deref()) {
        (None | Some(OPEN), Some(_)) => NotificationEvent::VerdictReached(compared),
        (Some(reported), Some(verdict)) if reported != verdict => NotificationEvent::VerdictChanged(compared),
        (Some(reported), None) if reported != OPEN => NotificationEvent::VerdictChanged(compared),
        (None, None) => return first_result(headline, compared, state),
        (Some(_), _) => return None,
    };
    let value = format!("{}@{}", verdict.unwrap_or_else(|| OPEN.to_owned()), now.as_us());
    Some(Occurrence::reported(event, &verdict_key, value))
}

fn first_result(
    headline: &Comparison,
    compared: ComparedPair,
    state: &BTreeMap<String, String>,
) -> Option<Occurrence> {
    let key = format!("first-result:{}:{}", compared.a, compared.b);
    let is_new =
        headline.so_far.ratio.is_some_and(|ratio| ratio.is_difference()) && !state.contains_key(&key);
    is_new
        .then(|| Occurrence::reported(NotificationEvent::FirstResult(compared), &key, "reported".to_owned()))
}

/// Returns the verdict in a word: the better target, or that no difference matters. `None`: it is not decided.
fn verdict_word(pair: &PairSummary, headline: &Comparison) -> Option<String> {
    if !headline.verdict.is_decided() {
        return None;
    }
    Some(pair.winner().map_or_else(|| "no-difference".to_owned(), |winner| format!("better-{winner}")))
}
