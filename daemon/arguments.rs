//! Command line arguments of longhauld.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use longhaul_service::config::LOG_LEVELS;

const EXIT_CODES: &str = "Exit codes: 0 stopped on request, 1 error, 2 invalid command line or configuration, 4 another \
    longhaul measures with this database, 75 another version was installed: start it again (the service \
    manager does).";

/// longhauld measures network drives in the background. `longhaul service install` installs and starts it;
/// `longhaul status` shows its state.
#[derive(Parser, Clone)]
#[command(name = "longhauld", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments {
    /// Path of the configuration file [default: config.toml in the platform's configuration folder].
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Path of the database [default: in the platform's data folder].
    #[arg(long, value_name = "PATH")]
    pub database: Option<PathBuf>,
    /// Log level [default: as configured].
    #[arg(long, value_name = "LEVEL", value_parser = LOG_LEVELS)]
    pub log_level: Option<String>,
    /// Folder for the log file [default: the platform's folder for logs].
    #[arg(long, value_name = "PATH")]
    pub log_directory: Option<PathBuf>,
    /// A hidden subcommand.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Arguments {
    /// Parses the arguments of this process. Prints help or an error and exits if needed.
    pub fn of_process(version: &'static str) -> Self {
        let matches = Self::command().version(version).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The hidden subcommands.
#[derive(Subcommand, Clone)]
pub enum Command {
    /// Serve one target to a supervisor. Started by longhauld itself.
    #[command(hide = true)]
    Worker,
}
