//! Notifications: what the service tells its user, and what each is about.

pub mod status;

use serde::{Deserialize, Serialize};

use crate::names::stored_names;
use crate::{TargetName, Timestamp};

/// Kind of a notification. The names are also the values of `events` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NotificationKind {
    /// A target has been hung or unavailable for some minutes.
    TargetDown,
    /// A target that was reported as down can be used again.
    TargetBack,
    /// The rounds made so far show a difference for the first time.
    FirstResult,
    /// The verdict on a pair of targets is decided for the first time.
    VerdictReached,
    /// The verdict on a pair of targets has changed.
    VerdictChanged,
    /// The disk of a target is nearly full.
    DiskNearlyFull,
    /// Data on a target differs from what longhaul wrote.
    DataDamaged,
    /// The service cannot measure.
    CannotMeasure,
    /// The service can measure again.
    MeasuringAgain,
    /// The report of a week.
    Digest,
    /// A test, ordered by the user.
    Test,
}

/// Urgency of a notification, for receivers that know levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Need not be noticed at once.
    Low,
    /// Ordinary.
    Normal,
    /// Something needs the user.
    High,
}

stored_names! { NotificationKind MeasuringProblem }

impl NotificationKind {
    /// Returns the urgency of notifications of this kind.
    pub const fn priority(self) -> Priority {
        match self {
            Self::TargetDown | Self::CannotMeasure | Self::DiskNearlyFull | Self::DataDamaged => {
                Priority::High
            }
            Self::TargetBack
            | Self::FirstResult
            | Self::VerdictReached
            | Self::VerdictChanged
            | Self::MeasuringAgain
            | Self::Test => Priority::Normal,
            Self::Digest => Priority::Low,
        }
    }
}

/// Something that the user may want to be told.
#[derive(Debug, Clone, PartialEq)]
pub enum NotificationEvent {
    /// A target has been hung or unavailable since this time.
    TargetDown {
        /// Name of the target.
        target: TargetName,
        /// Reason why it cannot be used.
        reason: DownReason,
        /// Time since which it cannot be used.
        since: Timestamp,
    },
    /// A target that was reported as down can be used again.
    TargetBack {
        /// Name of the target.
        target: TargetName,
        /// Time since which it could not be used.
        since: Timestamp,
    },
    /// The rounds made so far show a difference between two targets for the first time.
    FirstResult(ComparedPair),
    /// The verdict on two targets is decided for the first time.
    VerdictReached(ComparedPair),
    /// The verdict on two targets has changed.
    VerdictChanged(ComparedPair),
    /// The disk of a target is nearly full.
    DiskNearlyFull {
        /// Name of the target.
        target: TargetName,
        /// Free bytes.
        free_bytes: u64,
        /// Size of the file system in bytes.
        total_bytes: u64,
    },
    /// Data on a target differs from what longhaul wrote.
    DataDamaged {
        /// Name of the target.
        target: TargetName,
        /// Number of wrong ranges that were not reported before.
        ranges: u64,
    },
    /// The service has not been able to measure since this time.
    CannotMeasure {
        /// The problem.
        problem: MeasuringProblem,
        /// Time since which it cannot measure.
        since: Timestamp,
    },
    /// The service can measure again.
    MeasuringAgain {
        /// The problem that is solved.
        problem: MeasuringProblem,
        /// Time since which it could not measure.
        since: Timestamp,
    },
    /// The report of a week is due.
    Digest {
        /// Week of the report, such as `2026-W46`.
        week: String,
    },
}

/// Two targets that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedPair {
    /// First target.
    pub a: TargetName,
    /// Second target.
    pub b: TargetName,
}

/// Reason why a target cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DownReason {
    /// An operation does not return.
    Hung,
    /// The target was not there.
    Unavailable,
    /// Access is refused.
    Blocked,
}

/// Reason why the service cannot measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum MeasuringProblem {
    /// Results cannot be stored.
    NotStored,
    /// The database is lost and cannot be replaced.
    DatabaseLost,
    /// The service crashed repeatedly and waits for the user.
    SafeMode,
    /// Every round of the last day was skipped or void.
    NoRounds,
}

impl NotificationEvent {
    /// Returns the kind of the notification about this.
    pub const fn kind(&self) -> NotificationKind {
        match self {
            Self::TargetDown { .. } => NotificationKind::TargetDown,
            Self::TargetBack { .. } => NotificationKind::TargetBack,
            Self::FirstResult(_) => NotificationKind::FirstResult,
            Self::VerdictReached(_) => NotificationKind::VerdictReached,
            Self::VerdictChanged(_) => NotificationKind::VerdictChanged,
            Self::DiskNearlyFull { .. } => NotificationKind::DiskNearlyFull,
            Self::DataDamaged { .. } => NotificationKind::DataDamaged,
            Self::CannotMeasure { .. } => NotificationKind::CannotMeasure,
            Self::MeasuringAgain { .. } => NotificationKind::MeasuringAgain,
            Self::Digest { .. } => NotificationKind::Digest,
        }
    }
}

/// A notification in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Kind of the notification.
    pub kind: NotificationKind,
    /// Time at which it was made.
    pub at: Timestamp,
    /// Title, one short line.
    pub title: String,
    /// The message, a few sentences.
    pub text: String,
    /// Week of the report, such as `2026-W46`. `None` unless it is a weekly digest.
    pub week: Option<String>,
}
