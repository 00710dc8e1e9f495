//! Parser for `/proc/fs/cifs/Stats` and `DebugData` (fs/smb/client/cifs_debug.c; the lines of each dialect
//! are in smb1ops.c and smb2ops.c, `print_stats`).

use super::options::dialect;
use longhaul_model::{Mount, Protocol, RequestCounts, RequestKind, RequestTotals};

/// Contents of the `Stats` file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CifsStatistics {
    /// Number of session reconnects since the module was loaded; `None` if the shares have several servers, because the kernel
    /// counts those of all servers together.
    pub reconnects: Option<u64>,
    /// Shares in the order of the file. A share that is mounted over two connections appears twice.
    pub shares: Vec<CifsShare>,
}

/// Counters of one connected share. `None` means that this kernel does not report the value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CifsShare {
    /// Name of the share, `\\server\share`, as it was mounted.
    pub name: String,
    /// True if the share is mounted with SMB 1.
    pub is_smb1: bool,
    /// Number of requests, without echoes. The kernel counts them in 32 bits and prints them with a sign.
    pub requests: Option<u64>,
    /// Number of requests by kind. Kernels that print `sent` instead of `total` do not count them.
    pub by_kind: RequestCounts,
    /// Bytes of files that READ received. Before Linux 4.19 the kernel did not report them for SMB 2 and 3.
    pub read_bytes: Option<u64>,
    /// Bytes of files that WRITE sent.
    pub written_bytes: Option<u64>,
    /// Times of the requests of the share's connection, for all its shares together. Only kernels that are built with
    /// `CONFIG_CIFS_STATS2` report them.
    pub request_totals: RequestTotals,
}

/// Parses the `Stats` file; `None` if the text is not that file.
pub fn cifs_stats(text: &str) -> Option<CifsStatistics> {
    text.starts_with("Resources in use").then_some(())?;
    let mut statistics = CifsStatistics::default();
    let mut times = CommandTimes::default();
    for line in text.lines() {
        times.add_line(line);
        if let Some(name) = share_name(line) {
            let name = name.split('\t').next().unwrap_or_default().to_owned();
            statistics.shares.push(CifsShare {
                name,
                request_totals: times.totals(),
                ..CifsShare::default()
            });
        } else if let Some(share) = statistics.shares.last_mut() {
            add_line(share, line);
        } else if let Some((count, _)) = line.split_once(" session ") {
            statistics.reconnects = count.trim().parse().ok();
        }
    }
    statistics.reconnects = statistics.reconnects.filter(|_| have_one_server(&statistics.shares));
    Some(statistics)
}

/// Returns whether all shares have the same server in their names.
fn have_one_server(shares: &[CifsShare]) -> bool {
    let server =
        |share: &CifsShare| share.name.trim_start_matches('\\').split('\\').next().map(str::to_lowercase);
    shares.windows(2).all(|pair| server(&pair[0]) == server(&pair[1]))
}

/// Times of the commands of one connection, which stand above its shares. The kernel counts them in ticks from the
/// allocation of a request to its release (fs/smb/client/transport.c, `release_mid`).
#[derive(Default)]
struct CommandTimes {
    /// Number of ticks in a second; `None` outside of a table.
    ticks_per_second: Option<u64>,
    commands: u64,
    ticks: u64,
}

impl CommandTimes {
    /// Commands that wait on purpose or keep a connection alive: ECHO and CHANGE_NOTIFY (MS-SMB2 2.2.1.2).
    const OTHERS: [u64; 2] = [13, 15];

    fn add_line(&mut self, line: &str) {
        if line.starts_with("Max requests in flight") {
            *self = Self::default();
        } else if let Some((_, rest)) = line.split_once("Time units are jiffies (") {
            self.ticks_per_second =
                rest.split(' ').next().and_then(|rate| rate.parse().ok()).filter(|rate| *rate > 0);
        } else if self.ticks_per_second.is_some() && line.starts_with("  ") {
            self.add_command(line);
        }
    }

    /// Adds a line `COMMAND NUMBER TOTAL FASTEST SLOWEST`.
    fn add_command(&mut self, line: &str) {
        let columns: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [command, number, ticks, _, _] = columns[..] else { return };
        if !Self::OTHERS.contains(&command) {
            self.commands = self.commands.wrapping_add(number);
            self.ticks = self.ticks.wrapping_add(ticks);
        }
    }

    fn totals(&self) -> RequestTotals {
        let Some(rate) = self.ticks_per_second else { return RequestTotals::default() };
        let execute_us = (u128::from(self.ticks) * 1_000_000 / u128::from(rate)) as u64;
        RequestTotals {
            answered: Some(self.commands),
            execute_us: Some(execute_us),
            ..RequestTotals::default()
        }
    }
}

