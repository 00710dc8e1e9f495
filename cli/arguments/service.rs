//! Arguments of `service`.

use clap::{Args, Subcommand};
use longhaul_service::config::LOG_LEVELS;

use super::whole_number;

/// The subcommands of `service`.
#[derive(Subcommand)]
pub enum ServiceCommand {
    /// Install the service and start it, now and after each login.
    Install(DryRunArgs),
    /// Remove the service. With --purge, also delete its data and every sandbox.
    Uninstall(UninstallArgs),
    /// Start the service.
    Start(DryRunArgs),
    /// Stop the service until it is started, or until the next login.
    Stop(DryRunArgs),
    /// Restart the service.
    Restart(DryRunArgs),
    /// Print the service's log.
    Logs(LogsArgs),
    /// Change the log level of the service until it is restarted.
    LogLevel {
        /// The log level.
        #[arg(value_parser = LOG_LEVELS)]
        level: String,
    },
}

/// Arguments of `install`, `start`, `stop` and `restart`.
#[derive(Args)]
pub struct DryRunArgs {
    /// Only print what would be done: files with their content, and commands.
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `uninstall`.
#[derive(Args)]
pub struct UninstallArgs {
    /// Also remove the results, the configuration, the logs, and the test data on every reachable target; if --database names
    /// another database, only that one, its test data and the logs.
    #[arg(long)]
    pub purge: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// Only print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `logs`.
#[derive(Args)]
pub struct LogsArgs {
    /// Keep printing new lines until Ctrl-C.
    #[arg(long, short)]
    pub follow: bool,
    /// Number of lines to print, counted from the end of the log.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = whole_number::<usize>)]
    pub lines: usize,
    /// Print the lines as they are stored, one JSON object each.
    #[arg(long)]
    pub json: bool,
}
