//! Which counter belongs to which target. Pure: what the sources said comes in, readings go out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use super::parse::{
    CifsShare, CifsStatistics, Connection, InterfaceCounters, NfsClient, NfsStatistics, SmbSession,
};
use crate::model::{Counters, Covers, Mount, Protocol, Reading, Source, TargetName, Unread};

/// What a source said, or why it said nothing; `None`: this system has no such source, or nothing to ask it.
pub(super) type Answer<T> = Option<Result<T, String>>;

/// What every source said, each asked once for all targets.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// `/proc/self/mountstats`.
    pub mountstats: Answer<Vec<NfsStatistics>>,
    /// `/proc/fs/cifs/Stats`, with the dialects of its shares where `DebugData` told them.
    pub cifs: Answer<(CifsStatistics, Vec<Option<&'static str>>)>,
    /// The TCP connections to the ports of file servers.
    pub connections: Answer<Vec<Connection>>,
    /// `smbutil multichannel`.
    pub sessions: Answer<BTreeMap<PathBuf, SmbSession>>,
    /// `nfsstat -c`.
    pub nfs_client: Answer<NfsClient>,
    /// The interfaces.
    pub interfaces: Answer<Vec<InterfaceCounters>>,
}

impl Said {
    /// What this says of each target, and of the machine.
    pub fn readings(&self, targets: &[(TargetName, Mount)]) -> Vec<Reading> {
        let of_target = |(name, mount): &(TargetName, Mount)| Reading {
            target: Some(name.clone()),
            counters: self.counters(mount),
        };
        let machine = Reading { target: None, counters: self.of_machine() };
        targets.iter().map(of_target).chain([machine]).collect()
    }

    fn counters(&self, mount: &Mount) -> Vec<Result<Counters, Unread>> {
        let answers = match mount.protocol {
            Protocol::Nfs(_) => [
                told(&self.mountstats, Source::Mountstats, |mounts| nfs_mount(mounts, mount)),
                told(&self.nfs_client, Source::Nfsstat, nfs_client),
                self.of_connections(mount),
            ],
            Protocol::Smb(_) => [
                told(&self.cifs, Source::CifsStats, |(found, dialects)| share((found, dialects), mount)),
                told(&self.sessions, Source::Smbutil, |sessions| session(sessions, mount)),
                self.of_connections(mount),
            ],
            Protocol::Afp => [None, None, self.of_connections(mount)],
            Protocol::Webdav
            | Protocol::Sftp
            | Protocol::Fuse(_)
            | Protocol::Local(_)
            | Protocol::Other(_) => [None, None, None],
        };
        answers.into_iter().flatten().collect()
    }

    fn of_connections(&self, mount: &Mount) -> Option<Result<Counters, Unread>> {
        told(&self.connections, Source::Connections, |all| connections(all, mount, mount.server))
    }

    fn of_machine(&self) -> Vec<Result<Counters, Unread>> {
        match &self.interfaces {
            None => vec![],
            Some(Err(why)) => vec![Err(Unread { source: Source::Interface("any".into()), why: why.clone() })],
            Some(Ok(found)) => {
                found.iter().filter(|one| one.name != "lo" && one.name != "lo0").map(interface).collect()
            }
        }
    }
}

/// The counters that a source's answer holds, or why there are none.
fn told<T>(
    answer: &Answer<T>,
    source: Source,
    counters: impl FnOnce(&T) -> Result<Counters, String>,
) -> Option<Result<Counters, Unread>> {
    let known = answer.as_ref()?.as_ref().map_err(Clone::clone).and_then(counters);
    Some(known.map_err(|why| Unread { source, why }))
}

/// The ports of a protocol's server.
pub(super) fn ports(protocol: &Protocol) -> &'static [u16] {
    match protocol {
        Protocol::Nfs(_) => &[2049],
        Protocol::Smb(_) => &[445, 139],
        Protocol::Afp => &[548],
        Protocol::Webdav | Protocol::Sftp | Protocol::Fuse(_) | Protocol::Local(_) | Protocol::Other(_) => {
            &[]
        }
    }
}

