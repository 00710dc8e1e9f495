//! `/proc/fs/cifs/Stats` and `DebugData` (fs/smb/client/cifs_debug.c; the lines of each dialect are in smb1ops.c and
//! smb2ops.c, `print_stats`).

use super::options::dialect;

/// The `Stats` file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CifsStatistics {
    /// Sessions that had to be made again since the module was loaded, all servers together.
    pub reconnects: Option<u64>,
    /// The shares, in the file's order; a share that is mounted over two connections is in it twice.
    pub shares: Vec<CifsShare>,
}

/// What one connected share has counted. `None` is what this kernel does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CifsShare {
    /// `\\server\share`, as it was mounted.
    pub name: String,
    /// Whether SMB 1 is spoken.
    pub is_smb1: bool,
    /// Requests; echoes are not among them. The kernel counts them in 32 bits and prints them with a sign.
    pub requests: Option<u64>,
    /// Bytes of files that READ brought. Before Linux 4.19 SMB 2 and 3 did not tell.
    pub read_bytes: Option<u64>,
    /// Bytes of files that WRITE took away.
    pub written_bytes: Option<u64>,
}

/// The shares and their counters. `None`: this is not that file.
pub fn cifs_stats(text: &str) -> Option<CifsStatistics> {
    text.starts_with("Resources in use").then_some(())?;
    let mut statistics = CifsStatistics::default();
    for line in text.lines() {
        if let Some(name) = numbered(line) {
            let name = name.split('\t').next().unwrap_or_default().to_owned();
            statistics.shares.push(CifsShare { name, ..CifsShare::default() });
        } else if let Some(share) = statistics.shares.last_mut() {
            add(share, line);
        } else if let Some((count, _)) = line.split_once(" session ") {
            statistics.reconnects = count.trim().parse().ok();
        }
    }
    Some(statistics)
}

/// The rest of a line of the form `3) \\server\share...`.
fn numbered(line: &str) -> Option<&str> {
    let (number, rest) = line.trim_start().split_once(") ")?;
    (number.parse::<u32>().is_ok() && rest.starts_with("\\\\")).then_some(rest)
}

fn add(share: &mut CifsShare, line: &str) {
    let after = |label: &str| {
        let rest = &line[line.find(label)? + label.len()..];
        rest.split_whitespace().next()
    };
    let bytes = |label: &str| after(label).and_then(|word| word.parse().ok());
    if line.starts_with("SMBs: ") {
        share.requests = after("SMBs: ").and_then(count_of_32_bits);
        share.is_smb1 = line.contains("Oplock");
    } else if line.starts_with("Bytes read: ") {
        (share.read_bytes, share.written_bytes) = (bytes("Bytes read: "), bytes("Bytes written: "));
    } else if share.is_smb1 && line.starts_with("Reads: ") {
        share.read_bytes = bytes("Bytes: ");
    } else if share.is_smb1 && line.starts_with("Writes: ") {
        share.written_bytes = bytes("Bytes: ");
    }
}

/// An `atomic_t` that is printed with `%d`.
fn count_of_32_bits(word: &str) -> Option<u64> {
    word.parse::<i32>().ok().map(|count| u64::from(count.cast_unsigned()))
}

/// The dialects of the shares in `DebugData`, which lists them in the order of `Stats`; `None` for one that is not known.
pub fn cifs_dialects(text: &str) -> Vec<Option<&'static str>> {
    let mut spoken = None;
    let mut dialects = vec![];
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Dialect 0x") {
            spoken = rest.split_whitespace().next().and_then(named);
        }
        if numbered(line).is_some_and(|share| share.contains(" Mounts: ")) {
            dialects.push(spoken);
        }
    }
    dialects
}

