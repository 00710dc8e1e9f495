//! Computes traffic from counter readings, and splits it into traffic of users and longhaul's own traffic. Pure,
//! without I/O and clocks.
//!
//! A counter counts all bytes on the wire, whatever program caused them. longhaul knows how many bytes its own
//! calls read and wrote. Its own part of the counted bytes is:
//!
//! - **Read**: at most the bytes that its own calls returned between the two readings. Bytes from the client's
//!   cache are not on the wire, so they are never subtracted from a user's bytes. Read-ahead is on the wire before
//!   a call requests it: at the end of an interval, up to that many bytes are counted as a user's, and as many
//!   fewer in the next interval.
//! - **Written**: bytes that its own calls wrote may be on the wire later. So bytes that were not seen yet are
//!   carried over, for at most [`WRITEBACK_SECONDS`], because bytes that are overwritten or deleted before are
//!   never on the wire.
//! - Sources that also count headers ([`CounterSource::Connections`], [`CounterSource::Smbutil`]) get an allowance
//!   for them. As a result, a little traffic of a user can be hidden by a lot of longhaul's own traffic.
//!
//! Always: bytes of users + own bytes = bytes on the wire, and neither is negative.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use longhaul_model::{
    CounterReading, CounterScope, CounterSource, Counters, RequestCounts, RequestKind, SLEPT_NS, TargetName,
    Traffic, WireTraffic,
};

/// Maximum time in seconds until bytes that longhaul wrote are expected on the wire: twice the age at which Linux
/// writes dirty pages back (`vm.dirty_expire_centisecs`, 30 s).
const WRITEBACK_SECONDS: u64 = 60;
/// Time without requests in nanoseconds after which a reconnect is not counted as a failure. Linux closes an NFS
/// connection that was idle for five minutes (net/sunrpc/xprtsock.c, `XS_IDLE_DISC_TO`). The value is a minute
/// less, because readings and requests are at different times.
const IDLE_DISCONNECT_NS: u64 = 240 * 1_000_000_000;
/// Maximum number of requests in [`IDLE_SECONDS`] on an unused mount: requests that a client makes on its own, such as
/// for a server's interfaces, and those of programs that ask for free space.
const IDLE_REQUESTS: u64 = 4;
/// Time in seconds of [`IDLE_REQUESTS`]. More are allowed between two readings that are further apart.
const IDLE_SECONDS: f64 = 10.0;
/// Maximum number of bytes between two readings of an unused mount: lease renewals and echoes of some hundred
/// bytes each.
const IDLE_BYTES: u64 = 32 << 10;
/// Maximum number of requests that one call causes: lookup, access check, open, close.
const REQUESTS_PER_CALL: u64 = 4;
/// Number of bytes for headers and attributes of one call.
const OVERHEAD_BYTES_PER_CALL: u64 = 1 << 10;

/// Traffic of longhaul's own runs and latency probe on a target, counted at their calls. The values never
/// decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelfTraffic {
    /// Number of bytes that read calls returned.
    pub read: u64,
    /// Number of bytes that write calls accepted.
    pub written: u64,
    /// Number of calls of all kinds. Where one call lists entries with attributes, each entry is one more.
    pub calls: u64,
}

impl SelfTraffic {
    fn saturating_add(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
            calls: self.calls.saturating_add(other.calls),
        }
    }

    /// Returns the difference to an earlier value; `None` if a value has decreased.
    fn checked_sub(self, then: Self) -> Option<Self> {
        Some(Self {
            read: self.read.checked_sub(then.read)?,
            written: self.written.checked_sub(then.written)?,
            calls: self.calls.checked_sub(then.calls)?,
        })
    }
}

/// Time of a set of counter readings, and longhaul's own traffic until then.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// Time in nanoseconds of the monotonic clock, which stops during sleep.
    pub monotonic_ns: u64,
    /// Total time that the machine has slept since boot, in nanoseconds.
    pub asleep_ns: u64,
    /// longhaul's own traffic by target. A target that is missing has none.
    pub self_traffic: &'a BTreeMap<TargetName, SelfTraffic>,
}