/// Of several mounts on one point the last covers the others. Bytes are those of files, without headers.
fn nfs_mount(mounts: &[NfsStatistics], mount: &Mount) -> Result<Counters, String> {
    let found = mounts.iter().rev().find(|known| known.point == mount.point);
    let found = found.ok_or("the mount is not listed there")?;
    if !found.is_known() {
        return Err(format!("its version {} is not known to this longhaul", found.version));
    }
    let life = mount.device.clone().unwrap_or_else(|| mount.point.display().to_string());
    let operations = found.operations;
    Ok(Counters {
        age_seconds: found.age_seconds,
        read_bytes: found.read_bytes,
        written_bytes: found.written_bytes,
        requests: operations.map(|counted| counted.requests),
        retransmissions: operations.map(|counted| counted.retransmissions),
        reconnects: found.connects,
        round_trips: operations.map(|counted| (counted.all, counted.round_trip_ms.saturating_mul(1000))),
        server: mount.server,
        ..Counters::of(Source::Mountstats, Covers::Mount, life)
    })
}

/// The share of a mount. Two mounts that do not share their connection are two shares of one name: they are told apart by
/// their dialects; where these are the same too, what is told is the sum.
fn share(
    (found, dialects): (&CifsStatistics, &[Option<&'static str>]),
    mount: &Mount,
) -> Result<Counters, String> {
    let dialect = |place: usize| {
        dialects.get(place).copied().flatten().filter(|_| dialects.len() == found.shares.len())
    };
    let fits = |(place, share): &(usize, &CifsShare)| {
        is_named(&share.name, &mount.source) && may_be(share, dialect(*place), &mount.protocol)
    };
    let shares: Vec<&CifsShare> =
        found.shares.iter().enumerate().filter(fits).map(|(_, share)| share).collect();
    let first = shares.first().ok_or("the share is not listed there")?;
    let covers = if shares.len() == 1 { Covers::Mount } else { Covers::Server };
    let sum = |count: fn(&CifsShare) -> Option<u64>| {
        shares.iter().map(|share| count(share)).try_fold(0u64, |sum, one| Some(sum.wrapping_add(one?)))
    };
    Ok(Counters {
        read_bytes: sum(|share| share.read_bytes),
        written_bytes: sum(|share| share.written_bytes),
        requests: sum(|share| share.requests),
        reconnects: found.reconnects,
        server: mount.server,
        ..Counters::of(Source::CifsStats, covers, format!("{} {}", first.name, mount.protocol))
    })
}

/// Whether `\\server\share` is what a mount table calls `//server/share/folder`.
fn is_named(share: &str, source: &str) -> bool {
    let parts = |text: &str, mark: char| -> Option<(String, String)> {
        let mut parts = text.trim_start_matches(mark).splitn(3, mark).map(str::to_lowercase);
        Some((parts.next()?, parts.next()?))
    };
    let share = parts(share, '\\');
    share.is_some() && share == parts(source, '/')
}

/// Whether a share may be the one that is mounted with this dialect.
fn may_be(share: &CifsShare, dialect: Option<&str>, protocol: &Protocol) -> bool {
    let Protocol::Smb(Some(mounted)) = protocol else { return true };
    share.is_smb1 == (mounted == "1.0") && dialect.is_none_or(|dialect| dialect == mounted)
}

fn session(sessions: &BTreeMap<PathBuf, SmbSession>, mount: &Mount) -> Result<Counters, String> {
    let found = sessions.get(&mount.point).ok_or("the mount is not listed there")?;
    let server = found.server.or(mount.server);
    let set_up = found.set_up.as_deref().unwrap_or_default();
    let life = format!(
        "{} {set_up}",
        server.map_or_else(|| super::parse::server(&mount.source).to_owned(), |at| at.to_string())
    );
    Ok(Counters {
        read_bytes: found.received,
        written_bytes: found.sent,
        reconnects: found.reconnects,
        server,
        ..Counters::of(Source::Smbutil, Covers::Server, life)
    })
}

fn nfs_client(found: &NfsClient) -> Result<Counters, String> {
    Ok(Counters {
        requests: found.requests,
        retransmissions: found.retransmissions,
        ..Counters::of(Source::Nfsstat, Covers::Protocol, String::new())
    })
}

/// All connections to the server's port; to that port on any server if the server is not known.
fn connections(all: &[Connection], mount: &Mount, server: Option<IpAddr>) -> Result<Counters, String> {
    let mut found: Vec<&Connection> = all
        .iter()
        .filter(|one| ports(&mount.protocol).contains(&one.port))
        .filter(|one| server.is_none_or(|server| one.server == server.to_canonical()))
        .collect();
    if found.is_empty() {
        return Err("no connection to the server is open just now".to_owned());
    }
    found.sort_by_key(|one| one.local_port);
    let covers = if server.is_some() { Covers::Server } else { Covers::Protocol };
    let locals: Vec<String> = found.iter().map(|one| one.local_port.to_string()).collect();
    let life = format!("{} from {}", found[0].server, locals.join(" "));
    let sum = |count: fn(&Connection) -> Option<u64>| {
        found.iter().map(|one| count(one)).try_fold(0u64, |sum, one| Some(sum.wrapping_add(one?)))
    };
    Ok(Counters {
        read_bytes: sum(|one| one.received),
        written_bytes: sum(|one| one.sent),
        retransmissions: sum(|one| one.retransmissions),
        packet_round_trip_us: found.iter().filter_map(|one| one.round_trip_us).min(),
        server,
        ..Counters::of(Source::Connections, covers, life)
    })
}

fn interface(found: &InterfaceCounters) -> Result<Counters, Unread> {
    Ok(Counters {
        read_bytes: Some(found.received),
        written_bytes: Some(found.sent),
        errors: Some(found.errors),
        ..Counters::of(Source::Interface(found.name.clone()), Covers::Interface, found.name.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const LINUX_6: &str = include_str!("../../tests/fixtures/cifs-stats-linux6.txt");
    const DEBUG_6: &str = include_str!("../../tests/fixtures/cifs-debug-linux6.txt");
    const NFS_6: &[u8] = include_bytes!("../../tests/fixtures/mountstats-linux6.txt");

    fn targets() -> Vec<(TargetName, Mount)> {
        let table = "1 1 0:51 / /m/nfs4 rw - nfs4 10.77.0.2:/ rw,vers=4.2,addr=10.77.0.2\n\
            1 1 0:52 / /m/smb3 rw - cifs //10.77.0.2/share rw,vers=3.1.1,addr=10.77.0.2\n\
            1 1 0:53 / /m/smb2 rw - cifs //10.77.0.2/Share/deep rw,vers=2.1,addr=10.77.0.2\n\
            1 1 0:54 / /m/smb1 rw - cifs //10.77.0.2/share rw,vers=1.0,addr=10.77.0.2\n\
            1 1 0:55 / /m/other rw - cifs //10.77.0.2/other rw,vers=3.0,addr=10.77.0.2\n\
            1 1 8:1 / / rw - ext4 /dev/a rw\n";
        let names = ["nfs4", "smb3", "smb2", "smb1", "other", "disk"];
        let names = names.into_iter().map(|name| name.parse().expect("a name"));
        names.zip(parse::mountinfo(table.as_bytes())).collect()
    }

    fn connection(port: u16, local_port: u16) -> Connection {
        Connection {
            server: "10.77.0.2".parse().expect("an address"),
            port,
            local_port,
            received: Some(100),
            sent: Some(10),
            retransmissions: Some(1),
            round_trip_us: Some(u64::from(local_port)),
        }
    }

    fn said() -> Said {
        let cifs = (parse::cifs_stats(LINUX_6).expect("the file"), parse::cifs_dialects(DEBUG_6));
        let elsewhere =
            Connection { server: "10.77.0.3".parse().expect("an address"), ..connection(2049, 800) };
        Said {
            mountstats: Some(Ok(parse::mountstats(NFS_6))),
            cifs: Some(Ok(cifs)),
            connections: Some(Ok(vec![
                connection(445, 7),
                connection(2049, 795),
                elsewhere,
                connection(445, 6),
            ])),
            interfaces: Some(Ok(parse::net_dev(
                "lo: 1 1 0 0 0 0 0 0 1 1 0 0\neth0: 7 1 0 0 0 0 0 0 8 1 0 2\n",
            ))),
            ..Said::default()
        }
    }

    fn of(said: &Said, name: &str, source: &Source) -> Option<Result<Counters, Unread>> {
        let readings = said.readings(&targets());
        let reading = readings
            .into_iter()
            .find(|one| one.target.as_ref().is_some_and(|known| known.as_str() == name))?;
        let is_it = |answer: &Result<Counters, Unread>| match answer {
            Ok(counters) => counters.source == *source,
            Err(unread) => unread.source == *source,
        };
        reading.counters.into_iter().find(is_it)
    }

    fn why(said: &Said, name: &str, source: &Source) -> Option<String> {
        of(said, name, source)?.err().map(|unread| unread.why)
    }

    #[test]
    fn two_connections_to_one_share_are_told_apart_by_their_dialects() {
        let read =
            |name| of(&said(), name, &Source::CifsStats)?.ok().map(|found| (found.covers, found.read_bytes));
        assert_eq!(read("smb3"), Some((Covers::Mount, Some(33_554_432))));
        assert_eq!(read("smb2"), Some((Covers::Mount, Some(4096))));
        assert_eq!(read("smb1"), Some((Covers::Mount, Some(49_152))));
    }

    #[test]
    fn what_cannot_be_told_apart_is_added_up_and_said_to_be_the_servers() {
        let mut said = said();
        said.cifs = Some(Ok((parse::cifs_stats(LINUX_6).expect("the file"), vec![])));
        let found = of(&said, "smb3", &Source::CifsStats).unwrap().unwrap();
        assert_eq!((found.covers, found.read_bytes), (Covers::Server, Some(33_554_432 + 4096)));
        assert_eq!(found.requests, Some(1201 + 17));
    }

    #[test]
    fn a_source_that_is_missing_or_does_not_know_the_mount_is_unread_and_never_zero() {
        let mut said = said();
        assert_eq!(why(&said, "other", &Source::CifsStats).as_deref(), Some("the share is not listed there"));
        said.mountstats = Some(Err("/proc/self/mountstats is empty".to_owned()));
        assert_eq!(
            why(&said, "nfs4", &Source::Mountstats).as_deref(),
            Some("/proc/self/mountstats is empty")
        );
        said.mountstats = Some(Ok(vec![]));
        assert_eq!(why(&said, "nfs4", &Source::Mountstats).as_deref(), Some("the mount is not listed there"));
        said.connections = Some(Ok(vec![]));
        assert!(why(&said, "nfs4", &Source::Connections).is_some());
    }

    #[test]
    fn a_version_that_is_not_known_is_not_read() {
        let mut said = said();
        let text = String::from_utf8_lossy(NFS_6).replace("nfs4 statvers=1.1", "nfs4 statvers=2.0");
        said.mountstats = Some(Ok(parse::mountstats(text.as_bytes())));
        assert!(why(&said, "nfs4", &Source::Mountstats).unwrap().contains("2.0"));
    }

    #[test]
    fn connections_belong_to_the_server_by_address_and_port() {
        let found = of(&said(), "smb3", &Source::Connections).unwrap().unwrap();
        assert_eq!(
            (found.covers, found.read_bytes, found.written_bytes),
            (Covers::Server, Some(200), Some(20))
        );
        assert_eq!((found.life.as_str(), found.packet_round_trip_us), ("10.77.0.2 from 6 7", Some(6)));
        let nfs = of(&said(), "nfs4", &Source::Connections).unwrap().unwrap();
        assert_eq!(nfs.read_bytes, Some(100), "not those to another server");
    }

    #[test]
    fn a_mac_tells_sessions_and_servers_by_mount_point() {
        let point = PathBuf::from("/m/smb3");
        let session =
            SmbSession { received: Some(9), set_up: Some("noon".to_owned()), ..SmbSession::default() };
        let said = Said {
            sessions: Some(Ok(BTreeMap::from([(point, session)]))),
            nfs_client: Some(Ok(NfsClient { requests: Some(5), retransmissions: None })),
            connections: Some(Err("the list is not given".to_owned())),
            ..Said::default()
        };
        let smb = of(&said, "smb3", &Source::Smbutil).unwrap().unwrap();
        assert_eq!((smb.covers, smb.read_bytes, smb.written_bytes), (Covers::Server, Some(9), None));
        assert_eq!(smb.life, "10.77.0.2 noon");
        assert!(why(&said, "other", &Source::Smbutil).is_some());
        let nfs = of(&said, "nfs4", &Source::Nfsstat).unwrap().unwrap();
        assert_eq!((nfs.covers, nfs.requests, nfs.read_bytes), (Covers::Protocol, Some(5), None));
    }

    #[test]
    fn the_machine_tells_its_interfaces_and_a_local_disk_nothing() {
        let readings = said().readings(&targets());
        let machine = readings.last().unwrap();
        assert_eq!((machine.target.as_ref(), machine.counters.len()), (None, 1), "without the loopback");
        let found = machine.counters[0].as_ref().unwrap();
        assert_eq!((found.read_bytes, found.written_bytes, found.errors), (Some(7), Some(8), Some(2)));
        assert_eq!(readings[5].counters, []);
    }
}
