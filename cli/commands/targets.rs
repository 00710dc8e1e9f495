//! `longhaul targets`: what is mounted here. The mount table is read; no mount is touched.

use std::process::ExitCode;

use anyhow::Context as _;
use longhaul_measure::model::{Family, Mount, Negotiated, Protocol};
use longhaul_measure::platform;
use serde_json::json;

use crate::arguments::Listing;
use crate::exit;
use crate::render::table::table;
use crate::render::units;

/// Prints the mounts that could be measured.
pub fn run(arguments: &Listing) -> anyhow::Result<ExitCode> {
    let mounts = platform::mounts().context("read the mount table")?;
    let shown: Vec<Seen<'_>> = mounts.iter().filter(|mount| is_target(mount)).map(Seen::of).collect();
    if arguments.json {
        let values: Vec<_> = shown.iter().map(Seen::json).collect();
        anstream::println!("{}", serde_json::to_string_pretty(&values)?);
    } else {
        print_table(&shown);
    }
    Ok(exit::OK)
}

/// Whether files of a person can be on it.
fn is_target(mount: &Mount) -> bool {
    match mount.protocol.family() {
        Family::Network | Family::Fuse | Family::Local => true,
        Family::Other => false,
    }
}

/// A mount with what was negotiated on it.
struct Seen<'a> {
    mount: &'a Mount,
    protocol: Protocol,
    negotiated: Negotiated,
}

impl<'a> Seen<'a> {
    fn of(mount: &'a Mount) -> Self {
        let negotiated = platform::negotiated(mount);
        let protocol = platform::protocol_with(mount.protocol.clone(), &negotiated);
        Self { mount, protocol, negotiated }
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "mount_point": self.mount.point.to_string_lossy(),
            "source": self.mount.source,
            "protocol": self.protocol.to_string(),
            "negotiated": self.negotiated,
            "read_only": self.mount.read_only,
            "free_bytes": self.mount.free_bytes,
            "total_bytes": self.mount.total_bytes,
        })
    }
}

fn print_table(shown: &[Seen<'_>]) {
    let mut table = table(&["mounted on", "protocol", "free", "of", "from", "negotiated"]);
    for seen in shown {
        let bytes =
            |value: Option<u64>| value.map_or("not asked".to_owned(), |value| units::bytes(value as f64));
        let options: Vec<String> = seen
            .negotiated
            .iter()
            .map(|(name, value)| format!("{name}={value}").replace("=yes", ""))
            .collect();
        let read_only = if seen.mount.read_only { " (read-only)" } else { "" };
        table.add_row([
            format!("{}{read_only}", seen.mount.point.display()),
            seen.protocol.to_string(),
            bytes(seen.mount.free_bytes),
            bytes(seen.mount.total_bytes),
            seen.mount.source.clone(),
            options.join(" "),
        ]);
    }
    anstream::println!("{table}");
    anstream::println!("\nMeasure some: longhaul run --target NAME=FOLDER [--target NAME=FOLDER]...");
    anstream::println!(
        "free \"not asked\": the system keeps no figure, and asking could wait for a server that is gone."
    );
}
