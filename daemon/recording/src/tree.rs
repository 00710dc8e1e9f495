//! The recorded folder as a tree of numbered nodes, without names.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::NodeNumber;

/// Largest number of names in the path of a node. Operations on deeper names are left out, because a cleaning of a sandbox does not
/// remove what is nested more deeply.
pub const MAX_DEPTH: u8 = 250;

/// A path in the recorded folder: the name of a file or folder, or a name that was looked for.
///
/// The first node of a recording is the recorded folder itself. Parents stand before their children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Folder that contains the name; the first node contains itself.
    pub parent: NodeNumber,
    /// Kind of file that the extension of the name stands for.
    pub kind: FileKind,
    /// State of the path before the first recorded operation.
    pub initial: InitialState,
}

/// State of a path before the first recorded operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialState {
    /// There was nothing.
    Absent,
    /// A folder.
    Folder,
    /// A file of about this many bytes; it has at least the bytes that the recording reads.
    File(PowerOfTwo),
    /// A symbolic link; where it leads is not kept.
    Link,
}

/// A size or a time, kept as the power of two at or below it, so that it identifies nothing: 0, 1, 2, 4, 8, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PowerOfTwo(u8);

impl PowerOfTwo {
    /// Returns the class of a value.
    pub const fn of(value: u64) -> Self {
        Self((u64::BITS - value.leading_zeros()) as u8)
    }

    /// Returns the class with this number, from 0 for the value 0 to 64; `None` for a larger number.
    pub const fn from_number(number: u8) -> Option<Self> {
        if number as u32 <= u64::BITS { Some(Self(number)) } else { None }
    }

    /// Returns the number of the class.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the smallest value of the class.
    pub const fn floor(self) -> u64 {
        match self.0 {
            0 => 0,
            number => 1 << (number - 1),
        }
    }
}

/// Kind of file, by the extension of its name. Programs treat files of one kind alike. Recordings store variants by number: new
/// ones go last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[derive(Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// None of the others, or no extension.
    #[default]
    Other,
    /// `jpg`, `png`, `heic`, raw photos, ...
    Image,
    /// `mp4`, `mov`, `mkv`, ...
    Video,
    /// `mp3`, `flac`, `wav`, ...
    Audio,
    /// `pdf`, `docx`, `txt`, `md`, ...
    Document,
    /// Source code and its configuration: `c`, `rs`, `py`, `json`, ...
    Source,
    /// `zip`, `gz`, `dmg`, disk images and their bands.
    Archive,
    /// `sqlite`, `db`, photo catalogues and their journals.
    Database,
    /// `tmp`, `part`, `lock`, `~`, ...
    Temporary,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two_and_never_larger_than_the_value() {
        for value in [0, 1, 2, 3, 4, 1023, 1024, u64::MAX] {
            let class = PowerOfTwo::of(value);
            assert!(class.floor() <= value && value / 2 <= class.floor(), "{value}");
            assert_eq!(PowerOfTwo::from_number(class.number()), Some(class));
        }
        assert_eq!(PowerOfTwo::from_number(65), None);
    }
}
