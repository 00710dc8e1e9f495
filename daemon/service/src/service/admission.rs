//! Decides whether a round may run, and on which targets: pause, skip rules, budgets, this week's target.

use longhaul_corpus::slices::{DEFAULT_SLICES, slices_for_daily_rotation};
use longhaul_model::time::DAY;
use longhaul_model::{
    Event, FreeSpaceReserve, Hint, MachineSnapshot, NetworkLink, Role, Scale, Target, Timestamp,
};
use serde_json::json;

use super::target_history::TargetHistory;
use super::workers::is_unmounted;
use crate::clock::ClockReading;
use crate::command::Pause;
use crate::config::{Config, Design};
use crate::database::Database;
use crate::mounts::MountTracker;
use crate::schedule::budget::{self, Budget, Usage};
use crate::schedule::skip::{self, OTHER_LINK, SkipReason};
use crate::schedule::{baseline_interval, takes_part, weeks};
use crate::status::State;

/// Kind of the event that another network interface became the usual one.
pub(super) const USUAL_LINK: &str = "usual-link";
/// Required free space as a multiple of a corpus with enough slices for each to rest
/// a day: the corpus uses at most 1/20 of it.
const FREE_SPACE_FACTOR: u64 = 20;

/// The facts from which it follows whose turn it is.
pub(super) struct RoundFacts<'a> {
    pub(super) config: &'a Config,
    pub(super) mounts: &'a MountTracker,
    pub(super) history: &'a TargetHistory,
    /// Number of rounds started so far.
    pub(super) round_index: u64,
    /// Planned time of the first scheduled round.
    pub(super) first_scheduled: Option<Timestamp>,
}

impl RoundFacts<'_> {
    fn shares(&self) -> Vec<usize> {
        let targets = &self.config.targets;
        (0..targets.len()).filter(|index| targets[*index].role == Role::Share).collect()
    }

    /// Returns the index of this week's target. `None`: the design is not `weeks`.
    pub(super) fn week_target(&self, now: &ClockReading) -> Option<usize> {
        let shares = self.shares();
        if self.config.schedule.design != Design::Weeks || shares.is_empty() {
            return None;
        }
        let first = self.first_scheduled.unwrap_or(now.wall);
        let week = weeks::week_number(first, now.wall, now.utc_offset_seconds);
        Some(shares[weeks::target_of_week(week, shares.len())])
    }

    /// Returns the indices of the targets whose turn it is.
    fn due_targets(&self, now: &ClockReading) -> Result<Vec<usize>, SkipReason> {
        let targets = &self.config.targets;
        let interval = baseline_interval(targets);
        let is_due = |index: &usize| takes_part(targets[*index].role, self.round_index, interval);
        let all = (0..targets.len()).filter(is_due);
        let Some(expected) = self.week_target(now) else { return Ok(all.collect()) };
        self.check_mounted(&targets[expected])?;
        Ok(all.filter(|index| *index == expected || targets[*index].role == Role::Baseline).collect())
    }

    /// Checks in the mount table that this week's target is mounted.
    fn check_mounted(&self, target: &Target) -> Result<(), SkipReason> {
        if is_unmounted(target, self.mounts, self.history) {
            let text = format!("`{}` is this week's target, but nothing is mounted there", target.name);
            return Err(SkipReason::new("not-mounted", text));
        }
        Ok(())
    }
}

/// The user's pause, and what earlier rounds used.
#[derive(Default)]
pub(super) struct Admission {
    pause: Pause,
    is_safe_mode: bool,
    usage: Usage,
    /// Network interface of the last rounds.
    usual_link: Option<NetworkLink>,
    /// Number of consecutive rounds skipped because another interface was in use.
    link_skips: u32,
}

impl Admission {
    /// Creates the admission of a service in safe mode, in which no scheduled round runs.
    pub(super) fn in_safe_mode() -> Self {
        Self { is_safe_mode: true, ..Self::default() }
    }

