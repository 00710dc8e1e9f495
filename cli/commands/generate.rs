//! Generates shell completions and manual pages from the definition of the command line.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap_complete::Shell;

use crate::{arguments, exit};

/// Prints the completions for a shell.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    match std::io::stdout().write_all(&completion_script(shell)) {
        // The reader of a pipe has closed it: this is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(exit::OK),
        written => written.map(|()| exit::OK).context("cannot write the completions"),
    }
}

fn completion_script(shell: Shell) -> Vec<u8> {
    let mut script = vec![];
    clap_complete::generate(shell, &mut arguments::command(), "longhaul", &mut script);
    script
}

/// Writes `longhaul.1` and a page for each command into a folder.
pub fn manual(folder: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(arguments::command(), folder)
        .with_context(|| format!("cannot write the manual pages into {}", folder.display()))?;
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_name_every_visible_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completion_script(shell)).unwrap();
            let command = arguments::command();
            let mut visible = command.get_subcommands().filter(|found| !found.is_hide_set());
            assert!(visible.all(|found| script.contains(found.get_name())), "{shell}");
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        manual(folder.path()).unwrap();
        for page in ["longhaul.1", "longhaul-report.1", "longhaul-service-install.1"] {
            assert!(std::fs::metadata(folder.path().join(page)).unwrap().len() > 100, "{page}");
        }
    }
}