/// The dialect with this number (MS-SMB2 2.2.3); SMB 1 has none, and shows as 0.
fn named(number: &str) -> Option<&'static str> {
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
    use proptest::prelude::*;

    const LINUX_6: &str = include_str!("../../../tests/fixtures/cifs-stats-linux6.txt");
    const LINUX_4: &str = include_str!("../../../tests/fixtures/cifs-stats-linux4.txt");
    const DEBUG_6: &str = include_str!("../../../tests/fixtures/cifs-debug-linux6.txt");

    #[test]
    fn each_share_tells_its_bytes_and_requests_in_the_words_of_its_dialect() {
        let found = cifs_stats(LINUX_6).unwrap();
        assert_eq!((found.reconnects, found.shares.len()), (Some(2), 4));
        let bytes = |place: usize| (found.shares[place].read_bytes, found.shares[place].written_bytes);
        assert_eq!(bytes(0), (Some(33_554_432), Some(33_555_456)));
        assert_eq!(bytes(2), (Some(49_152), Some(12_288)));
        let smb1: Vec<bool> = found.shares.iter().map(|share| share.is_smb1).collect();
        assert_eq!(smb1, [false, false, true, false]);
        assert_eq!(found.shares[0].name, r"\\10.77.0.2\share");
    }

    #[test]
    fn what_a_kernel_really_wrote_is_read() {
        let found = cifs_stats(include_str!("../../../tests/fixtures/cifs-stats-linux6.1.txt")).unwrap();
        let bytes: Vec<_> =
            found.shares.iter().map(|share| (share.read_bytes, share.written_bytes)).collect();
        let expected = [(33_554_432, 33_554_432), (67_108_864, 33_554_432), (145_572_803, 162_074_582)];
        assert_eq!(bytes, expected.map(|(read, written)| (Some(read), Some(written))));
        let dialects = cifs_dialects(include_str!("../../../tests/fixtures/cifs-debug-linux6.1.txt"));
        assert_eq!(dialects, [Some("2.1"), Some("1.0"), Some("3.1.1")]);
    }

    #[test]
    fn a_count_that_the_kernel_prints_below_zero_goes_on_above_two_thousand_million() {
        let found = cifs_stats(LINUX_6).unwrap();
        let photos = &found.shares[3];
        assert_eq!((photos.name.as_str(), photos.requests), (r"\\10.77.0.2\My Photos", Some(2_147_483_649)));
    }

    #[test]
    fn a_kernel_that_does_not_tell_bytes_gives_none_and_no_zero() {
        let share = &cifs_stats(LINUX_4).unwrap().shares[0];
        assert_eq!((share.requests, share.read_bytes, share.written_bytes), (Some(20), None, None));
    }

    #[test]
    fn dialects_come_in_the_order_of_the_shares() {
        assert_eq!(cifs_dialects(DEBUG_6), [Some("3.1.1"), Some("2.1"), Some("1.0"), Some("1.0")]);
        let linux_5_1 = "Servers:\nNumber of credits: 510 Dialect 0x302\n1) Name: x Uses: 1\n\tShares:\n\
            \t0) IPC: \\\\s\\IPC$ Mounts: 1 DevInfo: 0x0\n\t1) \\\\s\\share Mounts: 1 DevInfo: 0x20\n";
        assert_eq!(cifs_dialects(linux_5_1), [Some("3.0.2")]);
    }

    #[test]
    fn something_else_is_not_that_file() {
        for text in ["", "cat: no", "Resources\n1) \\\\a\\b\nSMBs: 3\n"] {
            assert_eq!(cifs_stats(text), None);
        }
        assert_eq!(cifs_stats("Resources in use\n").map(|found| found.shares.len()), Some(0));
    }

    proptest! {
        #[test]
        fn any_text_ends_without_panic(text in "[\\\\0-9A-Za-zä):\n\t $-]{0,300}") {
            let text = format!("Resources in use\n1) \\\\a\\b\n{text}");
            let found = cifs_stats(&text).map(|found| found.shares.len());
            prop_assert!(found.is_some_and(|shares| shares <= text.len()));
            prop_assert!(cifs_dialects(&text).len() <= text.len());
        }
    }
}
