//! The steps of a profile: what a thread does with a file.

use serde::{Deserialize, Serialize};

use super::{Bytes, Pick, block, one};

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Step {
    /// What.
    #[serde(rename = "do")]
    pub action: Action,
    /// Another file is chosen first.
    pub pick: Option<Pick>,
    /// Bytes of one call.
    #[serde(default = "block")]
    pub block: Bytes,
    /// How much is read or written: one block, or all of the file.
    #[serde(default)]
    pub amount: Amount,
    /// Where.
    #[serde(default)]
    pub at: At,
    /// It is done in every so manieth repetition only.
    #[serde(default = "one")]
    pub every: u64,
    /// How often it is drawn, beside the other steps.
    #[serde(default = "even")]
    pub weight: f64,
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Made; the file is one that is not there.
    Create,
    /// Opened; closed before if it is open.
    Open,
    /// Read; opened before if it is not open.
    Read,
    /// Written; opened before if it is not open.
    Write,
    /// A block is added at its end.
    Append,
    /// Made durable.
    Sync,
    /// The names in all folders of its set are made durable.
    SyncFolders,
    /// Closed.
    Close,
    /// Its attributes are asked for.
    Stat,
    /// A name beside it that does not exist is looked for.
    Lookup,
    /// An extended attribute of it is asked for.
    Xattr,
    /// Its folder is listed.
    List,
    /// Renamed to another name and back.
    Rename,
    /// Locked, in part.
    Lock,
    /// Given back.
    Unlock,
    /// Read from now on without fetching more than is asked for, where the system can.
    WithoutReadAhead,
    /// A block, or all of it, is dropped from this machine's cache; the time for that is left out of every rate.
    Evict,
    /// Removed.
    Delete,
    /// A folder is made beside it.
    MakeFolder,
    /// That folder is removed.
    RemoveFolder,
}

/// How much is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// One block.
    #[default]
    Block,
    /// All of the file, block after block.
    File,
}

/// Where in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// After the block before; from the begin again at the end.
    #[default]
    Next,
    /// Any block.
    Random,
    /// Where the block before was: to write what was just read.
    Same,
}

const fn even() -> f64 {
    1.0
}
