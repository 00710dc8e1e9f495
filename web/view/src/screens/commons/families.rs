//! Words for families of machines.

use longhaul_commons::{
    GroupKind, LinkClass, MachineFamily, NasFamily, NasVendor, RoundTripClass, SystemName,
};

use crate::units::count;

/// Returns a NAS in words, such as "Synology, 4 bays".
pub(super) fn nas(nas: NasFamily) -> String {
    let vendor = match nas.vendor {
        NasVendor::Apple => "Apple",
        NasVendor::Asustor => "Asustor",
        NasVendor::Linux => "Linux server",
        NasVendor::Netgear => "NETGEAR",
        NasVendor::Openmediavault => "openmediavault",
        NasVendor::Qnap => "QNAP",
        NasVendor::Synology => "Synology",
        NasVendor::Terramaster => "TerraMaster",
        NasVendor::Truenas => "TrueNAS",
        NasVendor::Ugreen => "UGREEN",
        NasVendor::Unraid => "Unraid",
        NasVendor::WesternDigital => "Western Digital",
        NasVendor::Windows => "Windows",
        NasVendor::Other => "another NAS",
        NasVendor::Unknown => "NAS not known",
    };
    match nas.bays {
        Some(bays) => format!("{vendor}, {}", count(bays, "bay")),
        None => vendor.to_owned(),
    }
}

/// Returns a system in words, such as "macOS 26".
pub(super) fn system(name: SystemName, major: Option<u16>) -> String {
    match (name, major) {
        (SystemName::Other, _) => "another system".to_owned(),
        (name, Some(major)) => format!("{name} {major}"),
        (name, None) => name.to_string(),
    }
}

/// Returns a link in words.
pub(super) const fn link(link: LinkClass) -> &'static str {
    match link {
        LinkClass::WiredSlow => "cable below 1 Gbit/s",
        LinkClass::Wired1g => "cable, 1 Gbit/s",
        LinkClass::Wired2g => "cable, 2.5 or 5 Gbit/s",
        LinkClass::Wired10g => "cable, 10 Gbit/s or more",
        LinkClass::Wired => "cable",
        LinkClass::Wireless => "Wi-Fi",
        LinkClass::Tunnel => "VPN",
        LinkClass::Unknown => "link not known",
    }
}

/// Returns a class of round trip times in words.
pub(super) const fn round_trip(class: RoundTripClass) -> &'static str {
    match class {
        RoundTripClass::Fast => "round trip below 0.5 ms",
        RoundTripClass::Usual => "round trip of 0.5 to 2 ms",
        RoundTripClass::Slow => "round trip of 2 to 10 ms",
        RoundTripClass::Far => "round trip over 10 ms",
        RoundTripClass::Unknown => "round trip not measured",
    }
}

/// Returns a family in one line.
pub(super) fn family(family: &MachineFamily) -> String {
    let system = system(family.system, family.system_major);
    [nas(family.nas), system, link(family.link).to_owned(), round_trip(family.round_trip).to_owned()]
        .join("; ")
}

/// Returns a group of machines in words.
pub(super) fn group(kind: GroupKind) -> String {
    match kind {
        GroupKind::All => "all machines".to_owned(),
        GroupKind::Nas { nas: found } => nas(found),
        GroupKind::System { name, major } => system(name, major),
        GroupKind::Link { link: found } => link(found).to_owned(),
        GroupKind::RoundTrip { class } => round_trip(class).to_owned(),
    }
}
