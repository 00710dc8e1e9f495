use proptest::prelude::*;

use super::*;

/// Beginnings of lines that the parsers look for, by format. The first of each format begins the text.
const FORMATS: &[&[&str]] = &[
    &["Resources in use\n1) \\\\a\\b\n", "SMBs: ", "Bytes read: ", "Creates: "],
    &["Resources in use\n1) \\\\a\\b\nSMBs: 1 Oplocks ", "Reads: ", "Writes: ", "Renames: "],
    &["Resources in use\nTime units are jiffies (", "  ", "Max requests in flight", "2) \\\\c\\d\t"],
    &["Dialect 0x", "Dialect 0x311\nCapability: 0x", "1) \\\\a\\b Mounts: "],
    &["Now drawing from ", " -InternalBattery-0 ", " -InternalBattery-0 95%", " lowpowermode ", "Running = "],
    &["Current System Capabilities are:", "Current System Capabilities are: CPU "],
    &["Note: No ", "CPU_Speed_Limit = ", "Thermal Warning Level = "],
    &["SHARE ATTRIBUTE TYPE\n", " SMB_VERSION ", " SIGNING_ON ", " SMB_CURR_SIGN_ALGORITHM AES_"],
    &["/a from b\n", " -- Current mount parameters:", " NFS parameters: ", " Status flags: 0x0 ", " @ a ("],
    &["<key>SolidState</key>", "<key>SolidState</key><false/>"],
    &["Hardware Port: ", "Device: ", "en0: flags=", "\tmedia: ", " interface: "],
    &["en0: flags=8863<UP> mtu ", "\tmedia: "],
    &["wlan0: ", "wlan0: 0000 54. ", "  eth0:"],
    &["Iface\n", "eth0 0 0 1 0 0 "],
    &["36 35 0:51 / /m rw - cifs //a:b@c/d rw,", "37 36 0:52 / /\\134 ", "38 36 0:53 / / rw - nfs4 "],
    &[
        "device a:/b mounted on /c with fstype nfs statvers=1.1\n\tper-op statistics\n",
        "\tbytes:\t",
        "\txprt:\ttcp ",
        "\tREAD: ",
        "\tRENEW: ",
    ],
    &["//a:b@c/", "sshfs#a@b:", "[::1]:/%"],
];

/// Returns the rest of a line: numbers of any length, or any text.
fn rest() -> impl Strategy<Value = String> {
    let number = (any::<u64>(), 0u32..64).prop_map(|(number, shift)| (number >> shift).to_string());
    let numbers = proptest::collection::vec(number, 0..17).prop_map(|numbers| numbers.join(" "));
    prop_oneof![numbers, "[ -~\tä]{0,40}", ".{0,20}"]
}

/// Passes an input to every parser.
fn parse_all(input: &[u8], number: u128) {
    let _ = (bulk(input).count(), finder_info(input), dirents(input).count(), ifmib(input));
    let _ = (mountinfo(input), mountstats(input), pcblist(input), sockets(input));
    let _ = (multichannel(input), smbutil(input));
    nfsstat(input).unwrap_or_default().iter().for_each(|mount| drop(mount.negotiated()));
    for kind in ["smbfs", "nfs", "afpfs", "webdav", "hfs"] {
        let _ = statfs(kind.as_bytes(), input, number as u32);
    }
    let text = &*String::from_utf8_lossy(input);
    let _ = (cifs_stats(text), cifs_connections(text), diskutil_spins(text), pmset(text));
    let _ = (pmset_percent(text), pmset_low_power(text), pmset_dark_wake(text), tmutil_running(text));
    let _ = (pmset_thermal_state(text), net_dev(text), wireless_dbm(text, "wlan0"), machine_id(text));
    let _ = (route_interface(text), ifconfig(text), hardware_ports(text));
    let _ = (default_route(text), route_interface_index(input), percent_decode(text));
    let _ = server_of_source(&mount_source::without_credentials(text));
}

/// Answers in JSON, of the parsers that read it.
const JSON: [&[u8]; 4] = [
    include_bytes!("../../tests/fixtures/nfsstat-mounts.json"),
    include_bytes!("../../tests/fixtures/smbutil-macos11.json"),
    include_bytes!("../../tests/fixtures/smbutil-macos15.json"),
    include_bytes!("../../tests/fixtures/smbutil-multichannel.json"),
];

proptest! {
    #[test]
    fn any_input_ends_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        lines in proptest::collection::vec((0usize..100, rest()), 1..9),
        number in any::<u128>(),
        place in any::<proptest::sample::Index>(),
    ) {
        parse_all(&bytes, number);
        for json in JSON {
            let mut changed = json.to_vec();
            changed[place.index(json.len())] = number as u8;
            parse_all(&changed, number);
        }
        for starts in FORMATS {
            let text = lines.iter().enumerate().map(|(at, (pick, rest))| {
                let start = starts[if at == 0 { 0 } else { pick % starts.len() }];
                format!("{start}{rest}\n")
            });
            parse_all(text.collect::<String>().as_bytes(), number);
        }
    }
}
