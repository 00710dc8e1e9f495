//! Times of requests and connections of one target, added up from what the parsers found.

use crate::parse::{Connection, NfsOperations};
use longhaul_model::{RequestTotals, TcpCounters};

/// Returns the times of the requests of an NFS mount.
pub(super) fn nfs_request_totals(counted: &NfsOperations) -> RequestTotals {
    RequestTotals {
        answered: Some(counted.requests),
        queue_us: Some(counted.queue_ms.saturating_mul(1000)),
        answer_us: Some(counted.answer_ms.saturating_mul(1000)),
        execute_us: counted.execute_ms.map(|time| time.saturating_mul(1000)),
    }
}

/// Adds up the counters of connections. States are those of the connection that sent data last: another one to the same
/// server, such as that of a mount with another version, has not measured anything for a while.
pub(super) fn tcp_of_connections(found: &[&Connection]) -> TcpCounters {
    let sum = |value: fn(&TcpCounters) -> Option<u64>| {
        found.iter().map(|one| value(&one.tcp)).try_fold(0u64, |sum, one| Some(sum.wrapping_add(one?)))
    };
    let latest = found.iter().min_by_key(|one| one.idle_ms.unwrap_or(u64::MAX)).map(|one| one.tcp);
    TcpCounters { segments_sent: sum(|tcp| tcp.segments_sent), ..latest.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(idle_ms: u64, tcp: TcpCounters) -> Connection {
        Connection {
            server: "10.77.0.2".parse().expect("an address"),
            port: 445,
            local_port: 7,
            received: None,
            sent: None,
            retransmits: None,
            round_trip_us: None,
            idle_ms: Some(idle_ms),
            tcp,
        }
    }

    #[test]
    fn counters_add_up_and_states_are_those_used_last() {
        let tcp = |segments, rtt, rate| TcpCounters {
            segments_sent: Some(segments),
            min_rtt_us: Some(rtt),
            delivery_rate: rate,
            ..TcpCounters::default()
        };
        let found = [connection(900, tcp(5, 100, None)), connection(3, tcp(7, 200, Some(9)))];
        let sum = tcp_of_connections(&found.iter().collect::<Vec<_>>());
        assert_eq!((sum.segments_sent, sum.min_rtt_us, sum.delivery_rate), (Some(12), Some(200), Some(9)));
    }

    #[test]
    fn a_counter_that_one_connection_lacks_is_unknown() {
        let found =
            [TcpCounters { segments_sent: Some(1), ..TcpCounters::default() }, TcpCounters::default()];
        let found = found.map(|tcp| connection(0, tcp));
        assert_eq!(tcp_of_connections(&found.iter().collect::<Vec<_>>()).segments_sent, None);
    }

    #[test]
    fn milliseconds_of_nfs_become_microseconds() {
        let counted = NfsOperations { requests: 3, queue_ms: 1, answer_ms: 7, ..NfsOperations::default() };
        let totals = nfs_request_totals(&counted);
        assert_eq!((totals.answered, totals.queue_us, totals.answer_us), (Some(3), Some(1000), Some(7000)));
        assert_eq!(totals.execute_us, None);
    }
}