/// Traffic at one source of one target since the last reading.
#[derive(Debug, Clone, PartialEq)]
pub struct MeteredTraffic {
    /// Name of the target; `None` for counters of the whole machine.
    pub target: Option<TargetName>,
    /// Traffic since the last reading.
    pub traffic: Traffic,
    /// True if a user other than longhaul used the target; `None` if unknown. See [`is_used_by_others`].
    pub is_used: Option<bool>,
    /// Requests of all programs by kind, longhaul included.
    pub requests: RequestCounts,
    /// True if an earlier target has the same counter, because both lie on one mount or connection.
    pub is_repeated: bool,
}

/// Time in nanoseconds after which an interface that is not listed any more is forgotten. Tunnels and containers may get a new
/// name each time.
const FORGET_AFTER_NS: u64 = 3600 * 1_000_000_000;

/// Meter that stores the last reading of every source of every target, and computes the traffic since then.
#[derive(Debug, Default)]
pub struct TrafficMeter {
    last_readings: BTreeMap<(Option<TargetName>, CounterSource), LastReading>,
}

impl TrafficMeter {
    /// Stores new readings, and returns the traffic of each source since its last reading. There is no traffic for
    /// a first reading, after sleep, and after a reset of the counter or of the own traffic.
    pub fn update(&mut self, readings: &[CounterReading], at: &Observation<'_>) -> Vec<MeteredTraffic> {
        let own = self_traffic_by_counter(readings, at.self_traffic);
        let (mut metered, mut seen) = (vec![], BTreeSet::new());
        for reading in readings {
            for counters in reading.counters.iter().flatten() {
                let own = own.get(&(&counters.source, &counters.instance_id)).copied().unwrap_or_default();
                let now = LastReading::new(counters, at, own);
                let key = (reading.target.clone(), counters.source.clone());
                let result = match self.last_readings.get_mut(&key) {
                    Some(last) => last.advance(now),
                    None => {
                        self.last_readings.insert(key, now);
                        None
                    }
                };
                let is_repeated = !seen.insert((&counters.source, &counters.instance_id));
                metered.extend(result.map(|metered| MeteredTraffic {
                    target: reading.target.clone(),
                    is_repeated,
                    ..metered
                }));
            }
        }
        self.last_readings.retain(|(_, source), last| {
            let age_ns = at.monotonic_ns.saturating_sub(last.monotonic_ns);
            age_ns < FORGET_AFTER_NS || !matches!(source, CounterSource::Interface(_))
        });
        metered
    }
}

/// Returns longhaul's own traffic for each counter: the sum over all targets that the counter covers.
fn self_traffic_by_counter<'a>(
    readings: &'a [CounterReading],
    own: &BTreeMap<TargetName, SelfTraffic>,
) -> BTreeMap<(&'a CounterSource, &'a String), SelfTraffic> {
    let mut sums: BTreeMap<(&CounterSource, &String), SelfTraffic> = BTreeMap::new();
    for reading in readings {
        let of_target = reading.target.as_ref().and_then(|name| own.get(name)).copied().unwrap_or_default();
        for counters in reading.counters.iter().flatten() {
            let sum = sums.entry((&counters.source, &counters.instance_id)).or_default();
            *sum = sum.saturating_add(of_target);
        }
    }
    sums
}

/// Last reading of one source of one target.
#[derive(Debug)]
struct LastReading {
    counters: Counters,
    monotonic_ns: u64,
    asleep_ns: u64,
    self_traffic: SelfTraffic,
    /// Time of the last reading that showed answered requests, in nanoseconds of the monotonic clock; `None` if
    /// there was none since the first reading.
    last_busy_ns: Option<u64>,
    /// Bytes that longhaul wrote and that were not counted on the wire yet, each with the time of the reading, in
    /// nanoseconds of the monotonic clock; oldest first.
    pending_writes: VecDeque<(u64, u64)>,
}