    /// Sets the network interface of the last round, and how many rounds were skipped since because of another one.
    pub(super) fn restore_link(&mut self, link: Option<NetworkLink>, skips: u32) {
        self.usual_link = link;
        self.link_skips = skips;
    }

    /// Restores the pause of an earlier service.
    pub(super) fn restore_pause(&mut self, pause: Pause) {
        self.pause = pause;
    }

    /// Changes the pause for the user. Returns the event that records the change. `None`: nothing has changed. The end
    /// of a pause also ends the safe mode.
    pub(super) fn set_pause(&mut self, pause: Pause, now: &ClockReading) -> Option<Event> {
        self.is_safe_mode &= pause != Pause::Off;
        self.change_pause(pause, now)
    }

    /// Ends a pause whose time has passed. A safe mode stays: only the user ends it. Returns the event that records the end.
    pub(super) fn end_expired_pause(&mut self, now: &ClockReading) -> Option<Event> {
        let is_over = matches!(self.pause, Pause::Until(until) if until <= now.wall);
        if is_over { self.change_pause(Pause::Off, now) } else { None }
    }

    fn change_pause(&mut self, pause: Pause, now: &ClockReading) -> Option<Event> {
        if pause == self.pause {
            return None;
        }
        self.pause = pause;
        let (kind, detail) = match pause {
            Pause::Off => ("resume", json!({})),
            Pause::On => ("pause", json!({})),
            Pause::Until(until) => ("pause", json!({ "until_us": until })),
        };
        Some(Event { target: None, kind: kind.to_owned(), detail, at_us: now.wall })
    }

    /// Returns whether scheduled rounds and the probe pause, or the service is in safe mode.
    pub(super) fn is_paused(&self) -> bool {
        self.pause != Pause::Off || self.is_safe_mode
    }

    /// Returns whether the service is in safe mode.
    pub(super) fn is_safe_mode(&self) -> bool {
        self.is_safe_mode
    }

    /// Returns whether the schedule will go on by itself: only the user ends a safe mode or a pause without end.
    pub(super) fn continues_by_itself(&self) -> bool {
        !self.is_safe_mode && self.pause != Pause::On
    }

    /// Returns the state of the service between rounds.
    pub(super) fn state(&self, targets: &[Target]) -> State {
        match self.pause {
            _ if self.is_safe_mode => State::SafeMode,
            Pause::Until(until) => State::Paused { until_us: Some(until) },
            Pause::On => State::Paused { until_us: None },
            Pause::Off if targets.is_empty() => State::Idle,
            Pause::Off => State::Waiting,
        }
    }

    /// Returns the indices of the targets that a scheduled round measures, or the reason
    /// to skip it. Uses facts from before the round only.
    pub(super) fn admit_scheduled(
        &mut self,
        facts: &RoundFacts<'_>,
        now: &ClockReading,
        snapshot: &MachineSnapshot,
    ) -> Result<Vec<usize>, SkipReason> {
        if let Some(reason) = self.hold_reason() {
            return Err(reason);
        }
        if let Some(reason) = self.skip_reason(facts.config, now, snapshot) {
            // Other reasons, such as quiet hours, come before the interface and say nothing about it.
            match reason.code {
                OTHER_LINK => self.link_skips += 1,
                _ if snapshot.link == self.usual_link => self.link_skips = 0,
                _ => {}
            }
            return Err(reason);
        }
        // A round without a known link says nothing about the interface.
        if snapshot.link.is_some() {
            self.link_skips = 0;
            self.usual_link.clone_from(&snapshot.link);
        }
        let chosen = facts.due_targets(now)?;
        let reason = self.over_budget_reason(facts.config, &chosen, facts.config.settings.reserve);
        reason.map_or(Ok(chosen), Err)
    }

    /// Returns the reason for which no scheduled round runs until a user acts or a pause ends. `None`: there is none.
    fn hold_reason(&self) -> Option<SkipReason> {
        if self.is_safe_mode {
            let why = "longhaul crashed repeatedly; run `longhaul resume` to continue";
            return Some(SkipReason::new("safe-mode", why));
        }
        (self.pause != Pause::Off).then(|| SkipReason::new("paused", "paused by the user"))
    }

