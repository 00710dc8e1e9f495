//! `longhaul targets`: lists the mounts of this machine. The mount table is read; no mount is touched on Linux. On a Mac `smbutil` asks
//! each SMB share for what was negotiated (SMBClient smbutil/statshares.c:881).

use std::process::ExitCode;

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_model::{Mount, ProtocolFamily};
use longhaul_view::screens::mounts::{self, MountInfo};
use serde_json::json;

use crate::exit;
use crate::output_format::OutputFormat;

/// Prints the mounts that could be measured.
pub fn run(format: OutputFormat) -> anyhow::Result<ExitCode> {
    let mounts = platform::mounts().context("read the mount table")?;
    let measurable = visible(&mounts).filter(|mount| is_measurable(mount));
    let shown: Vec<MountInfo<'_>> = measurable.map(mount_info).collect();
    let values = || shown.iter().map(mount_json).collect::<Vec<_>>();
    format.print(values, || mounts::mounts(&shown))?;
    Ok(exit::OK)
}

/// Returns the mounts that no later one covers: of two in one place, only the last one can be reached.
pub fn visible(mounts: &[Mount]) -> impl Iterator<Item = &Mount> {
    let is_covered =
        |index: usize| mounts[index + 1..].iter().any(|later| later.point == mounts[index].point);
    mounts.iter().enumerate().filter(move |(index, _)| !is_covered(*index)).map(|(_, mount)| mount)
}

/// Returns whether a mount can contain files of a user.
fn is_measurable(mount: &Mount) -> bool {
    match mount.protocol.family() {
        ProtocolFamily::Network | ProtocolFamily::Fuse | ProtocolFamily::Local => true,
        ProtocolFamily::Other => false,
    }
}

fn mount_info(mount: &Mount) -> MountInfo<'_> {
    let negotiated = platform::negotiated(mount);
    let protocol = platform::with_negotiated_version(mount.protocol.clone(), &negotiated);
    MountInfo { mount, protocol, negotiated }
}

fn mount_json(info: &MountInfo<'_>) -> serde_json::Value {
    json!({
        "mount_point": info.mount.point.to_string_lossy(),
        "source": info.mount.source,
        "protocol": info.protocol.to_string(),
        "negotiated": info.negotiated,
        "read_only": info.mount.read_only,
        "free_bytes": info.mount.free_bytes,
        "total_bytes": info.mount.total_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Protocol;

    #[test]
    fn covered_mounts_are_not_listed() {
        let mount = |point: &str, source: &str| Mount::new(point, source, Protocol::Nfs(None));
        let mounts = [mount("/m/nas", "old:/x"), mount("/m", "a:/y"), mount("/m/nas", "new:/x")];
        let sources: Vec<&str> = visible(&mounts).map(|mount| mount.source.as_str()).collect();
        assert_eq!(sources, ["a:/y", "new:/x"]);
    }
}
