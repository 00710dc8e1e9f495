//! Arguments of `what-if`.

use std::time::Duration;

use clap::Args;
use longhaul_analysis::prediction::{
    AssumedChange, FITTED_ROUNDS, parse_bandwidth, parse_disk, parse_round_trip,
};

/// Arguments of `what-if`.
#[derive(Args)]
pub struct WhatIfArgs {
    /// Round trip time to the NAS, such as 20ms.
    #[arg(long = "rtt", value_name = "TIME", value_parser = parse_round_trip)]
    pub round_trip: Option<Duration>,
    /// Bandwidth of the network, such as 100mbit or 10gbit.
    #[arg(long, value_name = "RATE", value_parser = parse_bandwidth)]
    pub bandwidth: Option<f64>,
    /// Disk of the NAS: ssd, hdd, or the time of one request, such as 8ms.
    #[arg(long, value_name = "DISK", value_parser = parse_disk)]
    pub disk: Option<Duration>,
    /// Number of the newest rounds to fit.
    #[arg(long, value_name = "NUMBER", default_value_t = FITTED_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl WhatIfArgs {
    /// Returns the network and disk that are asked about.
    pub fn change(&self) -> AssumedChange {
        AssumedChange { round_trip: self.round_trip, bits_per_second: self.bandwidth, disk: self.disk }
    }
}
