//! The results of the last rounds on each target, round by round.

use std::iter::once;

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{RecentRounds, RoundState, SLOW_FACTOR};
use longhaul_model::RoundRecord;

use crate::table::Table;
use crate::time;
use crate::units::decimal;

/// Number of rounds that are shown.
pub const ROUNDS_SHOWN: usize = 60;

/// States that have a mark, with their words, from good to bad.
pub const STATES: [(RoundState, &str); 4] = [
    (RoundState::Ok, "ok"),
    (RoundState::Slow, "slow"),
    (RoundState::Failed, "failed"),
    (RoundState::Missed, "missed"),
];

/// Words for a round without this target, which has no mark.
const ABSENT: &str = "not in this round";

/// Words for the number of rounds without this target.
const WITHOUT_TARGET: &str = "without it";

/// Returns the word of a state.
pub fn word(state: RoundState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or(ABSENT, |(_, word)| word)
}

/// Returns how many rounds are in each state, leaving out states without a round: `58 ok, 2 failed`.
pub fn counts(rounds: &RecentRounds<'_>) -> String {
    let count = |state: RoundState| rounds.rounds.iter().filter(|(_, found)| *found == state).count();
    let states = STATES.into_iter().chain(once((RoundState::Absent, WITHOUT_TARGET)));
    let counted = states.map(|(state, word)| (count(state), word)).filter(|(count, _)| *count > 0);
    counted.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Returns what the strip of a target shows, as a sentence.
pub fn description(rounds: &RecentRounds<'_>) -> String {
    let latest = rounds.rounds.last().map_or("no round yet", |(_, state)| word(*state));
    format!("{}, last {} rounds: {}. Latest: {latest}.", rounds.target, rounds.rounds.len(), counts(rounds))
}

/// Returns the start of a round in a few characters: `25 Nov 18:00`.
pub fn started(round: &RoundRecord, zone: &TimeZone) -> String {
    time::zoned(round.started_us, zone)
        .map_or_else(|| round.started_us.as_us().to_string(), |at| at.strftime("%-d %b %H:%M").to_string())
}

/// Returns what the marks mean, as a sentence.
pub fn explanation() -> String {
    format!(
        "Slow: the tasks took more than {} times as long as usual on this target. Missed: the round was skipped, void, or the target \
         was unavailable. A gap: the target was not part of the round: it is a baseline, was added later or removed before, or the \
         round was cut short before its turn.",
        decimal(SLOW_FACTOR, 1)
    )
}

/// Returns the rounds that were not ok on at least one target, newest first.
pub fn table(all: &[RecentRounds<'_>], zone: &TimeZone) -> Table {
    let names: Vec<&str> = all.iter().map(|rounds| rounds.target.as_str()).collect();
    let mut table = Table::new("Rounds that were not ok").words(["round", "start"]).words(names);
    let shown = all.first().map_or(0, |rounds| rounds.rounds.len());
    for index in (0..shown).rev() {
        let states: Vec<RoundState> =
            all.iter().filter_map(|rounds| Some(rounds.rounds.get(index)?.1)).collect();
        if states.iter().all(|state| matches!(state, RoundState::Ok | RoundState::Absent)) {
            continue;
        }
        let round = all[0].rounds[index].0;
        let start = [round.number.to_string(), started(round, zone)].into_iter();
        table.row(start.chain(states.into_iter().map(|state| word(state).to_owned())));
    }
    table
}
