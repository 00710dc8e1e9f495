//! Parsers for the network link of a Mac and its medium: `route`, `ifconfig`, `networksetup`.

/// Returns the interface in the output of `route -n get default` (Apple network_cmds route.tproj).
pub fn route_interface(output: &str) -> Option<String> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("interface:"))?;
    Some(line.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Properties of an interface that `ifconfig NAME` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// Largest packet size (MTU), in bytes.
    pub mtu: Option<u64>,
    /// True if the interface is wireless; `None` unless its medium shows that.
    pub is_wireless: Option<bool>,
}

/// Parses the output of `ifconfig NAME` (Apple network_cmds ifconfig.tproj); `None` if the text is not that
/// output.
///
/// A medium that names a speed is a cable, in every notation: `1000baseT`, `10Gbase-T`, `2500Base-T` (xnu
/// bsd/net/if_media.h:354, `IFM_SUBTYPE_ETHERNET_DESCRIPTIONS`). `autoselect` alone may be a wireless interface
/// as well as an unplugged cable, a bridge or a phone.
pub fn ifconfig(output: &str) -> Option<InterfaceInfo> {
    output.lines().next().filter(|line| line.contains(": flags="))?;
    let words: Vec<&str> = output.split_whitespace().collect();
    let mtu = words.windows(2).find(|pair| pair[0] == "mtu").and_then(|pair| pair[1].parse().ok());
    let media = output.lines().find_map(|line| line.trim().strip_prefix("media:"));
    let is_cable = media.is_some_and(|media| media.to_ascii_lowercase().contains("base"));
    Some(InterfaceInfo { mtu, is_wireless: is_cable.then_some(false) })
}

/// Network port of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwarePort {
    /// Name that macOS uses: `Wi-Fi` (`WLAN` on a German system), `Thunderbolt Bridge`, or the name of an adapter.
    pub name: String,
    /// Name of the port's interface.
    pub device: String,
}

impl HardwarePort {
    /// Returns whether the port is wireless, by its name; `None` if the name does not show it, such as that
    /// of an adapter's chip or of a phone.
    pub fn is_wireless(&self) -> Option<bool> {
        let starts = |words: &[&str]| words.iter().any(|word| self.name.starts_with(word));
        match () {
            () if starts(&["Wi-Fi", "WLAN", "AirPort", "Bluetooth"]) => Some(true),
            () if starts(&["Thunderbolt", "FireWire"]) => Some(false),
            () if self.name.contains("Ethernet") || self.name.ends_with(" LAN") => Some(false),
            () => None,
        }
    }
}

/// Returns the ports that `networksetup -listallhardwareports` lists (networksetup(8)); `None` if the text is
/// not that output.
pub fn hardware_ports(output: &str) -> Option<Vec<HardwarePort>> {
    let mut ports = vec![];
    let mut name = None;
    for line in output.lines() {
        if let Some(found) = line.strip_prefix("Hardware Port: ") {
            name = Some(found.trim());
        } else if let (Some(device), Some(name)) = (line.strip_prefix("Device: "), name.take()) {
            ports.push(HardwarePort { name: name.to_owned(), device: device.trim().to_owned() });
        }
    }
    Some(ports).filter(|ports| !ports.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_of_a_speed_is_a_cable() {
        let medium = |media: &str| {
            let text = format!("en9: flags=8863<UP> mtu 1500\n\tmedia: {media}\n\tstatus: active\n");
            ifconfig(&text).unwrap().is_wireless
        };
        for media in
            ["1000baseT", "autoselect (2500Base-T <full-duplex>)", "autoselect (25GBase-CR)", "10GbaseT"]
        {
            assert_eq!(medium(media), Some(false), "{media}");
        }
        for media in ["autoselect", "autoselect (none)", "none", "autoselect <full-duplex>", "<unknown type>"]
        {
            assert_eq!(medium(media), None, "{media}");
        }
    }
}
