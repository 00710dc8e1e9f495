//! Arguments of `demo`.

use clap::Args;

/// Arguments of `demo`.
#[derive(Args)]
pub struct DemoArgs {
    /// Port on 127.0.0.1 [default: any free one].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}
