//! Families: kinds of NAS, system and network, in closed sets that identify no machine.

use longhaul_model::{LinkKind, NetworkLink, Protocol};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantArray};

/// Vendor of a NAS, or the kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[derive(Serialize, Deserialize, Display, EnumString, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NasVendor {
    /// Apple: Time Capsule, AirPort, or a Mac that shares folders.
    Apple,
    /// Asustor.
    Asustor,
    /// Linux server of the user's own, such as Debian with Samba.
    Linux,
    /// NETGEAR ReadyNAS.
    Netgear,
    /// openmediavault.
    Openmediavault,
    /// QNAP.
    Qnap,
    /// Synology.
    Synology,
    /// TerraMaster.
    Terramaster,
    /// TrueNAS.
    Truenas,
    /// UGREEN.
    Ugreen,
    /// Unraid.
    Unraid,
    /// Western Digital.
    WesternDigital,
    /// Windows server or computer.
    Windows,
    /// Another vendor.
    Other,
    /// The user did not say.
    #[default]
    Unknown,
}

/// Vendor of the NAS and the class of its model: the number of its disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NasFamily {
    /// Vendor of the NAS.
    pub vendor: NasVendor,
    /// Number of disk bays, from 1 to 99; `None` if unknown.
    pub bays: Option<u8>,
}

impl std::str::FromStr for NasFamily {
    type Err = String;

    /// Parses `synology` or `synology/4`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (vendor, bays) = text.split_once('/').map_or((text, None), |(vendor, bays)| (vendor, Some(bays)));
        let names = || NasVendor::VARIANTS.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let vendor = vendor.parse().map_err(|_| format!("use one of {}", names()))?;
        let is_bays = |bays: &u8| (1..=99).contains(bays);
        let number = |bays: &str| bays.parse().ok().filter(is_bays);
        let bays =
            bays.map(|bays| number(bays).ok_or("after / give the number of disk bays, as in synology/4"));
        Ok(Self { vendor, bays: bays.transpose()? })
    }
}

/// Protocol with its major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, VariantArray)]
pub enum ProtocolLabel {
    /// Apple Filing Protocol.
    #[serde(rename = "AFP")]
    #[strum(serialize = "AFP")]
    Afp,
    /// NFS 3 or 2.
    #[serde(rename = "NFS 3")]
    #[strum(serialize = "NFS 3")]
    Nfs3,
    /// NFS 4.0 to 4.2.
    #[serde(rename = "NFS 4")]
    #[strum(serialize = "NFS 4")]
    Nfs4,
    /// NFS of an unknown version.
    #[serde(rename = "NFS")]
    #[strum(serialize = "NFS")]
    Nfs,
    /// SMB 1.
    #[serde(rename = "SMB 1")]
    #[strum(serialize = "SMB 1")]
    Smb1,
    /// SMB 2.0.2 and 2.1.
    #[serde(rename = "SMB 2")]
    #[strum(serialize = "SMB 2")]
    Smb2,
    /// SMB 3.0 to 3.1.1.
    #[serde(rename = "SMB 3")]
    #[strum(serialize = "SMB 3")]
    Smb3,
    /// SMB of an unknown dialect.
    #[serde(rename = "SMB")]
    #[strum(serialize = "SMB")]
    Smb,
    /// WebDAV.
    #[serde(rename = "WebDAV")]
    #[strum(serialize = "WebDAV")]
    Webdav,
    /// SFTP.
    #[serde(rename = "SFTP")]
    #[strum(serialize = "SFTP")]
    Sftp,
    /// Another FUSE file system.
    #[serde(rename = "FUSE")]
    #[strum(serialize = "FUSE")]
    Fuse,
    /// A local file system.
    #[serde(rename = "local")]
    #[strum(serialize = "local")]
    Local,
    /// Unknown.
    #[serde(rename = "other")]
    #[strum(serialize = "other")]
    Other,
}

impl ProtocolLabel {
    /// Returns the label of a protocol. Names that the system reports for others are not shared.
    pub fn of(protocol: Option<&Protocol>) -> Self {
        let starts =
            |version: &Option<String>, major: &str| version.as_deref().is_some_and(|v| v.starts_with(major));
        match protocol {
            Some(Protocol::Afp) => Self::Afp,
            Some(Protocol::Nfs(version)) if starts(version, "4") => Self::Nfs4,
            Some(Protocol::Nfs(version)) if starts(version, "3") || starts(version, "2") => Self::Nfs3,
            Some(Protocol::Nfs(_)) => Self::Nfs,
            Some(Protocol::Smb(version)) if starts(version, "3") => Self::Smb3,
            Some(Protocol::Smb(version)) if starts(version, "2") => Self::Smb2,
            Some(Protocol::Smb(version)) if starts(version, "1") => Self::Smb1,
            Some(Protocol::Smb(_)) => Self::Smb,
            Some(Protocol::Webdav) => Self::Webdav,
            Some(Protocol::Sftp) => Self::Sftp,
            Some(Protocol::Fuse(_)) => Self::Fuse,
            Some(Protocol::Local(_)) => Self::Local,
            Some(Protocol::Other(_)) | None => Self::Other,
        }
    }

