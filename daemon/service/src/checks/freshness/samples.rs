//! Makes samples of what writer and watchers report. Pure.

use std::time::Duration;

use longhaul_measure::checks::freshness::{FreshnessSession, MadeChange, WatchedChange};
use longhaul_measure::worker::FailureReport;
use longhaul_model::{ChangeKind, FreshnessOutcome, FreshnessSample, Protocol, TargetName, Timestamp};

/// Results of a session.
pub struct SessionResult {
    /// The session.
    pub session: FreshnessSession,
    /// Target of the writer; `None` if the changes were made on the NAS itself.
    pub writer: Option<TargetName>,
    /// Protocol of the writer's target; `None` if it is unknown or there is none.
    pub writer_protocol: Option<Protocol>,
    /// The changes; `None` for one that the NAS does not have.
    pub changes: Result<Vec<Option<MadeChange>>, FailureReport>,
    /// True for each change that the server still had at the end.
    pub confirmed: Result<Vec<bool>, FailureReport>,
    /// Reason why nothing of the session counts; `None` if it does.
    pub void: Option<String>,
    /// Time at which the session ended, for changes that were not made.
    pub ended: Timestamp,
}

/// Observations of a watcher.
pub struct WatcherResult {
    /// Target of the watcher.
    pub target: TargetName,
    /// Protocol of the target.
    pub protocol: Option<Protocol>,
    /// Observations of all changes, in the order of the session.
    pub observations: Result<Vec<WatchedChange>, FailureReport>,
}

impl SessionResult {
    /// Returns one sample for each change that a watcher looked for.
    pub fn samples(&self, watcher: &WatcherResult) -> Vec<FreshnessSample> {
        let sample = |(place, kind): (usize, &ChangeKind)| FreshnessSample {
            target: watcher.target.clone(),
            protocol: watcher.protocol.clone(),
            epoch: None,
            changed_through: self.writer.clone(),
            shares_client: shares_client(self.writer_protocol.as_ref(), watcher.protocol.as_ref()),
            round: None,
            kind: *kind,
            at: self.change(place).map_or(self.ended, |change| change.at),
            outcome: self.outcome(place, watcher).unwrap_or_else(|reason| FreshnessOutcome::Void { reason }),
        };
        self.session.kinds.iter().enumerate().map(sample).collect()
    }

    fn change(&self, place: usize) -> Option<&MadeChange> {
        self.changes.as_ref().ok()?.get(place)?.as_ref()
    }

    fn outcome(&self, place: usize, watcher: &WatcherResult) -> Result<FreshnessOutcome, String> {
        if let Some(reason) = &self.void {
            return Err(reason.clone());
        }
        let message = |report: &FailureReport| report.failure.message.clone();
        let missing = || "the worker reported too few changes".to_owned();
        let change = self.changes.as_ref().map_err(message)?.get(place).ok_or_else(missing)?;
        let change = change
            .as_ref()
            .ok_or("the NAS did not have the change at the end: it was not made, or undone")?;
        let seen = watcher.observations.as_ref().map_err(message)?.get(place).ok_or_else(missing)?;
        let is_confirmed = || match &self.confirmed {
            Ok(confirmed) if confirmed.get(place) == Some(&true) => Ok(()),
            Ok(_) => Err("another program removed or changed the file during the watch".to_owned()),
            Err(report) => Err(message(report)),
        };
        delay(change, seen, is_confirmed)
    }
}

/// Returns the time until a change was visible. That it was not counts only if the change is confirmed.
fn delay(
    change: &MadeChange,
    seen: &WatchedChange,
    is_confirmed: impl FnOnce() -> Result<(), String>,
) -> Result<FreshnessOutcome, String> {
    // Whole microseconds, as they are stored.
    let between = |earlier: u64, later: u64| Duration::from_micros(later.saturating_sub(earlier) / 1000);
    if let Some(error) = &seen.error {
        return Err(error.clone());
    }
    match (seen.seen_ns, seen.unseen_ns) {
        (Some(seen_ns), _) if seen_ns < change.began_ns => {
            Err("the state after the change was seen before the change".to_owned())
        }
        (Some(seen_ns), unseen_ns) => Ok(FreshnessOutcome::Seen {
            earliest: unseen_ns.map_or(Duration::ZERO, |unseen_ns| between(change.ended_ns, unseen_ns)),
            latest: between(change.began_ns, seen_ns),
        }),
        (None, Some(unseen_ns)) if unseen_ns > change.ended_ns => {
            is_confirmed()?;
            Ok(FreshnessOutcome::NotSeen { limit: between(change.ended_ns, unseen_ns) })
        }
        (None, _) => Err("nothing was looked at after the change".to_owned()),
    }
}

/// Returns whether a server takes requests through both mounts for those of one client: all SMB mounts of a machine
/// have one client id, and so have NFS mounts of one version.
fn shares_client(one: Option<&Protocol>, other: Option<&Protocol>) -> bool {
    match (one, other) {
        (Some(Protocol::Smb(_)), Some(Protocol::Smb(_))) => true,
        (Some(Protocol::Nfs(one)), Some(Protocol::Nfs(other))) => {
            major(one.as_ref()) == major(other.as_ref())
        }
        (Some(Protocol::Local(_)), _) | (_, Some(Protocol::Local(_))) => false,
        (one, other) => one.is_some() && one == other,
    }
}