    /// Returns the indices of the targets that a requested round measures, or the reason to skip it. Only the
    /// budget can prevent it, and not an old reading of free space: the user may have freed some, and a worker
    /// reads it again before it writes.
    pub(super) fn admit_requested(
        &self,
        facts: &RoundFacts<'_>,
        now: &ClockReading,
    ) -> Result<Vec<usize>, SkipReason> {
        let chosen = facts.due_targets(now)?;
        let reason = self.over_budget_reason(facts.config, &chosen, FreeSpaceReserve::NONE);
        reason.map_or(Ok(chosen), Err)
    }

    /// Returns the rule that would skip a round now. `None`: there is none.
    pub(super) fn skip_reason(
        &self,
        config: &Config,
        now: &ClockReading,
        snapshot: &MachineSnapshot,
    ) -> Option<SkipReason> {
        let rules = &config.schedule.skip_rules;
        skip::skip_reason(rules, snapshot, self.usual_link.as_ref(), now.minute_of_day())
    }

    /// Returns the pause, rule or limit that would skip a scheduled round on all targets now. `None`: there is none.
    pub(super) fn round_blocker(
        &self,
        config: &Config,
        now: &ClockReading,
        snapshot: &MachineSnapshot,
    ) -> Option<SkipReason> {
        if let Some(reason) = self.hold_reason() {
            return Some(reason);
        }
        let all: Vec<usize> = (0..config.targets.len()).collect();
        let over_budget = || self.over_budget_reason(config, &all, config.settings.reserve);
        self.skip_reason(config, now, snapshot).or_else(over_budget)
    }

    /// Makes the current network interface the usual one after as many rounds in a row were skipped because of it as
    /// there are in a day: the machine has probably moved for good. Returns the event that records this.
    pub(super) fn adopt_link(
        &mut self,
        rounds_per_day: u64,
        snapshot: &MachineSnapshot,
        now: &ClockReading,
    ) -> Option<Event> {
        // Rounds and not hours: those of a computer that is switched off say nothing.
        if u64::from(self.link_skips) < rounds_per_day.max(1) {
            return None;
        }
        self.link_skips = 0;
        let detail = json!({ "before": self.usual_link, "after": snapshot.link });
        self.usual_link = snapshot.link.clone();
        Some(Event { target: None, kind: USUAL_LINK.to_owned(), detail, at_us: now.wall })
    }

    fn over_budget_reason(
        &self,
        config: &Config,
        chosen: &[usize],
        reserve: FreeSpaceReserve,
    ) -> Option<SkipReason> {
        let targets: Vec<Target> = chosen.iter().map(|index| config.targets[*index].clone()).collect();
        let limits = Budget {
            bytes_per_day: config.limits.bytes_per_day,
            max_time_share: config.schedule.max_time_share,
            reserve,
        };
        budget::over_budget_reason(&limits, &self.usage, &targets)
    }

    /// Reads the usage of the last 24 hours from the database, so that it survives a restart.
    pub(super) fn refresh_usage(&mut self, database: &Database, now: &ClockReading) {
        let since = now.wall - DAY;
        let read = || -> longhaul_store::Result<Usage> {
            let reader = database.reader()?;
            Ok(Usage {
                bytes: reader.bytes_since(since)?,
                max_bytes_per_round: reader.max_round_bytes_since(since)?,
                busy: reader.busy_since(since)?,
                free_space: reader.free_space()?,
                measured: now.wall,
            })
        };
        match read() {
            Ok(usage) => self.usage = usage,
            Err(error) => {
                tracing::warn!(error = error.one_line(), "the usage of the last 24 hours cannot be read")
            }
        }
    }

