//! Arguments of `telemetry`.

use clap::Subcommand;

/// The subcommands of `telemetry`.
#[derive(Subcommand)]
pub enum TelemetryCommand {
    /// Send one span and one metric from this program, and print the collector's response.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Send rounds again, whatever their delivery status. A collector recognizes them by their ids.
    Replay {
        /// Start of the period: a day, such as 2026-11-09, or a time, such as 2026-11-09T18:00:00+01:00.
        #[arg(long, value_name = "DATE")]
        from: String,
        /// End of the period: the first day or time that is left out [default: now].
        #[arg(long, value_name = "DATE")]
        to: Option<String>,
    },
}
