//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use longhaul_service::config::LEVELS;

const EXIT_CODES: &str = "Exit codes: 0 it was told to stop, 1 error, 2 the command line or the configuration is wrong, 4 another \
    longhaul measures with this database, 75 another version was installed in its place: start it again (the service \
    manager does).";

/// longhauld measures network drives in the background. `longhaul install` has the system start it; `longhaul status`
/// asks it how it goes.
#[derive(Parser)]
#[command(name = "longhauld", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments {
    /// The configuration file [default: config.toml in the platform's configuration folder].
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// The database [default: in the platform's data folder].
    #[arg(long, value_name = "PATH")]
    pub database: Option<PathBuf>,
    /// What the log says [default: as configured].
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS)]
    pub log_level: Option<String>,
    /// The folder of the log [default: the platform's folder for logs].
    #[arg(long, value_name = "PATH")]
    pub log_directory: Option<PathBuf>,
    /// What else it can be.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What else it can be.
#[derive(Subcommand)]
pub enum Command {
    /// The process that touches one target. Started by longhauld itself.
    #[command(hide = true)]
    Worker,
}
