//! Parsers for facts about the machine during a measurement: power, temperature, memory, network link, disk.

use std::path::Path;

use longhaul_model::{LinkKind, Mount, Power, Protocol};

/// Returns the kind of an interface, by its name and, on Linux, its ARPHRD type
/// (include/uapi/linux/if_arp.h): 512 is PPP, 65534 is none.
pub fn link_kind(name: &str, hardware: Option<u32>, is_wireless: Option<bool>) -> LinkKind {
    let tunnels = ["tun", "utun", "tap", "wg", "ppp", "ipsec", "gif", "stf", "tailscale", "nordlynx"];
    let is_tunnel = tunnels.iter().any(|tunnel| name.starts_with(tunnel));
    match (is_tunnel || matches!(hardware, Some(512 | 65534)), is_wireless) {
        (true, _) => LinkKind::Tunnel,
        (false, Some(true)) => LinkKind::Wireless,
        (false, Some(false)) => LinkKind::Wired,
        (false, None) => LinkKind::Unknown,
    }
}

/// Returns whether a thermal zone has reached one of the trip points at which the machine throttles or stops:
/// kinds `passive`, `hot` and `critical` (Documentation/driver-api/thermal/sysfs-api.rst). All values are in
/// millidegrees.
pub fn is_hot(degrees: i64, trips: &[(String, i64)]) -> bool {
    let slows = |kind: &str| matches!(kind.trim(), "passive" | "hot" | "critical");
    trips.iter().any(|(kind, at)| slows(kind) && *at > 0 && degrees >= *at)
}

/// Returns the id of an installed system, as in `/etc/machine-id`, or of the hardware: 32 hexadecimal digits. `None` if there is
/// none: a system that was not set up yet has an empty file or the word `uninitialized` (machine-id(5)).
pub fn machine_id(text: &str) -> Option<String> {
    let id = text.trim();
    let is_id = id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()) && id.chars().any(|c| c != '0');
    is_id.then(|| id.to_ascii_lowercase())
}

/// Facts about the file `/etc/machine-id` of a system.
#[derive(Debug, Clone, Copy)]
pub struct MachineIdFile<'a> {
    /// Content of the file.
    pub text: &'a str,
    /// All mounts of the system.
    pub mounts: &'a [Mount],
    /// True if the system is a container.
    pub is_in_container: bool,
}

impl MachineIdFile<'_> {
    /// Path of the file.
    pub const PATH: &'static str = "/etc/machine-id";

    /// Returns the id if it stays the same after a restart. A container may get a new one at each start, and where systemd cannot
    /// write the file, it mounts one with a new id over it at each boot (machine-id(5), "First Boot Semantics").
    pub fn lasting_id(&self) -> Option<String> {
        let is_transient =
            |mount: &Mount| matches!(&mount.protocol, Protocol::Local(kind) if kind == "tmpfs");
        let is_mounted_over =
            self.mounts.iter().any(|mount| mount.point == Path::new(Self::PATH) && is_transient(mount));
        if is_mounted_over || self.is_in_container { None } else { machine_id(self.text) }
    }
}

/// Returns the power source in the first line of the output of `pmset -g batt` (PowerManagement pmset/pmset.m). A UPS counts as
/// a battery, because it supplies power only if mains power fails.
pub fn pmset(output: &str) -> Option<Power> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("Now drawing from"))?;
    match line.trim().trim_matches('\'') {
        "AC Power" => Some(Power::Mains),
        "Battery Power" | "UPS Power" => Some(Power::Battery),
        _ => None,
    }
}

/// Returns the battery charge in the output of `pmset -g batt`, in percent (PowerManagement pmset/pmset.m).
pub fn pmset_percent(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.trim_start().starts_with("-InternalBattery"))?;
    let (before, _) = line.split_once('%')?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok().filter(|percent| *percent <= 100.0)
}

/// Returns whether Low Power Mode is on in the output of `pmset -g`: `lowpowermode 1`, or `powermode 1` on
/// Macs that also have a high power mode (PowerManagement pmset/pmset.m).
pub fn pmset_low_power(output: &str) -> Option<bool> {
    output.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next()?, "lowpowermode" | "powermode").then(|| words.next() == Some("1"))
    })
}

