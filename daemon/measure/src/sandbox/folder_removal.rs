//! Removal of one folder of a sandbox while the rest stays.

use std::path::Path;

use super::clean::CleanMode;
use super::folder::Sandbox;
use crate::error::RunError;
use crate::timed_fs::TimedFs;

impl Sandbox {
    /// Removes every file that `owns` recognizes in a folder of the sandbox, and the folder if nothing is left in it.
    /// Returns the number of foreign files, which remain. A missing folder is no error.
    pub fn remove_folder(
        &self,
        name: &str,
        context: &TimedFs<'_>,
        owns: &dyn Fn(&Path) -> bool,
    ) -> Result<usize, RunError> {
        Ok(self.clean_folder(name, CleanMode::Remove, context, owns)?.foreign.len())
    }
}
