//! Turns the status of the service into events: targets that are down or back, and problems of the service itself.

use std::collections::BTreeMap;

use longhaul_model::status::{LastRound, State, Status, TargetState, TargetStatus};
use longhaul_model::time::DAY;
use longhaul_model::{DownReason, MeasuringProblem, NotificationEvent, RoundStatus, TargetName, Timestamp};

use super::conditions::{ConditionChange, ConditionState, Conditions, MAX_GAP, ObservationTime};
use super::occurrence::Occurrence;
use super::settings::Rules;

/// Prefixes of the keys in the stored state.
const TARGET_PREFIX: &str = "down:";
const PROBLEM_PREFIX: &str = "problem:";

/// Follows the status.
#[derive(Debug, Default)]
pub struct Tracker {
    targets: Conditions<TargetName>,
    problems: Conditions<MeasuringProblem>,
    /// Time of the last completed round, of the first observation, or of the last pause, later by the time asleep since then.
    last_measured: Option<Timestamp>,
    /// Time of the last observation.
    observed: Option<Timestamp>,
}

impl Tracker {
    /// Continues from the stored state of what was reported.
    pub fn restored(state: &BTreeMap<String, String>) -> Self {
        let mut tracker = Self::default();
        for (key, value) in state {
            let since = Timestamp::from_us(value.parse().unwrap_or(0));
            if let Some(Ok(name)) = key.strip_prefix(TARGET_PREFIX).map(str::parse) {
                tracker.targets.restore(name, since);
            }
            if let Some(problem) = key.strip_prefix(PROBLEM_PREFIX).and_then(MeasuringProblem::from_name) {
                tracker.problems.restore(problem, since);
            }
        }
        tracker
    }

    /// Takes the current status. Returns what has happened.
    pub fn observe(&mut self, status: &Status, rules: &Rules) -> Vec<Occurrence> {
        let observed = ObservationTime { now: status.now_us, delay: rules.down_after };
        let mut found: Vec<Occurrence> = status
            .targets
            .iter()
            .filter_map(|target| self.observe_target(target, status, observed))
            .collect();
        found.extend(self.observe_problems(status, observed));
        let is_known = |name: &TargetName| status.targets.iter().any(|target| target.name == *name);
        let removed = self.targets.retain(is_known).into_iter();
        found.extend(removed.map(|name| Occurrence::silent(&format!("{TARGET_PREFIX}{name}"), None)));
        found
    }

    fn observe_target(
        &mut self,
        target: &TargetStatus,
        status: &Status,
        observed: ObservationTime,
    ) -> Option<Occurrence> {
        let (reason, observation) = target_condition(target, status);
        let change = self.targets.observe(&target.name, observation, observed)?;
        let (name, key) = (target.name.clone(), format!("{TARGET_PREFIX}{}", target.name));
        Some(match change {
            ConditionChange::Began(since) => {
                let event = NotificationEvent::TargetDown { target: name, reason, since };
                Occurrence::reported(event, &key, since.as_us().to_string())
            }
            ConditionChange::Ended(since) => {
                let event = NotificationEvent::TargetBack { target: name, since };
                Occurrence::ended(event, &key, &since.as_us().to_string())
            }
        })
    }

    fn observe_problems(&mut self, status: &Status, observed: ObservationTime) -> Vec<Occurrence> {
        let no_rounds = self.no_rounds(status);
        let observe = |problem: MeasuringProblem| {
            let observation = match problem {
                MeasuringProblem::NoRounds => no_rounds,
                other => problem_condition(other, status),
            };
            let change = self.problems.observe(&problem, observation, observed)?;
            let key = format!("{PROBLEM_PREFIX}{}", problem.name());
            Some(match change {
                ConditionChange::Began(since) => {
                    let event = NotificationEvent::CannotMeasure { problem, since };
                    Occurrence::reported(event, &key, since.as_us().to_string())
                }
                ConditionChange::Ended(since) => {
                    let event = NotificationEvent::MeasuringAgain { problem, since };
                    Occurrence::ended(event, &key, &since.as_us().to_string())
                }
            })
        };
        MeasuringProblem::ALL.into_iter().filter_map(observe).collect()
    }

