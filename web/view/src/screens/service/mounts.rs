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
    document.table(table).note(Text::from("To compare some of them: ").code("longhaul init").plain("."));
    if mounts.iter().any(|info| info.mount.free_bytes.is_none() || info.mount.total_bytes.is_none()) {
        document.note(
            "Free space \"unknown\": the system has no cached value, and a request could hang on a server that does not respond.",
        );
    }
    document
}

fn options(negotiated: &NegotiatedOptions) -> String {
    let option = |(name, value): (&String, &String)| format!("{name}={value}").replace("=yes", "");
    negotiated.iter().map(option).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::terminal;

    #[test]
    fn unknown_space_is_explained_only_where_it_is_shown() {
        let shown = |bytes: Option<u64>| {
            let mount = Mount {
                free_bytes: bytes,
                total_bytes: bytes,
                ..Mount::new("/m/nas", "nas:/x", Protocol::Nfs(None))
            };
            let info = MountInfo {
                mount: &mount,
                protocol: Protocol::Nfs(None),
                negotiated: NegotiatedOptions::new(),
            };
            terminal::render(&mounts(&[info]))
        };
        assert!(shown(None).contains("Free space \"unknown\""));
        let known = shown(Some(1 << 40));
        assert!(!known.contains("unknown") && known.contains("`longhaul init`"), "{known}");
    }
}
