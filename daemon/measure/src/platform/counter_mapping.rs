//! Assigns counters to targets. All functions are pure: they take the answers of the sources and return
//! readings.

use std::net::IpAddr;

use super::request_totals::{nfs_request_totals, tcp_of_connections};
use crate::parse::{
    CifsConnection, CifsShare, CifsStatistics, Connection, InterfaceCounters, NfsStatistics, SmbSession,
    is_same_share,
};
use longhaul_model::{
    CounterReading, CounterScope, CounterSource, CounterUnavailable, Counters, Mount, Protocol,
    RequestCounts, RequestTotals, TargetName,
};

/// Answer of a source, or the reason why there is none. `None` if this system does not have the source or if
/// no target needs it.
pub(super) type SourceAnswer<T> = Option<Result<T, String>>;

/// Answers of all sources, each queried once for all targets.
#[derive(Debug, Default)]
pub(super) struct SourceAnswers {
    /// NFS mounts in `/proc/self/mountstats`.
    pub mountstats: SourceAnswer<Vec<NfsStatistics>>,
    /// SMB shares in `/proc/fs/cifs/Stats`, with those in `DebugData` if it was needed.
    pub cifs: SourceAnswer<(CifsStatistics, Vec<CifsConnection>)>,
    /// TCP connections to the ports of file servers.
    pub connections: SourceAnswer<Vec<Connection>>,
    /// Network interfaces.
    pub interfaces: SourceAnswer<Vec<InterfaceCounters>>,
}

impl SourceAnswers {
    /// Returns the readings of each target, followed by that of the machine.
    pub fn readings(&self, targets: &[(TargetName, Mount)]) -> Vec<CounterReading> {
        let of_target = |(name, mount): &(TargetName, Mount)| CounterReading {
            target: Some(name.clone()),
            counters: self.mount_counters(mount),
        };
        let machine = CounterReading { target: None, counters: self.interface_counters() };
        targets.iter().map(of_target).chain([machine]).collect()
    }

    /// Returns the counters of a mount from each source that has some, or the reason why a source has none.
    pub fn mount_counters(&self, mount: &Mount) -> Vec<Result<Counters, CounterUnavailable>> {
        let answers = match mount.protocol {
            Protocol::Nfs(_) => [
                counters_from_answer(&self.mountstats, CounterSource::Mountstats, |mounts| {
                    nfs_counters(mounts, mount)
                }),
                self.connection_counters(mount),
            ],
            Protocol::Smb(_) => [
                counters_from_answer(&self.cifs, CounterSource::CifsStats, |(found, connections)| {
                    smb_share_counters(found, connections, mount)
                }),
                self.connection_counters(mount),
            ],
            Protocol::Afp => [None, self.connection_counters(mount)],
            Protocol::Webdav
            | Protocol::Sftp
            | Protocol::Fuse(_)
            | Protocol::Local(_)
            | Protocol::Other(_) => [None, None],
        };
        answers.into_iter().flatten().collect()
    }

    fn connection_counters(&self, mount: &Mount) -> Option<Result<Counters, CounterUnavailable>> {
        counters_from_answer(&self.connections, CounterSource::Connections, |all| {
            tcp_counters(all, mount, mount.server)
        })
    }

    fn interface_counters(&self) -> Vec<Result<Counters, CounterUnavailable>> {
        match &self.interfaces {
            None => vec![],
            Some(Err(why)) => vec![Err(CounterUnavailable {
                source: CounterSource::Interface("any".into()),
                reason: why.clone(),
            })],
            Some(Ok(found)) => {
                found.iter().filter(|one| !one.is_internal()).map(interface_counters).collect()
            }
        }
    }
}

/// Converts the answer of a source into counters, or into the reason why there are none.
fn counters_from_answer<T>(
    answer: &SourceAnswer<T>,
    source: CounterSource,
    counters: impl FnOnce(&T) -> Result<Counters, String>,
) -> Option<Result<Counters, CounterUnavailable>> {
    let known = answer.as_ref()?.as_ref().map_err(Clone::clone).and_then(counters);
    Some(known.map_err(|why| CounterUnavailable { source, reason: why }))
}

/// Returns the TCP ports of a protocol's server.
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

