//! Measures the network to the server just before a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::state::Worker;
use crate::error::RunError;
use crate::platform::{self, SYSTEM, System};
use crate::sandbox::Sandbox;
use crate::timed_fs::TimedFs;
use crate::workloads::Job;
use longhaul_model::{Counters, ProtocolFamily};

/// Number of small requests. More would not disturb a NAS, but delay the run on a slow network.
const REQUESTS: usize = 6;
/// Interval at which the rate of sending is read: 256 KiB take 20 ms at 100 Mbit/s.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time after which the rate is not read any more: a write may hang for minutes.
const MAX_WATCH: Duration = Duration::from_secs(5);

/// State of the network to the server just before a run. `None`: it was not measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Network {
    /// Round-trip time in microseconds.
    pub round_trip_us: Option<u64>,
    /// Rate in bytes per second at which it took data; also `None` if it took them faster than could be seen.
    pub send_rate: Option<u64>,
}

impl Worker {
    /// Measures the network to the server: the round-trip time is the shortest of a few small requests. Only those count that
    /// are seen on the connection. Nothing is measured for a local file system, or if the connection or its counters are
    /// unknown.
    pub fn network(&self, job: &Job<'_>) -> Network {
        let mount = self.mount.borrow();
        let Some(mount) = mount.as_ref().map(|known| &known.mount) else { return Network::default() };
        if mount.protocol.family() == ProtocolFamily::Local {
            return Network::default();
        }
        // Looked up here, because it is outside of all phases.
        *self.answer_threads.borrow_mut() = platform::answer_threads();
        let target = &self.setup.target.name;
        let counters = || platform::connection_counters(target, mount);
        let send_rate = send_rate(&counters, || job.sandbox.write_segments(&job.untimed()));
        let attempts = (0..REQUESTS).filter_map(|_| {
            let before = counters()?;
            let began_ns = platform::monotonic_ns();
            request(SYSTEM, job.sandbox, &job.untimed()).ok()?;
            let taken = Duration::from_nanos(platform::monotonic_ns().saturating_sub(began_ns));
            Some(Attempt { taken, messages: messages_between(&before, &counters()?) })
        });
        Network { round_trip_us: shortest_us(attempts), send_rate }
    }
}

/// A small request to the server.
struct Attempt {
    taken: Duration,
    /// Number of messages that were sent on the connection meanwhile, by any program; `None` if none was.
    messages: Option<u32>,
}

/// Makes a small request that the client of this system does not answer from memory.
///
/// On Linux that is one for the free space. A Mac keeps it: smbfs for two seconds (SMBClient kernel/smbfs/smbfs.h:500,
/// smbfs_vfsops.c:2263), and NFS limits such requests (NFS kext/nfs_vfsops.c:810-827). An answer from memory takes
/// microseconds, and would count as soon as any program sends something on the connection meanwhile. No rule could tell it from
/// a round trip, because most attempts may be such. So a Mac looks up a new name each time, which is in no cache of names
/// (SMBClient kernel/smbfs/smbfs_vnops.c:11237-11358; NFS kext/nfs_vnops.c:2764-2850).
fn request(system: System, sandbox: &Sandbox, context: &TimedFs<'_>) -> Result<(), RunError> {
    match system {
        System::Linux => sandbox.space(context).map(drop),
        System::MacOs => sandbox.look_up_unused_name(context),
    }
}

/// Returns the shortest time of a message in microseconds; `None` if no attempt was seen on the connection. A request may need several
/// messages, one after the other. Others may be sent beside it, such as the deferred close of a file: then it would seem to take a
/// part of its time for each, so only the attempts with the fewest messages count.
fn shortest_us(attempts: impl Iterator<Item = Attempt>) -> Option<u64> {
    let seen: Vec<(u32, Duration)> =
        attempts.filter_map(|attempt| Some((attempt.messages?, attempt.taken))).collect();
    seen.into_iter().min().map(|(messages, shortest)| (shortest / messages).as_micros() as u64)
}

