//! The folder from which the names of a step are looked up.

use std::ffi::CStr;

use parking_lot::RwLockReadGuard;

use super::replay::{Open, Replay};
use crate::platform::NameBelow;
use crate::timed_fs::Folder;
use longhaul_recording::NodeNumber;
use longhaul_recording::plan::ReplayStep;

/// Folder from which the names of a step are given: one that the replay has open, or that of the slice.
///
/// A client looks up each name on a path. Over SMB on Linux, one whose attributes are older than a second (`actimeo`, mount.cifs(8)) is
/// a request.
pub struct LookupFolder<'a> {
    replay: &'a Replay<'a>,
    open: Option<RwLockReadGuard<'a, Option<Open>>>,
}

impl<'a> LookupFolder<'a> {
    /// Returns the folder for a step, which stays open as long as the value exists.
    pub fn of(replay: &'a Replay<'a>, step: &ReplayStep<'_>) -> Self {
        Self { replay, open: step.folder.map(|slot| replay.slots[slot.0 as usize].read()) }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Folder {
        self.open().0
    }

    /// Returns the path of a node from the folder.
    pub fn path(&self, node: NodeNumber) -> &'a CStr {
        self.replay.day.paths.path_from(self.open().1, node)
    }

    /// Returns the place of a node from the folder.
    pub fn name(&self, node: NodeNumber) -> NameBelow<'a> {
        self.replay.day.paths.name_from(self.open().1, node)
    }

    /// Returns the folder with its name. One that could not be opened is replaced by that of the slice.
    fn open(&self) -> (&Folder, NodeNumber) {
        match self.open.as_deref() {
            Some(Some(Open::Folder(folder, node))) => (folder, *node),
            _ => (self.replay.root, NodeNumber(0)),
        }
    }
}
