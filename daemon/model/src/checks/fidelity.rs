//! Fidelity: the properties of files that a target keeps, changes, refuses or loses.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::{TargetName, Timestamp};

/// Property of files and folders that a file system may keep or not, in the order in which they are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Property {
    /// Permission bits of a file.
    Permissions,
    /// Modification time, to the nanosecond.
    ModificationTime,
    /// Time at which a file was created.
    BirthTime,
    /// Extended attribute of one byte.
    TinyAttribute,
    /// Extended attribute of 4 KiB.
    SmallAttribute,
    /// Extended attribute of 64 KiB.
    LargeAttribute,
    /// Tags of the Finder.
    FinderTags,
    /// Finder info: type, creator, label and flags.
    FinderInfo,
    /// Resource fork.
    ResourceFork,
    /// Access control list with an entry for another user.
    AccessControlList,
    /// Name with a composed letter (NFC).
    ComposedName,
    /// Name with a decomposed letter (NFD).
    DecomposedName,
    /// Two names that differ only in their normalization.
    NormalizationPair,
    /// Two names that differ only in case.
    CasePair,
    /// Name that ends with a dot.
    TrailingDot,
    /// Name that ends with a space.
    TrailingSpace,
    /// Name with a colon.
    Colon,
    /// Name with a backslash.
    Backslash,
    /// Name with a question mark.
    QuestionMark,
    /// Name with an asterisk.
    Asterisk,
    /// Name with a quotation mark.
    QuotationMark,
    /// Name with the characters `<` and `>`.
    AngleBrackets,
    /// Name with a vertical bar.
    VerticalBar,
    /// Name of 255 bytes.
    LongName,
    /// Name of 255 units of UTF-16, which are more bytes.
    WideName,
    /// Path of more than 1,024 bytes.
    LongPath,
    /// Second name of a file.
    HardLink,
    /// Symbolic link.
    SymbolicLink,
    /// File whose holes take no space.
    SparseFile,
    /// Space that is reserved before it is written.
    Preallocation,
    /// Lock on a range of bytes, against another handle of the same mount.
    LockWithinMount,
    /// Lock on a range of bytes, against another mount of the same folder.
    LockAcrossMounts,
    /// Replacement of a file that is open.
    RenameOverOpen,
    /// Removal of a file that is open.
    DeleteWhileOpen,
    /// Write through memory that a file is mapped to.
    MemoryMap,
    /// Creation of a file by exactly one of several threads.
    ExclusiveCreate,
    /// Folder with many names.
    LargeFolder,
    /// Byte beyond 4 GiB.
    LargeFile,
}

/// Result of checking whether a target keeps a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum KeepResult {
    /// Read back as it was written.
    Kept,
    /// Read back in another form.
    Changed,
    /// Refused with an error, so that programs notice.
    Refused,
    /// Accepted, and then not there: programs do not notice.
    Lost,
    /// An operation did not return in time.
    Hung,
    /// Could not be tested.
    NotTested,
}

impl KeepResult {
    /// Returns true if the target gave an answer.
    pub fn is_tested(self) -> bool {
        !matches!(self, Self::NotTested | Self::Hung)
    }
}

/// Place from which a value was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ReadBack {
    /// The server: by its answer to a request, or because nothing was in this machine's memory. On a local disk, the
    /// file system.
    Server,
    /// Possibly this machine's memory, because the system offers no call that avoids it.
    Client,
}

/// Result of one property on one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// Property that was checked.
    pub property: Property,
    /// Result of the check.
    pub result: KeepResult,
    /// Explanation: the change, the error, or the reason why it was not tested. May be empty if it was kept.
    pub detail: String,
    /// Place from which the value was read back.
    pub read_back: ReadBack,
}

impl Finding {
    /// Returns the finding for a property that could not be tested, with the reason.
    pub fn not_tested(property: Property, reason: impl Into<String>) -> Self {
        Self { property, result: KeepResult::NotTested, detail: reason.into(), read_back: ReadBack::Client }
    }
}

/// All findings of one check of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFidelity {
    /// Target that was checked.
    pub target: TargetName,
    /// Protocol of the target with its version, as text; `None` if unknown.
    pub protocol: Option<String>,
    /// Time of the check.
    pub at: Timestamp,
    /// Findings, in the order of [`Property::ALL`].
    pub findings: Vec<Finding>,
}

stored_names! { Property KeepResult ReadBack }