/// Writes a file and returns the last rate at which the network took it while there was more to send; `None` if it took
/// all of it faster than could be seen, or if the system does not report rates.
///
/// The file also has Linux measure its shortest round-trip time anew. It forgets that time after five minutes, but takes no
/// longer one from the confirmation of a lone short segment, which may have been delayed (net/ipv4/tcp_input.c,
/// `tcp_update_rtt_min`): with small requests alone it would keep the time of a network that was left hours ago.
fn send_rate<E>(
    counters: &(dyn Fn() -> Option<Counters> + Sync),
    write: impl FnOnce() -> Result<(), E>,
) -> Option<u64> {
    let sent = counters()?.tcp.segments_sent?;
    let is_written = AtomicBool::new(false);
    let rate = || {
        let tcp = counters()?.tcp;
        tcp.delivery_rate.filter(|_| tcp.segments_sent != Some(sent))
    };
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut last, end_ns) = (None, platform::monotonic_ns() + MAX_WATCH.as_nanos() as u64);
            while !is_written.load(Ordering::Relaxed) && platform::monotonic_ns() < end_ns {
                last = rate().or(last);
                std::thread::sleep(POLL_INTERVAL);
            }
            last
        });
        // A failure is not reported here: a task will find what is wrong with the share.
        let written = write();
        is_written.store(true, Ordering::Relaxed);
        watch.join().ok().flatten().filter(|_| written.is_ok())
    })
}

/// Returns the number of messages that were sent on a connection between two readings; `None` if none was, or if it is
/// another connection. Where the system counts bytes only, a request is taken for one message.
fn messages_between(before: &Counters, after: &Counters) -> Option<u32> {
    (before.instance_id == after.instance_id).then_some(())?;
    let segments = before.tcp.segments_sent.zip(after.tcp.segments_sent);
    match segments {
        Some((then, now)) => Some((now as u32).wrapping_sub(then as u32)).filter(|sent| *sent > 0),
        None => after.written_bytes?.checked_sub(before.written_bytes?).filter(|sent| *sent > 0).map(|_| 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Site;
    use longhaul_model::{CounterScope, CounterSource, Operation, TcpCounters};

    fn counters(segments: Option<u64>, sent: Option<u64>) -> Counters {
        Counters {
            written_bytes: sent,
            tcp: TcpCounters { segments_sent: segments, ..TcpCounters::default() },
            ..Counters::new(CounterSource::Connections, CounterScope::Server, "one".to_owned())
        }
    }

    #[test]
    fn mac_looks_a_name_up_instead_of_the_free_space() {
        let site = Site::new();
        let (sandbox, context) = (site.sandbox(), site.context(0));
        for (system, operation) in [(System::MacOs, Operation::Lookup), (System::Linux, Operation::Getattr)] {
            site.recorder.clear();
            request(system, &sandbox, &context).unwrap();
            request(system, &sandbox, &context).unwrap();
            let made = site.recorder.snapshot().operations;
            let [only] = made.as_slice() else { panic!("{made:?}") };
            assert_eq!((only.operation, only.latency.count(), only.errors), (operation, 2, 0));
        }
    }

    #[test]
    fn shortest_attempt_that_was_sent_is_the_round_trip() {
        let attempt = |us, messages| Attempt { taken: Duration::from_micros(us), messages };
        let all = [attempt(500, Some(1)), attempt(2, None), attempt(1400, Some(2)), attempt(3, None)];
        assert_eq!(shortest_us(all.into_iter()), Some(500));
        let beside_others = [attempt(5_100, Some(2)), attempt(5_000, Some(1)), attempt(5_050, Some(1))];
        assert_eq!(shortest_us(beside_others.into_iter()), Some(5_000));
        assert_eq!(shortest_us([attempt(1_000, Some(2)), attempt(1_200, Some(2))].into_iter()), Some(500));
        assert_eq!(shortest_us([attempt(2, None)].into_iter()), None);
    }

    #[test]
    fn a_request_counts_only_if_it_was_sent() {
        let between = |then, now| messages_between(&counters(Some(then), None), &counters(Some(now), None));
        assert_eq!((between(7, 7), between(7, 8), between(7, 9)), (None, Some(1), Some(2)));
        assert_eq!(between(u64::from(u32::MAX), 0), Some(1), "counted in 32 bits");
    }

    #[test]
    fn without_segments_bytes_show_that_a_request_was_sent() {
        let between = |then, now| messages_between(&counters(None, then), &counters(None, now));
        assert_eq!((between(Some(7), Some(99)), between(Some(7), Some(7))), (Some(1), None));
        assert_eq!((between(None, Some(7)), between(Some(7), None)), (None, None));
    }

    #[test]
    fn another_connection_has_no_round_trip() {
        let other = Counters { instance_id: "two".to_owned(), ..counters(Some(9), None) };
        assert_eq!(messages_between(&counters(Some(7), None), &other), None);
    }
}