/// Returns the rest of a line of the form `3) \\server\share...`, after the number.
fn share_name(line: &str) -> Option<&str> {
    let (number, rest) = line.trim_start().split_once(") ")?;
    (number.parse::<u32>().is_ok() && rest.starts_with("\\\\")).then_some(rest)
}

fn add_line(share: &mut CifsShare, line: &str) {
    let after = |label: &str| {
        let rest = &line[line.find(label)? + label.len()..];
        rest.split_whitespace().next()
    };
    let bytes = |label: &str| after(label).and_then(|word| word.parse().ok());
    if line.starts_with("SMBs: ") {
        share.requests = after("SMBs: ").and_then(count_of_32_bits);
        // Only SMB 1 prints its oplock breaks in this line.
        share.is_smb1 = line.contains("Oplock");
    } else if line.starts_with("Bytes read: ") {
        (share.read_bytes, share.written_bytes) = (bytes("Bytes read: "), bytes("Bytes written: "));
    } else if share.is_smb1 && line.starts_with("Reads: ") {
        share.read_bytes = bytes("Bytes: ");
    } else if share.is_smb1 && line.starts_with("Writes: ") {
        share.written_bytes = bytes("Bytes: ");
    }
    if share.is_smb1 {
        add_smb1_requests(&mut share.by_kind, line)
    } else {
        add_requests(&mut share.by_kind, line)
    }
}

/// Adds a line of SMB 2 or 3: `Creates: 402 total 3 failed`. An open that failed opened nothing.
fn add_requests(by_kind: &mut RequestCounts, line: &str) {
    let mut words = line.split(' ');
    let kind = match words.next() {
        Some("QueryDirectories:") => RequestKind::List,
        Some("Creates:") => RequestKind::Open,
        Some("Reads:") => RequestKind::Read,
        Some("Writes:") => RequestKind::Write,
        Some("SetInfos:") => RequestKind::Change,
        Some("QueryInfos:") => RequestKind::Attributes,
        _ => return,
    };
    let total = words.next().and_then(count_of_32_bits).filter(|_| words.next() == Some("total"));
    let failed = words.next().and_then(count_of_32_bits).filter(|_| kind == RequestKind::Open).unwrap_or(0);
    if let Some(total) = total {
        by_kind.add(kind, total.saturating_sub(failed));
    }
}

/// Adds a line of SMB 1, which has pairs of a name and a number (fs/smb/client/smb1ops.c, `cifs_print_stats`).
fn add_smb1_requests(by_kind: &mut RequestCounts, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    for pair in words.windows(2) {
        let kind = match pair[0] {
            "FindFirst:" | "FNext" => RequestKind::List,
            "Opens:" => RequestKind::Open,
            "Reads:" => RequestKind::Read,
            "Writes:" => RequestKind::Write,
            "Mkdirs:" | "Rmdirs:" | "Deletes:" | "Renames:" | "Symlinks:" | "HardLinks:" => {
                RequestKind::Change
            }
            _ => continue,
        };
        if let Some(count) = count_of_32_bits(pair[1]) {
            by_kind.add(kind, count);
        }
    }
}

/// Parses an `atomic_t` that the kernel printed with `%d`. A negative number is a count above 2^31.
fn count_of_32_bits(word: &str) -> Option<u64> {
    word.parse::<i32>().ok().map(|count| u64::from(count.cast_unsigned()))
}

/// Share in `DebugData`, with what its connection negotiated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CifsConnection {
    /// Name of the share, `\\server\share`, as it was mounted.
    pub name: String,
    /// Dialect of the connection; `None` if it is unknown.
    pub dialect: Option<&'static str>,
    /// True if the server grants leases of directories, without which this client keeps no listings; `None` if the file
    /// does not say. Only SMB 3 has them.
    pub directory_leases: Option<bool>,
}

/// Capability of a server that grants leases of directories (MS-SMB2 2.2.4, `SMB2_GLOBAL_CAP_DIRECTORY_LEASING`).
const DIRECTORY_LEASING: u32 = 0x20;

/// Parses the shares of `DebugData`, which lists them in the order of `Stats`.
pub fn cifs_connections(text: &str) -> Vec<CifsConnection> {
    let (mut dialect, mut capabilities) = (None, None);
    let mut connections = vec![];
    for line in text.lines() {
        // The further channels of a session stand below its capabilities, indented, each with a dialect of its own.
        let is_of_channel = line.starts_with('\t');
        if let Some((_, rest)) = line.split_once("Dialect 0x").filter(|_| !is_of_channel) {
            dialect = rest.split_whitespace().next().and_then(dialect_of_number);
            capabilities = None;
        }
        if let Some((_, rest)) = line.split_once("Capability: 0x") {
            let digits = rest.split(|end: char| !end.is_ascii_hexdigit()).next();
            capabilities = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        }
        if let Some(name) = share_name(line).and_then(|share| Some(share.split_once(" Mounts: ")?.0)) {
            let is_smb3 = dialect.is_some_and(|dialect: &str| dialect.starts_with('3'));
            let directory_leases =
                capabilities.filter(|_| is_smb3).map(|capabilities| capabilities & DIRECTORY_LEASING != 0);
            connections.push(CifsConnection { name: name.to_owned(), dialect, directory_leases });
        }
    }
    connections
}

