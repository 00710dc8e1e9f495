//! Readings of counters into what went on between them. Pure.
//!
//! A counter counts what crossed the wire, whoever asked for it; longhaul knows what its own calls moved. Of what crossed,
//! its own are taken away so:
//!
//! - **Read**: at most what its own calls returned in the same time. What the client's cache served never crossed, so it is
//!   never taken from somebody else. Read-ahead crosses before a call asks for it: at the edge of a window up to that much
//!   is taken for the user's, and as much less in the next one.
//! - **Written**: what its own calls wrote may cross later, so what has not been seen yet is carried over, for
//!   [`CARRIED_SECONDS`] at most: bytes that were overwritten or deleted first never cross.
//! - Sources that count headers too ([`Source::Connections`], [`Source::Smbutil`]) get an allowance for those, so that a
//!   little of somebody else's may hide behind a lot of longhaul's own.
//!
//! Always: user + own = what crossed, and neither is below zero.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Counters, Covers, Reading, Source, TargetName, Traffic, Wire};

/// For how long bytes that longhaul wrote are waited for on the wire: twice the age at which Linux writes dirty pages out
/// (`vm.dirty_expire_centisecs`, 30 s).
const CARRIED_SECONDS: u64 = 60;
/// Linux closes an NFS connection that nobody used for five minutes (net/sunrpc/xprtsock.c, `XS_IDLE_DISC_TO`). A minute less:
/// readings and requests are apart.
const REST_NS: u64 = 240 * 1_000_000_000;
/// Sleep beyond which what went on in between says nothing, in nanoseconds.
const SLEPT_NS: u64 = 1_000_000_000;
/// Requests that are nobody's: what a client asks on its own now and then, such as a server's interfaces.
const IDLE_REQUESTS: u64 = 4;
/// Bytes that are nobody's: renewed leases and echoes, some hundred bytes each.
const IDLE_BYTES: u64 = 32 << 10;
/// Requests that one call may need: look up, ask for access, open, close.
const REQUESTS_OF_A_CALL: u64 = 4;
/// Bytes of the headers and attributes that one call needs.
const BYTES_OF_A_CALL: u64 = 1 << 10;

/// What longhaul's own runs and probes did on a target, as their calls say. It only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Own {
    /// Bytes that read calls returned.
    pub read: u64,
    /// Bytes that write calls accepted.
    pub written: u64,
    /// Calls of every kind.
    pub calls: u64,
}

impl Own {
    fn plus(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
            calls: self.calls.saturating_add(other.calls),
        }
    }

    /// `None` if it went back.
    fn since(self, then: Self) -> Option<Self> {
        Some(Self {
            read: self.read.checked_sub(then.read)?,
            written: self.written.checked_sub(then.written)?,
            calls: self.calls.checked_sub(then.calls)?,
        })
    }
}

/// When readings were made, and what longhaul itself had done by then.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// Nanoseconds of the clock that stops in sleep.
    pub monotonic_ns: u64,
    /// Nanoseconds that the machine has slept since it was started.
    pub asleep_ns: u64,
    /// Longhaul's own doings by target; a target that is not in it was not touched.
    pub own: &'a BTreeMap<TargetName, Own>,
}

/// What went on at one source of one target since the last look.
#[derive(Debug, Clone, PartialEq)]
pub struct Metered {
    /// The target; `None`: the machine.
    pub target: Option<TargetName>,
    /// What went on.
    pub traffic: Traffic,
    /// Whether somebody else than longhaul used it; see [`is_used`].
    pub used: Option<bool>,
}

/// Remembers the last reading of every source of every target.
#[derive(Debug, Default)]
pub struct Meter {
    gauges: BTreeMap<(Option<TargetName>, Source), Gauge>,
}

impl Meter {
    /// Takes in what every source says now and gives what went on since it last said something. A first reading gives
    /// nothing, and neither does one after sleep, or after its counter or the count of our own began anew.
    pub fn feed(&mut self, readings: &[Reading], look: &Look<'_>) -> Vec<Metered> {
        let own = own_by_counter(readings, look.own);
        let mut metered = vec![];
        for reading in readings {
            for counters in reading.counters.iter().flatten() {
                let own = own.get(&(&counters.source, &counters.life)).copied().unwrap_or_default();
                let now = Gauge::new(counters, look, own);
                let key = (reading.target.clone(), counters.source.clone());
                let seen = match self.gauges.get_mut(&key) {
                    Some(gauge) => gauge.advance(now),
                    None => {
                        self.gauges.insert(key, now);
                        None
                    }
                };
                metered.extend(seen.map(|(traffic, calls)| Metered {
                    target: reading.target.clone(),
                    used: is_used(&traffic, calls),
                    traffic,
                }));
            }
        }
        metered
    }
}

/// Longhaul's own doings behind each counter: targets that are counted by one counter add up.
fn own_by_counter<'a>(
    readings: &'a [Reading],
    own: &BTreeMap<TargetName, Own>,
) -> BTreeMap<(&'a Source, &'a String), Own> {
    let mut sums: BTreeMap<(&Source, &String), Own> = BTreeMap::new();
    for reading in readings {
        let done = reading.target.as_ref().and_then(|name| own.get(name)).copied().unwrap_or_default();
        for counters in reading.counters.iter().flatten() {
            let sum = sums.entry((&counters.source, &counters.life)).or_default();
            *sum = sum.plus(done);
        }
    }
    sums
}