    /// Returns what rounds used in the last 24 hours.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the number of corpus slices that take turns: as configured, or enough for each to rest for a day
    /// if every target has ample free space, otherwise the default.
    pub(super) fn slice_count(&self, config: &Config) -> u64 {
        if let Some(slices) = config.schedule.slices {
            return slices;
        }
        let daily = slices_for_daily_rotation(config.schedule.rounds_per_day);
        // Upper estimate of the bytes of one slice of all workloads.
        let slice_bytes: u64 = match config.scale {
            Scale::Quick => 100_000_000,
            Scale::Standard => 600_000_000,
            Scale::Large => 3_000_000_000,
        };
        let needed = daily * slice_bytes * FREE_SPACE_FACTOR;
        let space = |target: &Target| self.usage.free_space.get(&target.name);
        let is_ample = |target: &Target| space(target).is_some_and(|space| space.free_bytes >= needed);
        if config.targets.iter().all(is_ample) { daily } else { DEFAULT_SLICES }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_model::{LinkKind, Power};

    use super::*;

    fn admit(admission: &mut Admission, snapshot: &MachineSnapshot) -> Result<Vec<usize>, &'static str> {
        let target = Target { name: "smb".parse().unwrap(), path: "/m/smb".into(), role: Role::Share };
        let facts = RoundFacts {
            config: &Config { targets: vec![target], ..Config::default() },
            mounts: &MountTracker::default(),
            history: &TargetHistory::default(),
            round_index: 0,
            first_scheduled: None,
        };
        let chosen = admission.admit_scheduled(&facts, &ClockReading::default(), snapshot);
        chosen.map_err(|reason| reason.code)
    }

    #[test]
    fn pause_and_safe_mode_end_with_resume() {
        let (mut admission, now) = (Admission::in_safe_mode(), ClockReading::default());
        let machine = MachineSnapshot::default();
        assert_eq!(admit(&mut admission, &machine), Err("safe-mode"));
        assert!(admission.set_pause(Pause::Off, &now).is_none(), "there was no pause");
        assert_eq!(admit(&mut admission, &machine), Ok(vec![0]));
        assert_eq!(admission.set_pause(Pause::Until(Timestamp::from_us(9)), &now).unwrap().kind, "pause");
        assert!(
            admission.set_pause(Pause::Until(Timestamp::from_us(9)), &now).is_none(),
            "nothing has changed"
        );
        assert_eq!(admit(&mut admission, &machine), Err("paused"));
        assert_eq!(admission.set_pause(Pause::Off, &now).unwrap().kind, "resume");
    }

    #[test]
    fn pause_that_is_over_does_not_end_the_safe_mode() {
        let (mut admission, now) = (Admission::in_safe_mode(), ClockReading::default());
        admission.restore_pause(Pause::Until(Timestamp::from_us(9)));
        assert!(admission.end_expired_pause(&now).is_none());
        let later = ClockReading { wall: Timestamp::from_us(9), ..now };
        assert_eq!(admission.end_expired_pause(&later).unwrap().kind, "resume");
        assert_eq!(admit(&mut admission, &MachineSnapshot::default()), Err("safe-mode"));
    }

    #[test]
    fn other_skip_reasons_do_not_reset_link_skips() {
        let on = |name: &str, battery_percent: Option<f64>| MachineSnapshot {
            link: Some(NetworkLink {
                name: name.to_owned(),
                kind: LinkKind::Wired,
                mtu: None,
                megabits: None,
            }),
            battery_percent,
            power: Some(Power::Battery),
            ..MachineSnapshot::default()
        };
        let (mut admission, now) = (Admission::default(), ClockReading::default());
        assert_eq!(admit(&mut admission, &on("en0", None)), Ok(vec![0]));
        for _ in 0..4 {
            assert!(admission.adopt_link(4, &on("en5", None), &now).is_none());
            assert_eq!(admit(&mut admission, &on("en5", None)), Err("other-link"));
            assert_eq!(admit(&mut admission, &on("en5", Some(5.0))), Err("battery"));
        }
        assert_eq!(admission.adopt_link(4, &on("en5", None), &now).unwrap().kind, "usual-link");
        assert_eq!(admit(&mut admission, &on("en5", None)), Ok(vec![0]));
    }
}