impl LastReading {
    fn new(counters: &Counters, at: &Observation<'_>, own: SelfTraffic) -> Self {
        Self {
            counters: counters.clone(),
            monotonic_ns: at.monotonic_ns,
            asleep_ns: at.asleep_ns,
            self_traffic: own,
            last_busy_ns: None,
            pending_writes: VecDeque::new(),
        }
    }

    /// Replaces the reading with a new one. Returns the traffic between the two readings, without its target;
    /// `None` if the readings cannot be compared.
    fn advance(&mut self, now: Self) -> Option<MeteredTraffic> {
        let interval =
            ReadingInterval::between(self, &now).map(|interval| self.without_idle_reconnects(interval));
        let (pending, busy_ns) = (std::mem::take(&mut self.pending_writes), self.last_busy_ns);
        *self = now;
        let interval = interval?;
        let was_busy = interval.delta.round_trips.is_some_and(|(count, _)| count > 0);
        self.last_busy_ns = if was_busy { Some(self.monotonic_ns) } else { busy_ns };
        self.pending_writes = pending;
        let (calls, requests) = (interval.self_traffic.calls, interval.delta.requests_by_kind);
        let traffic = self.traffic(interval);
        let is_used = is_used_by_others(&traffic, calls);
        Some(MeteredTraffic { target: None, is_used, traffic, requests, is_repeated: false })
    }

    /// Sets the number of reconnects to zero if the connection may have been idle. The client closes an idle
    /// connection and opens it again with the next request, which is not a failure.
    fn without_idle_reconnects(&self, mut interval: ReadingInterval) -> ReadingInterval {
        let until_ns = self.monotonic_ns.saturating_add((interval.seconds * 1e9) as u64);
        let may_have_been_idle =
            self.last_busy_ns.is_none_or(|busy_ns| until_ns.saturating_sub(busy_ns) >= IDLE_DISCONNECT_NS);
        if self.counters.source == CounterSource::Mountstats && may_have_been_idle {
            interval.delta.reconnects = interval.delta.reconnects.map(|_| 0);
        }
        interval
    }

    fn traffic(&mut self, interval: ReadingInterval) -> Traffic {
        let ReadingInterval { delta, seconds, self_traffic: own } = interval;
        let Counters { source, scope, .. } = delta;
        let read =
            delta.read_bytes.map(|wire| (wire, wire.min(max_wire_bytes(&source, own.read, own.calls))));
        let written = delta.written_bytes.map(|wire| (wire, self.own_written(wire, own)));
        // An interface carries traffic of many servers, so longhaul's part is unknown. A process counter of a
        // worker counts only longhaul's own traffic.
        let split = |bytes: Option<(u64, u64)>| match scope {
            CounterScope::Interface => (bytes.map(|(wire, _)| wire), None),
            CounterScope::Process => (bytes.map(|_| 0), bytes.map(|(wire, _)| wire)),
            CounterScope::Mount | CounterScope::Server | CounterScope::Protocol => {
                (bytes.map(|(wire, own)| wire - own), bytes.map(|(_, own)| own))
            }
        };
        let ((user_read, own_read), (user_written, own_written)) = (split(read), split(written));
        Traffic {
            source,
            scope,
            seconds,
            user_read,
            user_written,
            longhaul_read: own_read,
            longhaul_written: own_written,
            requests: delta.requests,
            retransmits: delta.retransmits,
            errors: delta.errors,
            reconnects: delta.reconnects,
            round_trips: delta.round_trips,
            tcp_rtt_us: delta.tcp_rtt_us,
        }
    }