    /// Returns whether it is SMB, whose client may send several requests as one message.
    pub const fn is_smb(self) -> bool {
        matches!(self, Self::Smb | Self::Smb1 | Self::Smb2 | Self::Smb3)
    }
}

/// Class of the round trip time of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundTripClass {
    /// Below 0.5 ms: usually a cable.
    #[serde(rename = "under-0.5-ms")]
    Fast,
    /// From 0.5 to 2 ms.
    #[serde(rename = "0.5-to-2-ms")]
    Usual,
    /// From 2 to 10 ms.
    #[serde(rename = "2-to-10-ms")]
    Slow,
    /// From 10 ms: usually a VPN.
    #[serde(rename = "over-10-ms")]
    Far,
    /// Not measured.
    #[default]
    Unknown,
}

impl RoundTripClass {
    /// Returns the class of the median of round trip times in microseconds.
    pub fn of(mut microseconds: Vec<u64>) -> Self {
        microseconds.sort_unstable();
        match microseconds.get(microseconds.len() / 2) {
            None => Self::Unknown,
            Some(0..500) => Self::Fast,
            Some(500..2_000) => Self::Usual,
            Some(2_000..10_000) => Self::Slow,
            Some(10_000..) => Self::Far,
        }
    }
}

/// Class of the network link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkClass {
    /// Cable below a gigabit.
    WiredSlow,
    /// Cable of 1 Gbit/s.
    Wired1g,
    /// Cable of 2.5 or 5 Gbit/s.
    Wired2g,
    /// Cable of 10 Gbit/s or more.
    Wired10g,
    /// Cable of unknown speed.
    Wired,
    /// Wi-Fi.
    Wireless,
    /// VPN.
    Tunnel,
    /// Unknown.
    #[default]
    Unknown,
}

impl LinkClass {
    /// Returns the class of a link.
    pub fn of(link: Option<&NetworkLink>) -> Self {
        let Some(link) = link else { return Self::Unknown };
        match (link.kind, link.megabits) {
            (LinkKind::Wireless, _) => Self::Wireless,
            (LinkKind::Tunnel, _) => Self::Tunnel,
            (LinkKind::Unknown, _) => Self::Unknown,
            (LinkKind::Wired, None) => Self::Wired,
            (LinkKind::Wired, Some(0..1_000)) => Self::WiredSlow,
            (LinkKind::Wired, Some(1_000..2_500)) => Self::Wired1g,
            (LinkKind::Wired, Some(2_500..10_000)) => Self::Wired2g,
            (LinkKind::Wired, Some(10_000..)) => Self::Wired10g,
        }
    }
}

/// Name of an operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Display)]
pub enum SystemName {
    /// macOS.
    #[serde(rename = "macOS")]
    #[strum(serialize = "macOS")]
    Macos,
    /// Linux.
    Linux,
    /// Another system.
    #[default]
    #[serde(rename = "other")]
    #[strum(serialize = "other")]
    Other,
}

/// Kind of a machine and its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFamily {
    /// Vendor and class of the NAS, as the user gave them.
    pub nas: NasFamily,
    /// Operating system of the machine that measured.
    pub system: SystemName,
    /// Its major version; `None` if unknown.
    pub system_major: Option<u16>,
    /// Most frequent class of the network link.
    pub link: LinkClass,
    /// Class of the median round trip time.
    pub round_trip: RoundTripClass,
}

impl MachineFamily {
    /// Returns the system and major version in a text such as `macOS 26.1 (25B78)`.
    pub fn system_of(text: &str) -> (SystemName, Option<u16>) {
        let mut words = text.split_whitespace();
        let name = match words.next() {
            Some("macOS") => SystemName::Macos,
            Some("Linux") => SystemName::Linux,
            _ => return (SystemName::Other, None),
        };
        let major = words.next().and_then(|version| version.split('.').next()?.parse().ok());
        (name, major.filter(|major| *major < 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nas_family_is_a_vendor_with_the_number_of_bays() {
        let parsed: NasFamily = "synology/4".parse().unwrap();
        assert_eq!(parsed, NasFamily { vendor: NasVendor::Synology, bays: Some(4) });
        assert_eq!("western-digital".parse::<NasFamily>().unwrap().bays, None);
        for bad in ["", "DS920+", "synology/", "synology/0", "synology/100", "annas-nas", "synology/4/x"] {
            assert!(bad.parse::<NasFamily>().is_err(), "{bad}");
        }
    }

    #[test]
    fn system_keeps_its_major_version_only() {
        assert_eq!(MachineFamily::system_of("macOS 26.1 (25B78)"), (SystemName::Macos, Some(26)));
        assert_eq!(MachineFamily::system_of("Linux 6.1.0-annas-kernel"), (SystemName::Linux, Some(6)));
        assert_eq!(MachineFamily::system_of("anna's system"), (SystemName::Other, None));
    }

    #[test]
    fn protocol_label_has_no_text_of_the_system() {
        let label = |protocol: Protocol| ProtocolLabel::of(Some(&protocol)).to_string();
        assert_eq!(label(Protocol::Smb(Some("3.1.1".to_owned()))), "SMB 3");
        assert_eq!(label(Protocol::Fuse(Some("annafs".to_owned()))), "FUSE");
        assert_eq!(label(Protocol::Other("annafs".to_owned())), "other");
    }
}