fn major(version: Option<&String>) -> Option<char> {
    version.and_then(|version| version.chars().next())
}

#[cfg(test)]
mod tests {
    use longhaul_model::{Failure, Outcome};

    use super::*;

    const MS: u64 = 1_000_000;

    fn result(confirmed: bool) -> SessionResult {
        let change = MadeChange { began_ns: 1000 * MS, ended_ns: 1010 * MS, at: Timestamp::from_us(5) };
        SessionResult {
            session: FreshnessSession {
                id: 1,
                sandbox: ".longhaul-m-nfs".to_owned(),
                kinds: vec![ChangeKind::NewFile],
            },
            writer: "nfs".parse().ok(),
            writer_protocol: Some(Protocol::Nfs(Some("4.2".into()))),
            changes: Ok(vec![Some(change)]),
            confirmed: Ok(vec![confirmed]),
            void: None,
            ended: Timestamp::from_us(9),
        }
    }

    fn watcher(observation: WatchedChange) -> WatcherResult {
        WatcherResult {
            target: "smb".parse().unwrap(),
            protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
            observations: Ok(vec![observation]),
        }
    }

    fn outcome(result: &SessionResult, unseen_ms: Option<u64>, seen_ms: Option<u64>) -> FreshnessOutcome {
        let ns = |ms: u64| ms * MS;
        let seen = WatchedChange { unseen_ns: unseen_ms.map(ns), seen_ns: seen_ms.map(ns), error: None };
        result.samples(&watcher(seen)).remove(0).outcome
    }

    fn report(message: &str) -> FailureReport {
        let failure = Failure { operation: None, path: None, error: None, message: message.to_owned() };
        FailureReport { outcome: Outcome::Hung, failure }
    }

    fn reason(outcome: FreshnessOutcome) -> String {
        match outcome {
            FreshnessOutcome::Void { reason } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn delay_lies_between_last_unseen_and_first_seen_poll() {
        let ms = Duration::from_millis;
        let expected = FreshnessOutcome::Seen { earliest: ms(90), latest: ms(230) };
        assert_eq!(outcome(&result(true), Some(1100), Some(1230)), expected);
        // The first poll after the change shows it: the poll before began earlier than the change.
        let at_once = FreshnessOutcome::Seen { earliest: ms(0), latest: ms(60) };
        assert_eq!(outcome(&result(true), Some(960), Some(1060)), at_once);
    }

    #[test]
    fn unseen_change_counts_only_if_it_is_confirmed() {
        let limit = Duration::from_millis(58_990);
        assert_eq!(outcome(&result(true), Some(60_000), None), FreshnessOutcome::NotSeen { limit });
        assert!(reason(outcome(&result(false), Some(60_000), None)).contains("another program"));
        let unknown = SessionResult { confirmed: Err(report("EIO")), ..result(true) };
        assert_eq!(reason(outcome(&unknown, Some(60_000), None)), "EIO");
    }

    #[test]
    fn nothing_is_claimed_after_errors_and_interrupted_watches() {
        assert!(reason(outcome(&result(true), Some(900), None)).contains("nothing was looked at"));
        assert!(reason(outcome(&result(true), None, Some(900))).contains("before the change"));
        let failed =
            WatchedChange { unseen_ns: Some(60_000 * MS), seen_ns: None, error: Some("ESTALE".into()) };
        assert_eq!(reason(result(true).samples(&watcher(failed)).remove(0).outcome), "ESTALE");
        let hung = WatcherResult { observations: Err(report("hung")), ..watcher(WatchedChange::default()) };
        assert_eq!(reason(result(true).samples(&hung).remove(0).outcome), "hung");
        let absent = SessionResult { changes: Ok(vec![None]), ..result(true) };
        assert!(reason(outcome(&absent, None, Some(60_000))).contains("did not have the change"));
        let slept = SessionResult { void: Some("the machine slept".to_owned()), ..result(true) };
        assert_eq!(reason(outcome(&slept, Some(60_000), None)), "the machine slept");
    }

    #[test]
    fn mounts_of_one_client_are_recognized() {
        let (smb2, smb3) = (Protocol::Smb(Some("2.1".into())), Protocol::Smb(Some("3.1.1".into())));
        let (nfs3, nfs4) = (Protocol::Nfs(Some("3".into())), Protocol::Nfs(Some("4.2".into())));
        assert!(shares_client(Some(&smb2), Some(&smb3)) && shares_client(Some(&nfs4), Some(&nfs4)));
        assert!(!shares_client(Some(&nfs3), Some(&nfs4)) && !shares_client(Some(&smb3), Some(&nfs4)));
        assert!(!shares_client(None, None) && !shares_client(None, Some(&smb3)));
    }
}
