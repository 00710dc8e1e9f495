//! Arguments of `notify`.

use clap::Subcommand;

/// The subcommands of `notify`.
#[derive(Subcommand)]
pub enum NotifyCommand {
    /// Send a test message from this program to one channel, or to all and the heartbeat, and print the receiver's response.
    Test {
        /// Name of the channel in the configuration [default: all channels].
        channel: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