    /// Returns how many of the `wire` bytes sent are longhaul's own, written in this interval or shortly before.
    fn own_written(&mut self, wire: u64, own: SelfTraffic) -> u64 {
        let oldest = self.monotonic_ns.saturating_sub(WRITEBACK_SECONDS * 1_000_000_000);
        self.pending_writes.retain(|(since, _)| *since >= oldest);
        self.pending_writes
            .push_back((self.monotonic_ns, max_wire_bytes(&self.counters.source, own.written, own.calls)));
        let mut unexplained = wire;
        while let Some((_, bytes)) = self.pending_writes.front_mut() {
            let sent = unexplained.min(*bytes);
            (*bytes, unexplained) = (*bytes - sent, unexplained - sent);
            if *bytes > 0 {
                break;
            }
            self.pending_writes.pop_front();
        }
        wire - unexplained
    }
}

/// Returns the maximum number of bytes that a source counts for `bytes` own bytes in `calls` calls. The result
/// includes headers if the source counts them.
fn max_wire_bytes(source: &CounterSource, bytes: u64, calls: u64) -> u64 {
    match source {
        CounterSource::Connections | CounterSource::Smbutil => {
            bytes.saturating_add(bytes / 32).saturating_add(calls.saturating_mul(OVERHEAD_BYTES_PER_CALL))
        }
        CounterSource::Mountstats
        | CounterSource::CifsStats
        | CounterSource::Interface(_)
        | CounterSource::Disk => bytes,
    }
}

/// Interval between two readings of a counter that was not reset in between.
struct ReadingInterval {
    /// Differences of the counts. Values that are not counts, such as the TCP round-trip time, are those of the
    /// second reading.
    delta: Counters,
    seconds: f64,
    self_traffic: SelfTraffic,
}

impl ReadingInterval {
    /// Returns the interval between two readings; `None` if a counter was reset or the machine slept.
    fn between(then: &LastReading, now: &LastReading) -> Option<Self> {
        let own = now.self_traffic.checked_sub(then.self_traffic)?;
        let nanoseconds = now.monotonic_ns.checked_sub(then.monotonic_ns).filter(|elapsed| *elapsed > 0)?;
        let slept = now.asleep_ns.saturating_sub(then.asleep_ns) > SLEPT_NS;
        let is_same = then.counters.instance_id == now.counters.instance_id && !is_younger(then, now);
        (is_same && !slept).then_some(())?;
        Some(Self {
            delta: counter_delta(&then.counters, &now.counters)?,
            seconds: nanoseconds as f64 / 1e9,
            self_traffic: own,
        })
    }
}

/// Returns whether a counter was created after the last reading, according to its age.
fn is_younger(then: &LastReading, now: &LastReading) -> bool {
    // Ages are in whole seconds, so a difference of two seconds may be a rounding error.
    let elapsed = now.monotonic_ns.saturating_sub(then.monotonic_ns) / 1_000_000_000;
    match (then.counters.age_seconds, now.counters.age_seconds) {
        (Some(then), Some(now)) => now.saturating_add(2) < then.saturating_add(elapsed),
        _ => false,
    }
}

/// Returns the traffic on the wire between two readings of one source; `None` if the counter was reset in between.
pub(crate) fn wire_traffic(then: &Counters, now: &Counters) -> Option<WireTraffic> {
    let is_same = then.source == now.source && then.instance_id == now.instance_id;
    let is_younger = now.age_seconds.zip(then.age_seconds).is_some_and(|(now, then)| now < then);
    (is_same && !is_younger).then_some(())?;
    let Counters {
        read_bytes: read, written_bytes: written, requests, source, scope, requests_by_kind, ..
    } = counter_delta(then, now)?;
    let listings = requests_by_kind.get(RequestKind::List).filter(|requests| *requests > 0);
    Some(WireTraffic { read, written, requests, listings, source, scope })
}