/// Returns the counters of an NFS mount. Of several mounts on one mount point the last one covers the others.
/// Bytes are those of files, without headers.
fn nfs_counters(mounts: &[NfsStatistics], mount: &Mount) -> Result<Counters, String> {
    let found = mounts.iter().rev().find(|known| known.point == mount.point);
    let found = found.ok_or("the mount is not listed")?;
    if !found.is_known() {
        return Err(format!("unknown statistics version {}", found.version));
    }
    let instance_id = mount.device.clone().unwrap_or_else(|| mount.point.display().to_string());
    let operations = found.operations;
    Ok(Counters {
        age_seconds: found.age_seconds,
        read_bytes: found.read_bytes,
        written_bytes: found.written_bytes,
        requests: operations.map(|counted| counted.requests),
        requests_by_kind: operations.map(|counted| counted.by_kind).unwrap_or_default(),
        retransmits: operations.map(|counted| counted.retransmits),
        reconnects: found.connects,
        round_trips: operations
            .map(|counted| (counted.all_requests, counted.round_trip_ms.saturating_mul(1000))),
        request_totals: operations.map(|counted| nfs_request_totals(&counted)).unwrap_or_default(),
        server: mount.server,
        ..Counters::new(CounterSource::Mountstats, CounterScope::Mount, instance_id)
    })
}

/// Returns the counters of a mount's SMB share. Two mounts that do not share their connection appear as two
/// shares with the same name: their dialects distinguish them. If the dialects are equal too, the counters
/// are added up and their scope is the server; the times of requests are unknown, because each connection has its own.
fn smb_share_counters(
    found: &CifsStatistics,
    connections: &[CifsConnection],
    mount: &Mount,
) -> Result<Counters, String> {
    let dialect = |index: usize| {
        let connection = connections.get(index).filter(|_| connections.len() == found.shares.len());
        connection.and_then(|connection| connection.dialect)
    };
    let fits = |(index, share): &(usize, &CifsShare)| {
        is_same_share(&share.name, &mount.source) && matches_dialect(share, dialect(*index), &mount.protocol)
    };
    let shares: Vec<&CifsShare> =
        found.shares.iter().enumerate().filter(fits).map(|(_, share)| share).collect();
    let first = shares.first().ok_or("the share is not listed")?;
    let scope = if shares.len() == 1 { CounterScope::Mount } else { CounterScope::Server };
    let sum = |count: fn(&CifsShare) -> Option<u64>| {
        shares.iter().map(|share| count(share)).try_fold(0u64, |sum, one| Some(sum.wrapping_add(one?)))
    };
    Ok(Counters {
        read_bytes: sum(|share| share.read_bytes),
        written_bytes: sum(|share| share.written_bytes),
        requests: sum(|share| share.requests),
        requests_by_kind: summed_requests(&shares),
        reconnects: found.reconnects,
        request_totals: if shares.len() == 1 { first.request_totals } else { RequestTotals::default() },
        server: mount.server,
        ..Counters::new(CounterSource::CifsStats, scope, format!("{} {}", first.name, mount.protocol))
    })
}

/// Adds up the requests of shares; a kind that one of them does not count is unknown.
fn summed_requests(shares: &[&CifsShare]) -> RequestCounts {
    let sums = shares.iter().map(|share| share.by_kind);
    sums.reduce(|sum, one| sum.combine(&one, |a, b| Some(a.wrapping_add(b))).unwrap_or_default())
        .unwrap_or_default()
}

/// Returns whether a share may be the one that is mounted with this protocol and dialect.
fn matches_dialect(share: &CifsShare, dialect: Option<&str>, protocol: &Protocol) -> bool {
    let Protocol::Smb(Some(mounted)) = protocol else { return true };
    share.is_smb1 == (mounted == "1.0") && dialect.is_none_or(|dialect| dialect == mounted)
}

/// Returns the counters of a mount's SMB session, as `smbutil multichannel` reports them on macOS.
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "used on macOS and in tests only"))]
pub(super) fn smb_session_counters(found: &SmbSession, mount: &Mount) -> Counters {
    let server = found.server.or(mount.server);
    let set_up = found.setup_time.as_deref().map_or_else(String::new, time_within_quarter_hour);
    let instance_id = format!(
        "{} {set_up}",
        server.map_or_else(|| crate::parse::server_of_source(&mount.source).to_owned(), |at| at.to_string())
    );
    Counters {
        read_bytes: found.received,
        written_bytes: found.sent,
        reconnects: found.reconnects,
        server,
        ..Counters::new(CounterSource::Smbutil, CounterScope::Server, instance_id)
    }
}

