//! Parsers for the counters of network interfaces: `/proc/net/dev` and `/proc/net/wireless`
//! (proc_pid_net(5)), and `ifmibdata` of macOS.

use super::bytes::u64_at;

/// Counters of a network interface since it came up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InterfaceCounters {
    /// Name of the interface.
    pub name: String,
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Number of packets that were corrupt or dropped, in either direction.
    pub errors: u64,
}

impl InterfaceCounters {
    /// Returns whether the interface stays within this machine: the loopback, or the machine's end of the link to a
    /// container (veth(4)), which has a new name for each container.
    pub fn is_internal(&self) -> bool {
        matches!(self.name.as_str(), "lo" | "lo0") || self.name.starts_with("veth")
    }
}

/// Returns the interfaces in `/proc/net/dev`. The columns are bytes, packets, errors, drops and four more for
/// received data, and the same again for sent data.
pub fn net_dev(table: &str) -> Vec<InterfaceCounters> {
    table.lines().filter_map(interface).collect()
}

fn interface(line: &str) -> Option<InterfaceCounters> {
    let (name, counts) = line.split_once(':')?;
    let counts: Vec<u64> = counts.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [received, _, broken_in, dropped_in, _, _, _, _, sent, _, broken_out, dropped_out, ..] = counts[..]
    else {
        return None;
    };
    let errors = [broken_in, dropped_in, broken_out, dropped_out].into_iter().fold(0, u64::wrapping_add);
    Some(InterfaceCounters { name: name.trim().to_owned(), received, sent, errors })
}

/// Returns the signal strength of a wireless interface in dBm, from `/proc/net/wireless`. The columns are
/// `name: status quality level noise ...`, and a dot follows each number that is new
/// (net/wireless/wext-proc.c). A driver that does not report dBm gives a level from 0 up, for which the
/// result is `None`.
pub fn wireless_dbm(table: &str, name: &str) -> Option<i32> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let level: i32 = line.split_whitespace().nth(2)?.trim_end_matches('.').parse().ok()?;
    (-200..0).contains(&level).then_some(level)
}

/// Parses the `struct ifmibdata` of macOS (xnu bsd/net/if_mib.h:65): the name in 16 bytes, nine integers, then
/// `if_data64` (bsd/net/if_var.h:207, packed to four bytes).
pub fn ifmib(data: &[u8]) -> Option<InterfaceCounters> {
    const STATISTICS: usize = 52;
    let name = data.get(..16)?.split(|byte| *byte == 0).next()?;
    let count = |at: usize| u64_at(data, STATISTICS + at);
    let (broken_in, broken_out, dropped_in) = (count(32)?, count(48)?, count(96)?);
    Some(InterfaceCounters {
        name: String::from_utf8_lossy(name).into_owned(),
        received: count(64)?,
        sent: count(72)?,
        errors: broken_in.wrapping_add(broken_out).wrapping_add(dropped_in),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_has_its_bytes_and_errors() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo: 1128000   13000    0    0    0     0          0         0  1128000   13000    0    0    0     0       0          0\n  \
            eth0:7788123456 5000000    1    2    0     0          0         9 99123456  800000    3    4    0     0       0          0\n";
        let found = net_dev(table);
        assert_eq!(found.len(), 2, "the heading is not an interface");
        let expected =
            InterfaceCounters { name: "eth0".into(), received: 7_788_123_456, sent: 99_123_456, errors: 10 };
        assert_eq!(found[1], expected);
        assert_eq!(net_dev("eth0: 1 2 3\n"), []);
    }

    #[test]
    fn a_signal_is_in_dbm_or_unknown() {
        let table = "Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE\n \
            face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22\n \
            wlp3s0: 0000   54.  -56.  -256        0      0      0      0    195        0\n  \
            wlan1: 0000   70   110    0        0      0      0      0    195        0\n";
        assert_eq!(wireless_dbm(table, "wlp3s0"), Some(-56));
        assert_eq!(wireless_dbm(table, "wlan1"), None, "this driver reports quality only");
        assert_eq!(wireless_dbm(table, "wlp3s"), None);
        assert_eq!(wireless_dbm("", "wlan0"), None);
    }

    #[test]
    fn the_counters_of_a_mac_have_64_bits() {
        let mut data = vec![0u8; 180];
        data[..3].copy_from_slice(b"en0");
        data[52 + 64..52 + 72].copy_from_slice(&(7u64 << 32).to_ne_bytes());
        data[52 + 72..52 + 80].copy_from_slice(&5u64.to_ne_bytes());
        data[52 + 48..52 + 56].copy_from_slice(&3u64.to_ne_bytes());
        let expected = InterfaceCounters { name: "en0".into(), received: 7 << 32, sent: 5, errors: 3 };
        assert_eq!(ifmib(&data), Some(expected));
        assert_eq!(ifmib(&data[..140]), None);
    }
}
