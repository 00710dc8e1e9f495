//! Systems without a FUSE that longhaul can use.

use std::convert::Infallible;

use longhaul_model::Mount;

use crate::{End, MountPaths, PassThroughError, Receiver};

/// A mounted pass-through file system. There is none on this system.
#[derive(Debug)]
pub struct PassThrough(Infallible);

impl PassThrough {
    /// Tells whether it was unmounted by another process.
    pub fn has_ended(&self) -> bool {
        match self.0 {}
    }

    /// Unmounts it.
    pub fn end(self) -> End {
        match self.0 {}
    }
}

/// Mounts a pass-through file system.
///
/// # Errors
///
/// Always, on this system.
pub fn mount(
    _place: &MountPaths,
    _mounts: &[Mount],
    _receiver: Receiver,
) -> Result<PassThrough, PassThroughError> {
    Err(PassThroughError::OtherSystem)
}
