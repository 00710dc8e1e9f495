//! The mounts of this machine that could be targets.

use longhaul_model::{Mount, NegotiatedOptions, Protocol};

use crate::document::Document;
use crate::table::Table;
use crate::text::Text;
use crate::units;

/// A mount with its negotiated options.
#[derive(Debug, Clone)]
pub struct MountInfo<'a> {
    /// The mount.
    pub mount: &'a Mount,
    /// Protocol, with the version that was negotiated.
    pub protocol: Protocol,
    /// Negotiated options.
    pub negotiated: NegotiatedOptions,
}

/// Returns the mounts, and how to measure some of them.
pub fn mounts(mounts: &[MountInfo<'_>]) -> Document {
    let mut table = Table::new("Mounts")
        .words(["mounted on", "protocol"])
        .figures(["free", "size"])
        .words(["source", "negotiated"]);
    let bytes = |value: Option<u64>| value.map_or("unknown".to_owned(), |value| units::bytes(value as f64));
    for MountInfo { mount, protocol, negotiated } in mounts {
        let read_only = if mount.read_only { " (read-only)" } else { "" };
        table.row([
            format!("{}{read_only}", mount.point.display()),
            protocol.to_string(),
            bytes(mount.free_bytes),
            bytes(mount.total_bytes),
            mount.source.clone(),
            options(negotiated),
        ]);
    }
    let mut document = Document::new();
    document
        .table(table)
        .note(
            Text::from("To measure some of them: ")
                .code("longhaul run --target NAME=FOLDER [--target NAME=FOLDER]...")
                .plain("."),
        )
        .note(
            "Free space \"unknown\": the system has no cached value, and a request could hang on a server that does not respond.",
        );
    document
}

fn options(negotiated: &NegotiatedOptions) -> String {
    let option = |(name, value): (&String, &String)| format!("{name}={value}").replace("=yes", "");
    negotiated.iter().map(option).collect::<Vec<_>>().join(" ")
}