/// One source of one target as it was last read.
#[derive(Debug)]
struct Gauge {
    counters: Counters,
    monotonic_ns: u64,
    asleep_ns: u64,
    own: Own,
    /// When requests were last seen to be answered; `None`: not since it was first read.
    busy_ns: Option<u64>,
    /// What longhaul wrote and was not seen on the wire yet, with when it was first missed; oldest first.
    awaited: VecDeque<(u64, u64)>,
}

impl Gauge {
    fn new(counters: &Counters, look: &Look<'_>, own: Own) -> Self {
        Self {
            counters: counters.clone(),
            monotonic_ns: look.monotonic_ns,
            asleep_ns: look.asleep_ns,
            own,
            busy_ns: None,
            awaited: VecDeque::new(),
        }
    }

    /// Goes on to the next reading: what went on until then, and how many calls of our own were made.
    fn advance(&mut self, now: Self) -> Option<(Traffic, u64)> {
        let window = Window::between(self, &now).map(|window| self.without_rests(window));
        let (awaited, busy_ns) = (std::mem::take(&mut self.awaited), self.busy_ns);
        *self = now;
        let window = window?;
        let was_busy = window.grown.round_trips.is_some_and(|(count, _)| count > 0);
        self.busy_ns = if was_busy { Some(self.monotonic_ns) } else { busy_ns };
        self.awaited = awaited;
        let calls = window.own.calls;
        Some((self.traffic(window), calls))
    }

    /// A connection that was closed because nobody used it did not fail: it is made again with the next request.
    fn without_rests(&self, mut window: Window) -> Window {
        let until_ns = self.monotonic_ns.saturating_add((window.seconds * 1e9) as u64);
        let may_have_rested = self.busy_ns.is_none_or(|busy_ns| until_ns.saturating_sub(busy_ns) >= REST_NS);
        if self.counters.source == Source::Mountstats && may_have_rested {
            window.grown.reconnects = window.grown.reconnects.map(|_| 0);
        }
        window
    }

    fn traffic(&mut self, window: Window) -> Traffic {
        let Window { grown, seconds, own } = window;
        let Counters { source, covers, .. } = grown;
        let read = grown.read_bytes.map(|wire| (wire, wire.min(on_the_wire(&source, own.read, own.calls))));
        let written = grown.written_bytes.map(|wire| (wire, self.own_written(wire, own)));
        let split = |of: Option<(u64, u64)>| match covers {
            Covers::Interface => (of.map(|(wire, _)| wire), None),
            Covers::Process => (of.map(|_| 0), of.map(|(wire, _)| wire)),
            Covers::Mount | Covers::Server | Covers::Protocol => {
                (of.map(|(wire, own)| wire - own), of.map(|(_, own)| own))
            }
        };
        let ((user_read, own_read), (user_written, own_written)) = (split(read), split(written));
        Traffic {
            source,
            covers,
            seconds,
            user_read,
            user_written,
            own_read,
            own_written,
            requests: grown.requests,
            retransmissions: grown.retransmissions,
            errors: grown.errors,
            reconnects: grown.reconnects,
            round_trips: grown.round_trips,
            packet_round_trip_us: grown.packet_round_trip_us,
        }
    }

    /// Of the bytes that were sent, those that longhaul wrote now or lately.
    fn own_written(&mut self, wire: u64, own: Own) -> u64 {
        let begun = self.monotonic_ns.saturating_sub(CARRIED_SECONDS * 1_000_000_000);
        self.awaited.retain(|(since, _)| *since >= begun);
        self.awaited
            .push_back((self.monotonic_ns, on_the_wire(&self.counters.source, own.written, own.calls)));
        let mut left = wire;
        while let Some((_, bytes)) = self.awaited.front_mut() {
            let seen = left.min(*bytes);
            (*bytes, left) = (*bytes - seen, left - seen);
            if *bytes > 0 {
                break;
            }
            self.awaited.pop_front();
        }
        wire - left
    }
}

/// What longhaul's own bytes are at a source, at most: headers included where the source counts them.
fn on_the_wire(source: &Source, bytes: u64, calls: u64) -> u64 {
    match source {
        Source::Connections | Source::Smbutil => {
            bytes.saturating_add(bytes / 32).saturating_add(calls.saturating_mul(BYTES_OF_A_CALL))
        }
        Source::Mountstats | Source::CifsStats | Source::Nfsstat | Source::Interface(_) | Source::Disk => {
            bytes
        }
    }
}

/// The time between two readings of one life of a counter.
struct Window {
    /// What was counted in it; levels are as at its end.
    grown: Counters,
    seconds: f64,
    own: Own,
}

