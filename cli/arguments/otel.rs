//! Arguments of `otel`.

use clap::Subcommand;

/// What to do with the collector.
#[derive(Subcommand)]
pub enum OtelCommand {
    /// Sends one span and one metric from this program, and says what came back.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Sends rounds again, whatever became of them before: what the collector has already has the same ids.
    Replay {
        /// The first day, as 2026-11-09, or the first moment, as 2026-11-09T18:00:00+01:00.
        #[arg(long, value_name = "DATE")]
        from: String,
        /// The day or moment after the last [default: up to now].
        #[arg(long, value_name = "DATE")]
        to: Option<String>,
    },
}
