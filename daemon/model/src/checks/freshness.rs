//! Freshness: the time until a change that was made elsewhere is visible through a target.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::{Protocol, TargetName, Timestamp};

/// Kind of change, and the call through which it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ChangeKind {
    /// A new file, looked for in a listing of its folder.
    NewFile,
    /// A new file whose name was looked up before it existed, looked for by its name.
    LookedUpName,
    /// A file that grew, seen by its size.
    GrownFile,
    /// A file with other content of the same size, opened and read.
    ChangedContent,
    /// A removed file, looked for by its name.
    Deletion,
    /// A renamed file, looked for in a listing of its folder.
    Rename,
}

/// Time until a change was visible, as an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreshnessOutcome {
    /// The change became visible within these two times after it was made: after the last poll that did not
    /// show it began, and before the first poll that showed it ended. The duration of the change itself and the
    /// error of the clocks widen the interval.
    Seen {
        /// Shortest possible time.
        earliest: Duration,
        /// Longest possible time.
        latest: Duration,
    },
    /// The change was confirmed by its writer, and was not visible within this time.
    NotSeen {
        /// Time from the change to the last poll.
        limit: Duration,
    },
    /// Nothing is known, for this reason.
    Void {
        /// Reason, for the user.
        reason: String,
    },
}

/// One change, and what was seen of it through a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshnessSample {
    /// Target through which the change was looked for.
    pub target: TargetName,
    /// Protocol of the target, with the negotiated version; `None` if unknown.
    pub protocol: Option<Protocol>,
    /// Number of the target's epoch; `None` until it is stored, or if the target has no run yet.
    pub epoch: Option<i64>,
    /// Target through which the change was made; `None` if it was made on the NAS itself.
    pub changed_through: Option<TargetName>,
    /// True if both targets use one client of this machine, so that the server takes the change for one of the
    /// same client. Such a sample says nothing about changes by other machines.
    pub shares_client: bool,
    /// Number of the round; `None` if the change was not made in a round.
    pub round: Option<i64>,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Time at which the change was made.
    pub at: Timestamp,
    /// Time until it was visible.
    pub outcome: FreshnessOutcome,
}

stored_names!(ChangeKind);