/// Returns the differences of all counts between two readings; `None` if a count decreased.
fn counter_delta(then: &Counters, now: &Counters) -> Option<Counters> {
    let delta = |then: Option<u64>, now: Option<u64>, bits: CounterWidth| match then.zip(now) {
        Some((then, now)) => wrapping_delta(then, now, bits).map(Some),
        None => Some(None),
    };
    let round_trips = match then.round_trips.zip(now.round_trips) {
        Some((then, now)) => Some((
            wrapping_delta(then.0, now.0, CounterWidth::Bits64)?,
            wrapping_delta(then.1, now.1, CounterWidth::Bits64)?,
        )),
        None => None,
    };
    let bits = counter_width(&now.source);
    Some(Counters {
        read_bytes: delta(then.read_bytes, now.read_bytes, CounterWidth::Bits64)?,
        written_bytes: delta(then.written_bytes, now.written_bytes, CounterWidth::Bits64)?,
        requests: delta(then.requests, now.requests, bits)?,
        requests_by_kind: then
            .requests_by_kind
            .combine(&now.requests_by_kind, |then, now| wrapping_delta(then, now, bits))?,
        retransmits: delta(then.retransmits, now.retransmits, bits)?,
        errors: delta(then.errors, now.errors, CounterWidth::Bits64)?,
        reconnects: delta(then.reconnects, now.reconnects, bits)?,
        round_trips,
        ..now.clone()
    })
}

/// Width of a counter in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterWidth {
    Bits32,
    Bits64,
}

/// Returns the width of a source's counters of requests, retransmits and reconnects. Bytes are always counted in
/// 64 bits.
fn counter_width(source: &CounterSource) -> CounterWidth {
    match source {
        // The kernel stores SMB requests in an `atomic_t` (fs/smb/client/cifsglob.h, `num_smbs_sent`), and
        // retransmitted segments in a `__u32` (`tcpi_total_retrans`).
        CounterSource::CifsStats | CounterSource::Connections => CounterWidth::Bits32,
        CounterSource::Mountstats
        | CounterSource::Smbutil
        | CounterSource::Interface(_)
        | CounterSource::Disk => CounterWidth::Bits64,
    }
}

/// Returns the increase of a counter; `None` if it decreased without a wraparound.
pub(super) fn wrapping_delta(then: u64, now: u64, bits: CounterWidth) -> Option<u64> {
    // A decrease of a 32-bit counter is a wraparound if the increase is then less than half of the range.
    // Otherwise the counter was reset.
    let wrapped = || now.checked_add(1 << 32)?.checked_sub(then).filter(|grown| *grown < 1 << 31);
    now.checked_sub(then).or_else(|| wrapped().filter(|_| bits == CounterWidth::Bits32))
}

/// Returns whether a user other than longhaul used a mount, or its server if the source counts per server; `None`
/// if the source cannot show it. `own_calls` is the number of longhaul's own calls in the interval.
///
/// Requests that keep leases and connections alive are not use: they are not counted, or take a few hundred bytes.
/// The requests and bytes that longhaul's own calls may have caused are subtracted, so a little use during a busy
/// run is not detected.
pub fn is_used_by_others(traffic: &Traffic, own_calls: u64) -> Option<bool> {
    let bytes =
        traffic.user_read.zip(traffic.user_written).map(|(read, written)| read.saturating_add(written));
    let exceeds = |idle: u64, per_call: u64| {
        move |count: u64| count > idle.saturating_add(own_calls.saturating_mul(per_call))
    };
    let by_bytes = bytes.map(exceeds(IDLE_BYTES, OVERHEAD_BYTES_PER_CALL));
    let idle_requests = (IDLE_REQUESTS as f64 * (traffic.seconds / IDLE_SECONDS).max(1.0)) as u64;
    let by_requests = traffic.requests.map(exceeds(idle_requests, REQUESTS_PER_CALL));
    let used = match (by_bytes, by_requests) {
        (None, None) => return None,
        (bytes, requests) => bytes.unwrap_or(false) || requests.unwrap_or(false),
    };
    match traffic.scope {
        CounterScope::Mount | CounterScope::Server => Some(used),
        // The counter covers all servers of a protocol: if it shows use, the used server is unknown.
        CounterScope::Protocol => (!used).then_some(false),
        CounterScope::Interface | CounterScope::Process => None,
    }
}

#[cfg(test)]
mod tests;
