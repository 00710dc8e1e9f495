//! Turns a new summary into events: the first result, and verdicts.

use std::collections::BTreeMap;

use longhaul_analysis::summary::{PairSummary, WeeklySummary};
use longhaul_model::{ComparedPair, NotificationEvent, Timestamp};

use super::occurrence::Occurrence;

/// State of a verdict that is open again.
const OPEN: &str = "open";

/// Result of a pair, as far as it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PairResult {
    compared: ComparedPair,
    /// Verdict in a word: the better target, or that no difference matters. `None`: it is not decided.
    verdict: Option<String>,
    /// True if the rounds made so far show a difference.
    has_difference: bool,
}

/// Returns what a summary says for the first time, compared with the stored state of what was reported. `now` makes each
/// change of a verdict unique.
pub fn result_events(
    weekly: &WeeklySummary,
    state: &BTreeMap<String, String>,
    now: Timestamp,
) -> Vec<Occurrence> {
    let results = weekly.pairs.iter().filter_map(pair_result);
    results.filter_map(|result| result_event(&result, state, now)).collect()
}

fn pair_result(pair: &PairSummary) -> Option<PairResult> {
    let headline = pair.headline.as_ref()?;
    let word =
        || pair.winner().map_or_else(|| "no-difference".to_owned(), |winner| format!("better-{winner}"));
    Some(PairResult {
        compared: ComparedPair { a: pair.a.clone(), b: pair.b.clone() },
        verdict: headline.verdict.is_decided().then(word),
        has_difference: headline.so_far.ratio.is_some_and(|ratio| ratio.is_difference()),
    })
}

fn result_event(result: &PairResult, state: &BTreeMap<String, String>, now: Timestamp) -> Option<Occurrence> {
    let compared = result.compared.clone();
    let verdict_key = format!("verdict:{}:{}", compared.a, compared.b);
    // Without its time, so that only the verdict itself is compared.
    let reported = state.get(&verdict_key).map(|value| value.split('@').next().unwrap_or_default());
    let event = match (reported, result.verdict.as_deref()) {
        (None | Some(OPEN), Some(_)) => NotificationEvent::VerdictReached(compared),
        (Some(reported), Some(verdict)) if reported != verdict => NotificationEvent::VerdictChanged(compared),
        (Some(reported), None) if reported != OPEN => NotificationEvent::VerdictChanged(compared),
        (None, None) => return first_result(result, state),
        (Some(_), _) => return None,
    };
    let verdict = result.verdict.as_deref().unwrap_or(OPEN);
    Some(Occurrence::reported(event, &verdict_key, format!("{verdict}@{}", now.as_us())))
}

fn first_result(result: &PairResult, state: &BTreeMap<String, String>) -> Option<Occurrence> {
    let ComparedPair { a, b } = &result.compared;
    let key = format!("first-result:{a}:{b}");
    let event = NotificationEvent::FirstResult(result.compared.clone());
    let is_new = result.has_difference && !state.contains_key(&key);
    is_new.then(|| Occurrence::reported(event, &key, "reported".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a pair over these results, each with a verdict and a difference so far. Returns the kinds of the events.
    fn kinds(results: &[(Option<&str>, bool)]) -> Vec<&'static str> {
        let (mut state, mut found, mut keys) = (BTreeMap::new(), vec![], vec![]);
        for (time, (verdict, has_difference)) in (0..).zip(results) {
            let result = PairResult {
                compared: ComparedPair { a: "nfs".parse().unwrap(), b: "smb".parse().unwrap() },
                verdict: verdict.map(str::to_owned),
                has_difference: *has_difference,
            };
            let event = result_event(&result, &state, Timestamp::from_us(time));
            if let Some(Occurrence { key, event: Some(event), state: change }) = event {
                state.insert(change.key, change.value.unwrap());
                found.push(event.kind().name());
                keys.push(key);
            }
        }
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all, "each event has a key of its own");
        found
    }

    #[test]
    fn first_result_and_verdict_are_reported_once() {
        let nfs = Some("better-nfs");
        let results = [(None, false), (None, true), (None, false), (None, true), (nfs, true), (nfs, true)];
        assert_eq!(kinds(&results), ["first-result", "verdict-reached"]);
    }

    #[test]
    fn changed_verdict_is_reported_each_time() {
        let (nfs, smb, equal) = (Some("better-nfs"), Some("better-smb"), Some("no-difference"));
        let results = [(nfs, true), (smb, true), (equal, false), (None, false), (None, true), (nfs, true)];
        let expected =
            ["verdict-reached", "verdict-changed", "verdict-changed", "verdict-changed", "verdict-reached"];
        assert_eq!(kinds(&results), expected);
    }
}
