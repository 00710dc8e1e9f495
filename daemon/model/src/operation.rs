//! Kinds of calls that are timed.

use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! operations {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// Kind of timed call. The number of an operation is its index in the flight recorder.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Operation { $(#[doc = $doc] #[serde(rename = $name)] $variant,)* }

        impl Operation {
            /// All operations, in the order of their numbers.
            pub const ALL: &'static [Operation] = &[$(Operation::$variant),*];

            /// Returns the name that is stored and shown to users.
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$variant => $name,)* }
            }
        }
    };
}

operations! {
    Readdir = "readdir", "Reading one batch of names from a folder.";
    ReaddirAttributes = "readdir-attributes", "Reading one batch of names with their attributes (`getattrlistbulk` on macOS).";
    Getattr = "getattr", "Reading the attributes of a name that exists.";
    Lookup = "lookup", "Looking up a name that may not exist (`.DS_Store`, `._*`); both results are successes.";
    Getxattr = "getxattr", "Reading one extended attribute; its absence is a success.";
    Setxattr = "setxattr", "Writing one extended attribute.";
    Open = "open", "Opening a file or folder that exists.";
    Create = "create", "Creating a file that does not exist.";
    Read = "read", "One read call.";
    Write = "write", "One write call.";
    Sync = "sync", "Writing data to stable storage (`fsync` or `F_FULLFSYNC`).";
    Close = "close", "Closing a file; network file systems may write here.";
    Rename = "rename", "Renaming, often over an existing name.";
    Unlink = "unlink", "Removing a file.";
    Mkdir = "mkdir", "Creating a folder.";
    Rmdir = "rmdir", "Removing a folder.";
    Setattr = "setattr", "Setting times or mode.";
    Decode = "decode", "Decoding an image in memory: not a file operation, recorded separately from reading.";
    Lock = "lock", "Taking or releasing a lock on a byte range.";
}

impl Operation {
    /// Number of operations.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the operation with this number; `None` for an unknown number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the operation with this stored name; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|operation| operation.name() == name)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

// Not derived: the derive of `ToSchema` does not see the names that the macro above inserts.
impl PartialSchema for Operation {
    fn schema() -> RefOr<Schema> {
        let names = Self::ALL.iter().map(|operation| operation.name());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

impl ToSchema for Operation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_identify_an_operation() {
        for (number, operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(*operation as usize, number);
            assert_eq!(Operation::from_number(number as u64), Some(*operation));
            assert_eq!(Operation::from_name(operation.name()), Some(*operation));
        }
        assert_eq!(Operation::from_number(Operation::COUNT as u64), None);
    }
}