impl Window {
    /// `None` if nothing can be said: something began anew, or the machine slept.
    fn between(then: &Gauge, now: &Gauge) -> Option<Self> {
        let own = now.own.since(then.own)?;
        let nanoseconds = now.monotonic_ns.checked_sub(then.monotonic_ns).filter(|elapsed| *elapsed > 0)?;
        let slept = now.asleep_ns.saturating_sub(then.asleep_ns) > SLEPT_NS;
        let same = then.counters.life == now.counters.life && !is_younger(then, now);
        (same && !slept).then_some(())?;
        Some(Self { grown: grown(&then.counters, &now.counters)?, seconds: nanoseconds as f64 / 1e9, own })
    }
}

/// Whether a counter is younger than it can be, with two seconds for rounding: what it counted before is gone.
fn is_younger(then: &Gauge, now: &Gauge) -> bool {
    let elapsed = now.monotonic_ns.saturating_sub(then.monotonic_ns) / 1_000_000_000;
    match (then.counters.age_seconds, now.counters.age_seconds) {
        (Some(then), Some(now)) => now.saturating_add(2) < then.saturating_add(elapsed),
        _ => false,
    }
}

/// What crossed between two readings of one source; `None` if its counter began anew in between.
pub(crate) fn crossed(then: &Counters, now: &Counters) -> Option<Wire> {
    let is_same = then.source == now.source && then.life == now.life;
    let is_younger = now.age_seconds.zip(then.age_seconds).is_some_and(|(now, then)| now < then);
    (is_same && !is_younger).then_some(())?;
    let Counters { read_bytes: read, written_bytes: written, requests, source, covers, .. } =
        grown(then, now)?;
    Some(Wire { read, written, requests, source, covers })
}

/// What was counted between two readings; `None` if any count went back.
fn grown(then: &Counters, now: &Counters) -> Option<Counters> {
    let of = |then: Option<u64>, now: Option<u64>, bits: Bits| match then.zip(now) {
        Some((then, now)) => since(then, now, bits).map(Some),
        None => Some(None),
    };
    let round_trips = match then.round_trips.zip(now.round_trips) {
        Some((then, now)) => Some((since(then.0, now.0, Bits::All)?, since(then.1, now.1, Bits::All)?)),
        None => None,
    };
    let bits = bits_of_counts(&now.source);
    Some(Counters {
        read_bytes: of(then.read_bytes, now.read_bytes, Bits::All)?,
        written_bytes: of(then.written_bytes, now.written_bytes, Bits::All)?,
        requests: of(then.requests, now.requests, bits)?,
        retransmissions: of(then.retransmissions, now.retransmissions, bits)?,
        errors: of(then.errors, now.errors, Bits::All)?,
        reconnects: of(then.reconnects, now.reconnects, bits)?,
        round_trips,
        ..now.clone()
    })
}

/// How wide a counter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bits {
    ThirtyTwo,
    All,
}

/// The kernel keeps requests of SMB in an `atomic_t` (fs/smb/client/cifsglob.h, `num_smbs_sent`) and retransmitted segments
/// in a `__u32` (`tcpi_total_retrans`); it adds bytes up in 64 bits.
fn bits_of_counts(source: &Source) -> Bits {
    match source {
        Source::CifsStats | Source::Connections => Bits::ThirtyTwo,
        Source::Mountstats | Source::Nfsstat | Source::Smbutil | Source::Interface(_) | Source::Disk => {
            Bits::All
        }
    }
}

/// How much a counter grew; one of 32 bits may have begun again at 0, and has if that makes less than half its range.
fn since(then: u64, now: u64, bits: Bits) -> Option<u64> {
    let wrapped = || now.checked_add(1 << 32)?.checked_sub(then).filter(|grown| *grown < 1 << 31);
    now.checked_sub(then).or_else(|| wrapped().filter(|_| bits == Bits::ThirtyTwo))
}

/// Whether somebody else than longhaul used a mount, or its server where the source counts the server's; `None` if the
/// source cannot tell. `own_calls`: how many calls longhaul itself made in this time.
///
/// Keeping leases and connections alive is no use: such requests are not counted, or come to a few hundred bytes. What
/// longhaul's own calls may have needed is allowed for, so that a little use beside a busy run goes unseen.
pub fn is_used(traffic: &Traffic, own_calls: u64) -> Option<bool> {
    let bytes =
        traffic.user_read.zip(traffic.user_written).map(|(read, written)| read.saturating_add(written));
    let beyond = |idle: u64, of_a_call: u64| {
        move |seen: u64| seen > idle.saturating_add(own_calls.saturating_mul(of_a_call))
    };
    let by_bytes = bytes.map(beyond(IDLE_BYTES, BYTES_OF_A_CALL));
    let by_requests = traffic.requests.map(beyond(IDLE_REQUESTS, REQUESTS_OF_A_CALL));
    let used = match (by_bytes, by_requests) {
        (None, None) => return None,
        (bytes, requests) => bytes.unwrap_or(false) || requests.unwrap_or(false),
    };
    match traffic.covers {
        Covers::Mount | Covers::Server => Some(used),
        // somebody used one of several servers
        Covers::Protocol => (!used).then_some(false),
        Covers::Interface | Covers::Process => None,
    }
}

#[cfg(test)]
mod tests;