/// Returns whether a Mac is awake without its graphics, from the output of `pmset -g systemstate`: a DarkWake, in which it does
/// some work and goes back to sleep (PowerManagement pmset/pmset.m:8448, pmconfigd/PMConnection.m:379).
pub fn pmset_dark_wake(output: &str) -> Option<bool> {
    let line = output.lines().find_map(|line| line.strip_prefix("Current System Capabilities are:"))?;
    let has = |capability: &str| line.split_whitespace().any(|word| word == capability);
    has("CPU").then(|| !has("Graphics"))
}

/// Returns the value `Running` in the output of `tmutil status`, an old-style property list.
pub fn tmutil_running(output: &str) -> Option<bool> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("Running"))?;
    Some(line.trim_start_matches([' ', '=']).starts_with('1'))
}

/// Returns whether the disk is rotational, by the key `SolidState` in the output of `diskutil info -plist` (diskutil(8)); `None` if
/// unknown, because some disks lack the key.
pub fn diskutil_spins(output: &str) -> Option<bool> {
    let (_, value) = output.split_once("<key>SolidState</key>")?;
    match value.trim_start() {
        value if value.starts_with("<true/>") => Some(false),
        value if value.starts_with("<false/>") => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_facts_are_read_from_kernel_files() {
        assert_eq!(link_kind("eth0", Some(1), Some(false)), LinkKind::Wired);
        assert_eq!(link_kind("office", Some(65534), Some(false)), LinkKind::Tunnel);
        let trips = [("active".to_owned(), 40_000), ("passive\n".to_owned(), 90_000), ("hot".to_owned(), 0)];
        assert!(!is_hot(60_000, &trips) && is_hot(90_000, &trips));
    }

    #[test]
    fn machine_without_an_id_has_none() {
        let id = "3D1219C7c4c5404aaa1f6d2a48adfda4";
        assert_eq!(machine_id(&format!("{id}\n")), Some(id.to_lowercase()));
        for none in ["", "\n", "uninitialized\n", &"0".repeat(32), &id[1..], &format!("{id}0"), "ä"] {
            assert_eq!(machine_id(none), None, "{none}");
        }
    }

    const ID: &str = "3d1219c7c4c5404aaa1f6d2a48adfda4";

    fn file(mounts: &[Mount]) -> MachineIdFile<'_> {
        MachineIdFile { text: ID, mounts, is_in_container: false }
    }

    #[test]
    fn machine_id_that_changes_with_a_restart_is_none() {
        let mount = |point: &str| Mount::new(point, "tmpfs", Protocol::Local("tmpfs".to_owned()));
        let (usual, over) = ([mount("/"), mount("/etc")], [mount("/"), mount("/etc/machine-id")]);
        assert_eq!(file(&usual).lasting_id().as_deref(), Some(ID));
        assert_eq!(file(&over).lasting_id(), None, "systemd has mounted it over the file");
        let kept = [Mount::new("/etc/machine-id", "disk", Protocol::Local("ext4".to_owned()))];
        assert_eq!(file(&kept).lasting_id().as_deref(), Some(ID), "a file that is kept on a disk");
        assert_eq!(MachineIdFile { is_in_container: true, ..file(&usual) }.lasting_id(), None);
        assert_eq!(MachineIdFile { text: "uninitialized\n", ..file(&usual) }.lasting_id(), None);
    }

    #[test]
    fn an_unknown_power_source_is_not_guessed() {
        assert_eq!(pmset("Now drawing from 'Sunlight'\n"), None);
        assert_eq!(pmset(" -InternalBattery-0 (id=1)\t95%; charging"), None);
        assert_eq!(pmset(""), None);
    }

    #[test]
    fn dark_wake_is_awake_without_graphics() {
        let state = |capabilities: &str| {
            pmset_dark_wake(&format!(
                "Current System Capabilities are: {capabilities}\nCurrent Power State: 4\n"
            ))
        };
        assert_eq!(state("CPU Graphics Audio Network "), Some(false));
        assert_eq!(state("CPU Network "), Some(true));
        assert_eq!((state("None"), pmset_dark_wake("")), (None, None));
    }
}
