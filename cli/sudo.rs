//! Refuses to run through sudo in the home folder of the user who called it.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use longhaul_measure::platform;

use crate::errors::UsageError;

/// Call of a program through sudo.
#[derive(Clone, Copy)]
struct Sudo {
    /// Effective user of the program.
    user: u32,
    /// User who called sudo (sudo(8), `SUDO_UID`).
    caller: u32,
    /// Owner of the home folder, in which the program keeps its files.
    home_owner: u32,
}

impl Sudo {
    /// Returns whether files of root would come into the caller's home folder. On a Mac sudo keeps `HOME` (its sudoers(5) has
    /// `env_keep += "HOME MAIL"`).
    fn leaves_files_of_root(self) -> bool {
        self.user == 0 && self.caller != 0 && self.home_owner == self.caller
    }
}

/// Checks that no file of root comes into the home folder of the user who called sudo: the user's own longhaul could not use it.
///
/// # Errors
///
/// [`UsageError`] if it would.
pub fn check() -> anyhow::Result<()> {
    let caller = std::env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let (Some(caller), Some(home)) = (caller, home) else { return Ok(()) };
    let Ok(facts) = home.metadata() else { return Ok(()) };
    match (Sudo { user: platform::user_id(), caller, home_owner: facts.uid() }).leaves_files_of_root() {
        false => Ok(()),
        true => Err(UsageError(format!(
            "run it without sudo: it would leave files of root in {} that your own longhaul cannot use. To measure as root, use root's \
             own home folder: sudo -H longhaul ...",
            home.display()
        ))
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_in_the_home_of_the_caller_is_refused() {
        let of = |user, caller, home_owner| Sudo { user, caller, home_owner }.leaves_files_of_root();
        assert!(of(0, 501, 501));
        assert!(!of(0, 501, 0), "sudo -H, or Linux, where sudo sets HOME to root's");
        assert!(!of(501, 501, 501), "sudo -u");
        assert!(!of(0, 0, 0), "root called sudo");
    }
}