/// Returns the part of a session's setup time that is the same in every time zone: `smbutil` prints local
/// time, time zone offsets are multiples of a quarter of an hour, and a change of time zone must not look
/// like a new session. A session that starts at the same second of another quarter of an hour is still
/// recognized by its counters, which start again.
fn time_within_quarter_hour(set_up: &str) -> String {
    let mut parts = set_up.rsplit(':');
    let seconds = parts.next().unwrap_or_default();
    match parts.next().and_then(|minutes| minutes.parse::<u32>().ok()) {
        Some(minutes) => format!("{}:{seconds}", minutes % 15),
        None => set_up.to_owned(),
    }
}

fn tcp_counters(all: &[Connection], mount: &Mount, server: Option<IpAddr>) -> Result<Counters, String> {
    let mut found: Vec<&Connection> = all
        .iter()
        .filter(|one| ports(&mount.protocol).contains(&one.port))
        .filter(|one| server.is_none_or(|server| one.server == server.to_canonical()))
        .collect();
    if found.is_empty() {
        // In a container there may be one, in the network namespace of the machine.
        return Err("no connection to the server is visible here".to_owned());
    }
    // The local ports become part of the identity of the counter, so their order must be stable.
    found.sort_by_key(|one| one.local_port);
    let scope = if server.is_some() { CounterScope::Server } else { CounterScope::Protocol };
    let locals: Vec<String> = found.iter().map(|one| one.local_port.to_string()).collect();
    let instance_id = format!("{} from {}", found[0].server, locals.join(" "));
    let sum = |count: fn(&Connection) -> Option<u64>| {
        found.iter().map(|one| count(one)).try_fold(0u64, |sum, one| Some(sum.wrapping_add(one?)))
    };
    Ok(Counters {
        read_bytes: sum(|one| one.received),
        written_bytes: sum(|one| one.sent),
        retransmits: sum(|one| one.retransmits),
        tcp_rtt_us: found.iter().filter_map(|one| one.round_trip_us).min(),
        tcp: tcp_of_connections(&found),
        server,
        ..Counters::new(CounterSource::Connections, scope, instance_id)
    })
}