    /// Returns whether no round was completed for a day, though rounds are wanted.
    fn no_rounds(&mut self, status: &Status) -> ConditionState {
        let completed =
            status.last_round.as_ref().filter(|round| is_completed(round)).map(|round| round.ended_us);
        let gap = self.observed.replace(status.now_us).map(|before| status.now_us.since(before));
        let asleep = gap.filter(|gap| *gap > MAX_GAP).unwrap_or_default();
        // Not the start of the service: the tracker may be newer, after the database was replaced or a channel was added.
        let measured = self.last_measured.unwrap_or(status.now_us).max(completed.unwrap_or(Timestamp::MIN));
        let mut last = measured + asleep;
        let is_wanted =
            matches!(status.state, State::Waiting | State::Measuring) && !status.targets.is_empty();
        if !is_wanted || last > status.now_us {
            last = status.now_us;
        }
        self.last_measured = Some(last);
        match is_wanted && status.now_us.since(last) >= DAY {
            true => ConditionState::Holds(last),
            false => ConditionState::Absent,
        }
    }
}

/// Returns whether the service could measure now, as far as its status says.
pub fn can_measure(status: &Status) -> bool {
    let is_running = match status.state {
        State::Measuring | State::Waiting | State::Paused { .. } | State::Idle => true,
        State::SafeMode | State::Stopping => false,
    };
    let problems = [MeasuringProblem::NotStored, MeasuringProblem::DatabaseLost];
    is_running && problems.iter().all(|problem| problem_condition(*problem, status) == ConditionState::Absent)
}

fn is_completed(round: &LastRound) -> bool {
    match round.status {
        RoundStatus::Ok | RoundStatus::CutShort => true,
        RoundStatus::Void | RoundStatus::Skipped => false,
    }
}

fn target_condition(target: &TargetStatus, status: &Status) -> (DownReason, ConditionState) {
    let stall = status.stalls.iter().find(|stall| stall.target == target.name && stall.ended_us.is_none());
    match (&target.state, stall) {
        (TargetState::Hung { since_us, .. }, _) => (DownReason::Hung, ConditionState::Holds(*since_us)),
        // During a pause shares may be unmounted on purpose.
        (TargetState::Unavailable { is_now: true, .. }, _)
            if matches!(status.state, State::Paused { .. }) =>
        {
            (DownReason::Unavailable, ConditionState::Unknown)
        }
        (TargetState::Unavailable { .. }, _) => {
            (DownReason::Unavailable, ConditionState::Holds(status.now_us))
        }
        (TargetState::Blocked { .. }, _) => (DownReason::Blocked, ConditionState::Holds(status.now_us)),
        (_, Some(stall)) => (DownReason::Hung, ConditionState::Holds(stall.started_us)),
        (TargetState::Measuring { .. }, None) => (DownReason::Hung, ConditionState::Unknown),
        (TargetState::Waiting { .. }, None) => (DownReason::Hung, ConditionState::Absent),
    }
}