/// Returns whether the server grants leases of directories on a mount; `None` if that is unknown, or differs between
/// connections that may be the mount's.
pub fn directory_leases(connections: &[CifsConnection], mount: &Mount) -> Option<bool> {
    let Protocol::Smb(Some(mounted)) = &mount.protocol else { return None };
    let mut leases = connections
        .iter()
        .filter(|share| is_same_share(&share.name, &mount.source))
        .filter(|share| share.dialect.is_none_or(|dialect| dialect == mounted))
        .map(|share| share.directory_leases);
    let first = leases.next()??;
    leases.all(|other| other == Some(first)).then_some(first)
}

/// Returns whether `\\server\share` is the share that a mount table calls `//server/share/folder`.
pub fn is_same_share(share: &str, source: &str) -> bool {
    let parts = |text: &str, mark: char| -> Option<(String, String)> {
        let mut parts = text.trim_start_matches(mark).splitn(3, mark).map(str::to_lowercase);
        Some((parts.next()?, parts.next()?))
    };
    let share = parts(share, '\\');
    share.is_some() && share == parts(source, '/')
}

/// Returns the dialect with this number (MS-SMB2 2.2.3). SMB 1 has no number and is shown as 0.
fn dialect_of_number(number: &str) -> Option<&'static str> {
    match number {
        "0" => dialect("1.0"),
        "202" => dialect("2.0"),
        "210" => dialect("2.1"),
        "300" => dialect("3.0"),
        "302" => dialect("3.02"),
        "311" => dialect("3.1.1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX_6: &str = include_str!("../../tests/fixtures/cifs-stats-linux6.txt");
    const LINUX_4: &str = include_str!("../../tests/fixtures/cifs-stats-linux4.txt");
    const DEBUG_6: &str = include_str!("../../tests/fixtures/cifs-debug-linux6.txt");

    #[test]
    fn each_share_has_bytes_and_requests_in_any_dialect() {
        let found = cifs_stats(LINUX_6).unwrap();
        assert_eq!((found.reconnects, found.shares.len()), (Some(2), 4));
        let counts = |index: usize| {
            let by_kind = found.shares[index].by_kind;
            RequestKind::ALL.map(|kind| by_kind.get(kind))
        };
        assert_eq!(counts(0), [20, 399, 33, 36, 5, 300].map(Some));
        assert_eq!(counts(2), [Some(3), Some(4), Some(12), Some(3), Some(2), None], "SMB 1");
        assert_eq!(counts(1), [None; 6], "the lines are missing");
        let bytes = |index: usize| (found.shares[index].read_bytes, found.shares[index].written_bytes);
        assert_eq!(bytes(0), (Some(33_554_432), Some(33_555_456)));
        assert_eq!(bytes(2), (Some(49_152), Some(12_288)));
        let smb1: Vec<bool> = found.shares.iter().map(|share| share.is_smb1).collect();
        assert_eq!(smb1, [false, false, true, false]);
        assert_eq!(found.shares[0].name, r"\\10.77.0.2\share");
    }

    #[test]
    fn captured_kernel_output_is_parsed() {
        let found = cifs_stats(include_str!("../../tests/fixtures/cifs-stats-linux6.1.txt")).unwrap();
        let bytes: Vec<_> =
            found.shares.iter().map(|share| (share.read_bytes, share.written_bytes)).collect();
        let expected = [(33_554_432, 33_554_432), (67_108_864, 33_554_432), (145_572_803, 162_074_582)];
        assert_eq!(bytes, expected.map(|(read, written)| (Some(read), Some(written))));
        let found = cifs_connections(include_str!("../../tests/fixtures/cifs-debug-linux6.1.txt"));
        let found: Vec<_> = found.iter().map(|share| (share.dialect, share.directory_leases)).collect();
        assert_eq!(found, [(Some("2.1"), None), (Some("1.0"), None), (Some("3.1.1"), Some(true))]);
    }

    #[test]
    fn reconnects_of_several_servers_are_unknown() {
        let reconnects = |shares: &str| {
            let text = format!("Resources in use\n2 session 1 share reconnects\n\n{shares}");
            cifs_stats(&text).and_then(|found| found.reconnects)
        };
        assert_eq!(reconnects("1) \\\\a\\x\nSMBs: 1\n\n2) \\\\A\\y\nSMBs: 1\n"), Some(2));
        assert_eq!(reconnects("1) \\\\a\\x\nSMBs: 1\n\n2) \\\\b\\x\nSMBs: 1\n"), None);
    }

    #[test]
    fn times_of_commands_belong_to_the_shares_below_them() {
        let found = cifs_stats(include_str!("../../tests/fixtures/cifs-stats-linux6.1.txt")).unwrap();
        let totals = found.shares[0].request_totals;
        assert_eq!((totals.answered, totals.execute_us), (Some(96), Some(3_390_000)), "339 ticks of 10 ms");
        assert_eq!((totals.queue_us, totals.answer_us), (None, None));
        let without = cifs_stats(LINUX_6).unwrap();
        assert!(without.shares.iter().all(|share| share.request_totals == RequestTotals::default()));
    }

    #[test]
    fn a_negative_count_is_read_as_unsigned() {
        let found = cifs_stats(LINUX_6).unwrap();
        let photos = &found.shares[3];
        assert_eq!((photos.name.as_str(), photos.requests), (r"\\10.77.0.2\My Photos", Some(2_147_483_649)));
    }

    #[test]
    fn bytes_that_a_kernel_does_not_report_are_none() {
        let share = &cifs_stats(LINUX_4).unwrap().shares[0];
        assert_eq!((share.requests, share.read_bytes, share.written_bytes), (Some(20), None, None));
    }

    fn dialects(text: &str) -> Vec<Option<&'static str>> {
        cifs_connections(text).iter().map(|share| share.dialect).collect()
    }

    #[test]
    fn dialects_come_in_the_order_of_the_shares() {
        assert_eq!(dialects(DEBUG_6), [Some("3.1.1"), Some("2.1"), Some("1.0"), Some("1.0")]);
        let linux_5_1 = "Servers:\nNumber of credits: 510 Dialect 0x302\n1) Name: x Uses: 1\n\tShares:\n\
            \t0) IPC: \\\\s\\IPC$ Mounts: 1 DevInfo: 0x0\n\t1) \\\\s\\share Mounts: 1 DevInfo: 0x20\n";
        assert_eq!(dialects(linux_5_1), [Some("3.0.2")]);
    }

    #[test]
    fn further_channels_keep_the_capabilities_of_their_session() {
        let found = cifs_connections(
            "1) ConnectionId: 0x1\nNumber of credits: 9,1,1 Dialect 0x311\n\t1) Address: s Capability: 0x300067\n\n\
            \tExtra Channels: 1 \n\n\t\tChannel: 2 ConnectionId: 0x2\n\t\tNumber of credits: 9,1,1 Dialect 0x311\n\
            \tShares: \n\t1) \\\\s\\a Mounts: 1",
        );
        assert_eq!((found[0].dialect, found[0].directory_leases), (Some("3.1.1"), Some(true)));
    }

    #[test]
    fn leases_follow_the_capabilities_of_the_own_server() {
        let shares = |text: &str| -> Vec<_> {
            cifs_connections(text).into_iter().map(|share| share.directory_leases).collect()
        };
        assert_eq!(shares(DEBUG_6)[0], Some(false), "0x300047 lacks 0x20");
        let second =
            "Dialect 0x311\nCapability: 0x20\n1) \\\\s\\a Mounts: 1\nDialect 0x311\n1) \\\\t\\a Mounts: 1\n";
        assert_eq!(shares(second), [Some(true), None]);
    }

    #[test]
    fn leases_are_those_of_the_share_with_the_mounted_dialect() {
        let mount = |source, version: &str| Mount::new("/m", source, Protocol::Smb(Some(version.to_owned())));
        let connections = cifs_connections(DEBUG_6);
        let share = mount("//10.77.0.2/share", "3.1.1");
        assert_eq!(directory_leases(&connections, &share), Some(false));
        assert_eq!(directory_leases(&connections, &mount("//10.77.0.2/Share/deep", "2.1")), None);
        assert_eq!(directory_leases(&[], &share), None);
        let other = CifsConnection { directory_leases: Some(true), ..connections[0].clone() };
        assert_eq!(directory_leases(&[connections[0].clone(), other], &share), None, "they differ");
    }

    #[test]
    fn other_text_is_not_a_stats_file() {
        for text in ["", "cat: no", "Resources\n1) \\\\a\\b\nSMBs: 3\n"] {
            assert_eq!(cifs_stats(text), None);
        }
        assert_eq!(cifs_stats("Resources in use\n").map(|found| found.shares.len()), Some(0));
    }
}
