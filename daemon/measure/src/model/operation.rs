//! The calls that are timed.

use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! operations {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// One kind of timed call. Its number is its place in the flight recorder.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Operation { $(#[doc = $doc] #[serde(rename = $name)] $variant,)* }

        impl Operation {
            /// Every operation, in the order of their numbers.
            pub const ALL: &'static [Operation] = &[$(Operation::$variant),*];

            /// The name that is stored and shown.
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$variant => $name,)* }
            }
        }
    };
}

operations! {
    Readdir = "readdir", "One batch of names of a folder.";
    ReaddirAttributes = "readdir-attributes", "One batch of names with their attributes (`getattrlistbulk` on macOS).";
    Getattr = "getattr", "The attributes of a name that exists.";
    Lookup = "lookup", "A look at a name that may not exist (`.DS_Store`, `._*`); both answers are good.";
    Getxattr = "getxattr", "One extended attribute; its absence is a good answer.";
    Setxattr = "setxattr", "Writing one extended attribute.";
    Open = "open", "Opening a file or folder that exists.";
    Create = "create", "Making a file that does not exist.";
    Read = "read", "One read call.";
    Write = "write", "One write call.";
    Sync = "sync", "Asking for what was written to be on stable storage.";
    Close = "close", "Closing a file; network file systems may write here.";
    Rename = "rename", "Renaming, often over an existing name.";
    Unlink = "unlink", "Removing a file.";
    Mkdir = "mkdir", "Making a folder.";
    Rmdir = "rmdir", "Removing a folder.";
    Setattr = "setattr", "Setting times or mode.";
    Decode = "decode", "Decoding an image in memory: no file operation, recorded apart from reading.";
    Lock = "lock", "Taking or giving back a lock on a range of bytes.";
}

impl Operation {
    /// How many operations there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The operation with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The operation with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|operation| operation.name() == name)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

// Not derived: the derive does not see names that a macro puts in.
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
    fn numbers_and_names_lead_back_to_the_operation() {
        for (number, operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(*operation as usize, number);
            assert_eq!(Operation::from_number(number as u64), Some(*operation));
            assert_eq!(Operation::from_name(operation.name()), Some(*operation));
        }
        assert_eq!(Operation::from_number(Operation::COUNT as u64), None);
    }
}