fn interface_counters(found: &InterfaceCounters) -> Result<Counters, CounterUnavailable> {
    Ok(Counters {
        read_bytes: Some(found.received),
        written_bytes: Some(found.sent),
        errors: Some(found.errors),
        ..Counters::new(
            CounterSource::Interface(found.name.clone()),
            CounterScope::Interface,
            found.name.clone(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use longhaul_model::TcpCounters;

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
            retransmits: Some(1),
            round_trip_us: Some(u64::from(local_port)),
            idle_ms: None,
            tcp: TcpCounters::default(),
        }
    }

    fn answers() -> SourceAnswers {
        let cifs = (parse::cifs_stats(LINUX_6).expect("the file"), parse::cifs_connections(DEBUG_6));
        let elsewhere =
            Connection { server: "10.77.0.3".parse().expect("an address"), ..connection(2049, 800) };
        SourceAnswers {
            mountstats: Some(Ok(parse::mountstats(NFS_6))),
            cifs: Some(Ok(cifs)),
            connections: Some(Ok(vec![
                connection(445, 7),
                connection(2049, 795),
                elsewhere,
                connection(445, 6),
            ])),
            interfaces: Some(Ok(parse::net_dev(
                "lo: 1 1 0 0 0 0 0 0 1 1 0 0\neth0: 7 1 0 0 0 0 0 0 8 1 0 2\nveth1a2b: 5 1 0 0 0 0 0 0 5 1 0 0\n",
            ))),
        }
    }

    fn counters_of(
        answers: &SourceAnswers,
        name: &str,
        source: &CounterSource,
    ) -> Option<Result<Counters, CounterUnavailable>> {
        let readings = answers.readings(&targets());
        let reading = readings
            .into_iter()
            .find(|one| one.target.as_ref().is_some_and(|known| known.as_str() == name))?;
        let is_from_source = |answer: &Result<Counters, CounterUnavailable>| match answer {
            Ok(counters) => counters.source == *source,
            Err(unavailable) => unavailable.source == *source,
        };
        reading.counters.into_iter().find(is_from_source)
    }

    fn why(answers: &SourceAnswers, name: &str, source: &CounterSource) -> Option<String> {
        counters_of(answers, name, source)?.err().map(|unavailable| unavailable.reason)
    }

    #[test]
    fn dialects_distinguish_two_connections_to_one_share() {
        let read = |name| {
            counters_of(&answers(), name, &CounterSource::CifsStats)?
                .ok()
                .map(|found| (found.scope, found.read_bytes))
        };
        assert_eq!(read("smb3"), Some((CounterScope::Mount, Some(33_554_432))));
        assert_eq!(read("smb2"), Some((CounterScope::Mount, Some(4096))));
        assert_eq!(read("smb1"), Some((CounterScope::Mount, Some(49_152))));
    }

    #[test]
    fn equal_shares_are_added_up_with_server_scope() {
        let mut answers = answers();
        let mut cifs = parse::cifs_stats(LINUX_6).expect("the file");
        cifs.shares.iter_mut().for_each(|share| share.request_totals.answered = Some(9));
        answers.cifs = Some(Ok((cifs, vec![])));
        let found = counters_of(&answers, "smb3", &CounterSource::CifsStats).unwrap().unwrap();
        assert_eq!((found.scope, found.read_bytes), (CounterScope::Server, Some(33_554_432 + 4096)));
        assert_eq!(found.requests, Some(1201 + 17));
        assert_eq!(found.request_totals.answered, None, "that of the other connection is not this mount's");
    }

    #[test]
    fn a_missing_source_or_mount_is_unavailable_not_zero() {
        let mut answers = answers();
        assert_eq!(
            why(&answers, "other", &CounterSource::CifsStats).as_deref(),
            Some("the share is not listed")
        );
        answers.mountstats = Some(Err("/proc/self/mountstats is empty".to_owned()));
        assert_eq!(
            why(&answers, "nfs4", &CounterSource::Mountstats).as_deref(),
            Some("/proc/self/mountstats is empty")
        );
        answers.mountstats = Some(Ok(vec![]));
        assert_eq!(
            why(&answers, "nfs4", &CounterSource::Mountstats).as_deref(),
            Some("the mount is not listed")
        );
        answers.connections = Some(Ok(vec![]));
        assert!(why(&answers, "nfs4", &CounterSource::Connections).unwrap().contains("visible here"));
    }

    #[test]
    fn an_unknown_statistics_version_is_not_read() {
        let mut answers = answers();
        let text = String::from_utf8_lossy(NFS_6).replace("nfs4 statvers=1.1", "nfs4 statvers=2.0");
        answers.mountstats = Some(Ok(parse::mountstats(text.as_bytes())));
        assert!(why(&answers, "nfs4", &CounterSource::Mountstats).unwrap().contains("2.0"));
    }

    #[test]
    fn connections_belong_to_the_server_by_address_and_port() {
        let found = counters_of(&answers(), "smb3", &CounterSource::Connections).unwrap().unwrap();
        assert_eq!(
            (found.scope, found.read_bytes, found.written_bytes),
            (CounterScope::Server, Some(200), Some(20))
        );
        assert_eq!((found.instance_id.as_str(), found.tcp_rtt_us), ("10.77.0.2 from 6 7", Some(6)));
        let nfs = counters_of(&answers(), "nfs4", &CounterSource::Connections).unwrap().unwrap();
        assert_eq!(nfs.read_bytes, Some(100), "connections to another server do not count");
    }

    #[test]
    fn smb_session_of_a_mac_has_the_scope_of_its_server() {
        let session = SmbSession {
            received: Some(9),
            setup_time: Some("2026-11-20 09:47:01".to_owned()),
            ..SmbSession::default()
        };
        let (name, mount) = &targets()[1];
        let smb = smb_session_counters(&session, mount);
        assert_eq!((name.as_str(), smb.source), ("smb3", CounterSource::Smbutil));
        assert_eq!((smb.scope, smb.read_bytes, smb.written_bytes), (CounterScope::Server, Some(9), None));
        assert_eq!(smb.instance_id, "10.77.0.2 2:01");
    }

    #[test]
    fn a_change_of_time_zone_is_not_a_new_session() {
        assert_eq!(
            time_within_quarter_hour("2026-11-20 09:12:01"),
            time_within_quarter_hour("2026-11-20 14:57:01")
        );
        assert_ne!(
            time_within_quarter_hour("2026-11-20 09:12:01"),
            time_within_quarter_hour("2026-11-20 09:12:02")
        );
        assert_eq!(time_within_quarter_hour("noon"), "noon");
    }

    #[test]
    fn interfaces_belong_to_the_machine_and_not_to_a_disk() {
        let readings = answers().readings(&targets());
        let machine = readings.last().unwrap();
        assert_eq!(
            (machine.target.as_ref(), machine.counters.len()),
            (None, 1),
            "loopback and containers are left out"
        );
        let found = machine.counters[0].as_ref().unwrap();
        assert_eq!((found.read_bytes, found.written_bytes, found.errors), (Some(7), Some(8), Some(2)));
        assert_eq!(readings[5].counters, []);
    }
}
