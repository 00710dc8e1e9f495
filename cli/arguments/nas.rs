//! Arguments of `nas`.

use clap::Subcommand;

/// The subcommands of `nas`.
#[derive(Subcommand)]
pub enum NasCommand {
    /// Read the NAS of the configuration twice within a few seconds, and print what it tells about its disks and
    /// processors. Nothing is changed on it.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