fn problem_condition(problem: MeasuringProblem, status: &Status) -> ConditionState {
    if problem == MeasuringProblem::SafeMode && status.state == State::SafeMode {
        return ConditionState::Holds(status.started_us);
    }
    let raised = status.problems.iter().find(|raised| raised.code == problem.name());
    raised.map_or(ConditionState::Absent, |raised| ConditionState::Holds(raised.since_us))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longhaul_model::Role;
    use longhaul_model::status::{DatabaseStatus, Problem};

    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_us(minutes * 60_000_000)
    }

    fn status(minutes: i64, state: TargetState) -> Status {
        let target = TargetStatus {
            name: "smb".parse().unwrap(),
            path: "/m".to_owned(),
            role: Role::Share,
            protocol: None,
            state,
            last_runs: None,
            failed_tasks: vec![],
            bytes_last_24h: 0,
            bytes_limit: None,
            probe: Default::default(),
        };
        let database = DatabaseStatus { path: "/d".into(), bytes: None };
        Status { started_us: at(0), targets: vec![target], ..Status::new(database, at(minutes)) }
    }

    fn waiting() -> TargetState {
        TargetState::Waiting { reason: String::new(), until_us: None }
    }

    fn unavailable() -> TargetState {
        TargetState::Unavailable { reason: "/m is not mounted".to_owned(), is_now: true }
    }

    fn kinds(found: &[Occurrence]) -> Vec<&'static str> {
        found.iter().filter_map(|found| Some(found.event.as_ref()?.kind().name())).collect()
    }

    #[test]
    fn target_is_reported_as_down_and_as_back_once() {
        let (mut tracker, rules) = (Tracker::default(), Rules::default());
        let mut observe = |minutes, state| kinds(&tracker.observe(&status(minutes, state), &rules));
        (0..10).for_each(|minutes| assert!(observe(minutes, unavailable()).is_empty()));
        assert_eq!(observe(10, unavailable()), ["target-down"]);
        assert!(observe(20, unavailable()).is_empty());
        let measuring = TargetState::Measuring { workload: "photo-batch".to_owned() };
        assert!(observe(25, measuring).is_empty());
        assert!(observe(30, waiting()).is_empty());
        assert_eq!(observe(32, waiting()), ["target-back"]);
        assert!(observe(40, waiting()).is_empty());
    }

    #[test]
    fn share_that_is_unmounted_during_a_pause_is_not_down() {
        let (mut tracker, rules) = (Tracker::default(), Rules::default());
        let paused =
            |minutes| Status { state: State::Paused { until_us: None }, ..status(minutes, unavailable()) };
        assert!((0..30).all(|minutes| tracker.observe(&paused(minutes), &rules).is_empty()));
    }

    #[test]
    fn hang_counts_from_the_start_of_the_operation() {
        let (mut tracker, rules) = (Tracker::default(), Rules::default());
        let hung = TargetState::Hung { operation: Some("read".to_owned()), since_us: at(1) };
        let found = tracker.observe(&status(11, hung), &rules);
        let expected = NotificationEvent::TargetDown {
            target: "smb".parse().unwrap(),
            reason: DownReason::Hung,
            since: at(1),
        };
        assert_eq!(found[0].event.as_ref(), Some(&expected));
        assert_eq!(found[0].key, "target-down:down:smb:60000000");
    }

    #[test]
    fn restart_neither_repeats_nor_forgets() {
        let state = BTreeMap::from([("down:smb".to_owned(), "0".to_owned())]);
        let rules = Rules::default();
        let mut tracker = Tracker::restored(&state);
        assert!(tracker.observe(&status(20, unavailable()), &rules).is_empty());
        tracker.observe(&status(30, waiting()), &rules);
        let back = tracker.observe(&status(31, waiting()), &rules);
        assert_eq!((kinds(&back), &back[0].state.value), (vec!["target-back"], &None));
    }

    #[test]
    fn removed_target_is_forgotten_silently() {
        let state = BTreeMap::from([("down:old".to_owned(), "0".to_owned())]);
        let found = Tracker::restored(&state).observe(&status(20, waiting()), &Rules::default());
        assert_eq!(found, [Occurrence::silent("down:old", None)]);
    }

    #[test]
    fn lasting_problem_of_the_service_is_reported() {
        let (mut tracker, rules) = (Tracker::default(), Rules::default());
        let problem =
            Problem { code: "not-stored".to_owned(), text: "disk full".to_owned(), since_us: at(5) };
        let with_problem = |minutes| Status { problems: vec![problem.clone()], ..status(minutes, waiting()) };
        assert!(tracker.observe(&with_problem(6), &rules).is_empty());
        assert_eq!(kinds(&tracker.observe(&with_problem(15), &rules)), ["cannot-measure"]);
        tracker.observe(&status(16, waiting()), &rules);
        assert_eq!(kinds(&tracker.observe(&status(17, waiting()), &rules)), ["measuring-again"]);
    }

    #[test]
    fn day_without_a_round_is_reported_unless_paused() {
        let rules = Rules { down_after: Duration::ZERO, ..Rules::default() };
        let (mut waits, mut paused) = (Tracker::default(), Tracker::default());
        let mut reported = vec![];
        for minute in 0..30 * 60 {
            reported.extend(kinds(&waits.observe(&status(minute, waiting()), &rules)));
            let state = State::Paused { until_us: None };
            let found = paused.observe(&Status { state, ..status(minute, waiting()) }, &rules);
            assert!(found.is_empty());
        }
        assert_eq!(reported, ["cannot-measure"]);
    }

    #[test]
    fn day_without_a_round_begins_with_the_first_observation() {
        let rules = Rules { down_after: Duration::ZERO, ..Rules::default() };
        let found = Tracker::default().observe(&status(30 * 60, waiting()), &rules);
        assert!(found.is_empty(), "the service may have measured for all its 30 hours: {found:?}");
    }

    #[test]
    fn weekend_asleep_is_no_day_without_a_round() {
        let rules = Rules { down_after: Duration::ZERO, ..Rules::default() };
        let mut tracker = Tracker::default();
        let days = [0..60, 62 * 60..63 * 60].into_iter().flatten();
        let reported: Vec<_> =
            days.flat_map(|minute| kinds(&tracker.observe(&status(minute, waiting()), &rules))).collect();
        assert!(reported.is_empty(), "{reported:?}");
    }
}
