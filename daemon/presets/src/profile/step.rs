//! The steps of a profile: the actions of a thread on a file.

use serde::{Deserialize, Serialize};

use super::bytes::ByteSize;
use super::schema::default_one;

/// One step of a repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Step {
    /// Action of the step, `do` in a profile.
    #[serde(rename = "do")]
    pub action: Action,
    /// Choice of another file before the step; `None` keeps the file of the repetition.
    pub pick: Option<FileChoice>,
    /// Size of one call in bytes.
    #[serde(default = "ByteSize::default_block")]
    pub block: ByteSize,
    /// Amount to read or write: one block, or the whole file.
    #[serde(default)]
    pub amount: Amount,
    /// Position of the block in the file.
    #[serde(default)]
    pub at: BlockPosition,
    /// Interval in repetitions: with N, the step is done only in every Nth repetition.
    #[serde(default = "default_one")]
    pub every: u64,
    /// Relative probability of the step if a repetition does only one of its steps.
    #[serde(default = "default_weight")]
    pub weight: f64,
}

/// The rule for choosing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChoice {
    /// The file after the previous one; after the last file, the first one.
    #[default]
    Next,
    /// A random file.
    Random,
    /// Each file once in random order, then again in the same order.
    Shuffled,
    /// Each file once in the order of the folder's listing, which is read first; then again in the same order.
    Listed,
    /// The same file until its end was reached, then the next one.
    AtEnd,
    /// The same file as before.
    Same,
    /// All files: the step is repeated for each file.
    All,
}

/// An action on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Creates a file that does not exist.
    Create,
    /// Opens the file. If it is already open, closes it first.
    Open,
    /// Reads from the file. Opens it if necessary.
    Read,
    /// Writes to the file. Opens it if necessary.
    Write,
    /// Appends a block to the file.
    Append,
    /// Syncs the file to stable storage.
    Sync,
    /// Syncs all folders of the set, so that file names are on stable storage.
    SyncFolders,
    /// Closes the file.
    Close,
    /// Reads the attributes of the file.
    Stat,
    /// Looks up a name in the same folder that does not exist.
    Lookup,
    /// Reads an extended attribute of the file.
    Xattr,
    /// Lists the folder of the file.
    List,
    /// Renames the file to another name and back.
    Rename,
    /// Locks a range of 10 bytes in the file.
    Lock,
    /// Unlocks the range of 10 bytes.
    Unlock,
    /// Disables read-ahead for the open file, if the system supports it.
    WithoutReadAhead,
    /// Evicts a block or the whole file from this machine's cache. Rates exclude the time for this.
    Evict,
    /// Deletes the file.
    Delete,
    /// Creates a folder in the folder of the file.
    MakeFolder,
    /// Removes the folder that [`Action::MakeFolder`] created.
    RemoveFolder,
}

/// The amount to read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// One block of the file.
    #[default]
    Block,
    /// The whole file, block after block.
    File,
}

/// The position of a block in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockPosition {
    /// The block after the previous one; at the end of the file, the first block.
    #[default]
    Next,
    /// A random block.
    Random,
    /// The position of the previous block, for example to overwrite the block that was just read.
    Same,
}

const fn default_weight() -> f64 {
    1.0
}
