//! Results of a phase: a named part of a run.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::wire::{MAX_COLD_CACHE_SHARE, MIN_BYTES, MIN_CALLS, MIN_WARM_CACHE_SHARE, ServedFrom};
use crate::{Call, CounterSource, Histogram, Operation, RequestTimes, Timestamp, VerifiedData, WireTraffic};

/// Cache state of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CacheState {
    /// Caches were emptied, or the data rested, before the phase. [`ColdMethod`] says how reliable that is.
    Cold,
    /// The phase repeats work on data that was just used.
    Warm,
    /// The phase writes, or a cache state does not apply to it.
    None,
}

/// Method that made a phase cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ColdMethod {
    /// The file data was evicted from this machine's page cache, and the kernel confirmed that.
    Evicted,
    /// The slice of the corpus had not been accessed for at least 24 hours.
    RotatedSlice,
    /// Eviction was requested but not confirmed: the figures may contain cached data.
    Unverified,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum Unit {
    /// Seconds; less is better.
    #[serde(rename = "s")]
    Seconds,
    /// Bytes per second; more is better.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// Items per second; more is better.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Number of items.
    #[serde(rename = "1")]
    Count,
    /// Share from 0 to 1.
    #[serde(rename = "share")]
    Share,
}

impl Unit {
    /// Returns the symbol that is stored and shown to users.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::BytesPerSecond => "B/s",
            Self::PerSecond => "1/s",
            Self::Count => "1",
            Self::Share => "share",
        }
    }

    /// Returns the unit with this stored symbol; `None` for an unknown symbol.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        [Self::Seconds, Self::BytesPerSecond, Self::PerSecond, Self::Count, Self::Share]
            .into_iter()
            .find(|unit| unit.symbol() == symbol)
    }
}

/// Figure of a phase: one number with a name and a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figure {
    /// Name of the figure, unique within its phase.
    pub name: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Value of the figure, in its unit.
    pub value: f64,
}

impl Figure {
    /// Returns a figure with this name, unit and value.
    pub fn new(name: &str, unit: Unit, value: f64) -> Self {
        Self { name: name.to_owned(), unit, value }
    }
}

/// Statistics of all calls of one kind in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationStats {
    /// Kind of call.
    pub operation: Operation,
    /// Latencies of all calls, including failed ones.
    pub latency: Histogram,
    /// Number of failed calls.
    pub errors: u64,
}

/// Phase of a run: a named part with its own figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the phase: `open-folder`, `walk`, `copy`, ...
    pub name: String,
    /// Cache state of the data that the phase used.
    pub cache: CacheState,
    /// Method that made the phase cold; `None` unless `cache` is cold.
    pub cold_by: Option<ColdMethod>,
    /// Wall-clock time at the start of the phase, in microseconds since 1970 UTC: a label, not a measurement.
    /// `None` if it was not stored.
    #[serde(default)]
    pub began_us: Option<Timestamp>,
    /// Duration of the phase in seconds, measured with the monotonic clock.
    pub seconds: f64,
    /// Bytes that read calls returned.
    pub bytes_read: u64,
    /// Bytes that write calls accepted.
    pub bytes_written: u64,
    /// True if the phase ran to its end. A phase that was cut short has operations but no figures.
    pub complete: bool,
    /// Figures of the phase.
    pub figures: Vec<Figure>,
    /// Statistics of the phase's calls, one entry for each kind of call.
    pub operations: Vec<OperationStats>,
    /// Individually stored calls of the phase; empty if none was stored.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Traffic on the wire during the phase; `None` if no counter measures it.
    #[serde(default)]
    pub wire: Option<WireTraffic>,
    /// Times of the requests during the phase; `None` if no source has any, and for phases stored by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_times: Option<RequestTimes>,
    /// Data that was compared with what was written, by age; empty if nothing was compared, or if the phase is older
    /// than this count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<VerifiedData>,
}

impl Phase {
    /// Returns a complete phase with this name and cache state in which nothing was measured: all numbers are 0, all lists
    /// empty, all options `None`.
    pub fn new(name: impl Into<String>, cache: CacheState) -> Self {
        Self {
            name: name.into(),
            cache,
            cold_by: None,
            began_us: None,
            seconds: 0.0,
            bytes_read: 0,
            bytes_written: 0,
            complete: true,
            figures: vec![],
            operations: vec![],
            calls: vec![],
            wire: None,
            request_times: None,
            verified: vec![],
        }
    }

    /// Returns the origin of the phase's data. If the phase read files, the bytes decide. If it only
    /// requested names and attributes, one response may hold many of them: then the number of requests can
    /// only prove that no request was needed.
    pub fn served_from(&self) -> ServedFrom {
        let Some(wire) = &self.wire else { return ServedFrom::Unknown };
        match self.client_cache_share() {
            Some(share) if share <= MAX_COLD_CACHE_SHARE => ServedFrom::Cold,
            Some(share) if share >= MIN_WARM_CACHE_SHARE => ServedFrom::Warm,
            Some(_) => ServedFrom::Mixed,
            None if self.bytes_read < MIN_BYTES && self.served_without_requests(wire) => ServedFrom::Warm,
            None => ServedFrom::Unknown,
        }
    }

    /// Returns the share of the phase's bytes that the client's cache served; see
    /// [`WireTraffic::client_cache_share`].
    pub fn client_cache_share(&self) -> Option<f64> {
        self.wire.as_ref()?.client_cache_share(self.bytes_read, self.files_opened())
    }

    /// Returns how many bytes of a part of [`Phase::verified`] are known to have come from the server. A byte that a cache served counts
    /// as one of those that were compared, so this is a lower bound. It is 0 for a local disk: its counter has all that the process
    /// read from any disk, such as the originals of copies.
    pub fn verified_over_the_wire(&self, part: VerifiedData) -> u64 {
        let verified: u64 = self.verified.iter().map(|part| part.bytes).sum();
        let is_disk = self.wire.as_ref().is_some_and(|wire| wire.source == CounterSource::Disk);
        let Some(share) = self.client_cache_share().filter(|_| verified > 0 && !is_disk) else { return 0 };
        let cached = (share * self.bytes_read as f64).ceil() as u64;
        let crossed = verified.saturating_sub(cached);
        (u128::from(part.bytes) * u128::from(crossed) / u128::from(verified)) as u64
    }

    /// Returns the number of files that the phase opened.
    pub fn files_opened(&self) -> u64 {
        let opens = self.operations.iter().filter(|stats| stats.operation == Operation::Open);
        opens.map(|stats| stats.latency.count()).sum()
    }

    /// Returns whether the phase claims to be cold although the client's cache served it at least partly.
    pub fn cold_claim_violated(&self) -> bool {
        let found = self.served_from();
        self.cache == CacheState::Cold && matches!(found, ServedFrom::Warm | ServedFrom::Mixed)
    }

    /// Returns whether the phase needed at most one request per hundred calls.
    fn served_without_requests(&self, wire: &WireTraffic) -> bool {
        let calls: u64 = self.operations.iter().map(|stats| stats.latency.count()).sum();
        calls >= MIN_CALLS && wire.requests.is_some_and(|requests| requests.saturating_mul(100) <= calls)
    }
}

stored_names! { CacheState ColdMethod }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CounterScope;

    fn wire(read: Option<u64>, requests: Option<u64>) -> WireTraffic {
        WireTraffic {
            listings: None,
            read,
            written: None,
            requests,
            source: CounterSource::Mountstats,
            scope: CounterScope::Mount,
        }
    }

    fn phase(bytes_read: u64, wire: Option<WireTraffic>) -> Phase {
        let mut latency = Histogram::default();
        (0..1000).for_each(|_| latency.record(1000));
        Phase {
            cold_by: Some(ColdMethod::Evicted),
            seconds: 1.0,
            bytes_read,
            operations: vec![OperationStats { operation: Operation::Getattr, latency, errors: 0 }],
            wire,
            ..Phase::new("read", CacheState::Cold)
        }
    }

    #[test]
    fn the_bytes_on_the_wire_decide_between_cold_and_warm() {
        let found = |crossed| phase(100 << 20, Some(wire(Some(crossed), None))).served_from();
        assert_eq!(found(100 << 20), ServedFrom::Cold);
        assert_eq!(found(101 << 20), ServedFrom::Cold, "read ahead");
        assert_eq!((found(91 << 20), found(50 << 20)), (ServedFrom::Cold, ServedFrom::Mixed));
        assert_eq!((found(9 << 20), found(0)), (ServedFrom::Warm, ServedFrom::Warm));
    }

    #[test]
    fn foreign_bytes_in_a_shared_counter_make_it_unknown() {
        let shared = wire(Some(400 << 20), None);
        let own = WireTraffic { scope: CounterScope::Process, source: CounterSource::Disk, ..shared.clone() };
        assert_eq!(phase(100 << 20, Some(shared)).served_from(), ServedFrom::Unknown);
        assert_eq!(
            phase(100 << 20, Some(own)).served_from(),
            ServedFrom::Cold,
            "this counter has no foreign bytes"
        );
    }

    #[test]
    fn without_bytes_only_a_phase_without_requests_is_known() {
        let found = |requests| phase(0, Some(wire(Some(0), requests))).served_from();
        assert_eq!(
            (found(Some(3)), found(Some(10)), found(Some(11))),
            (ServedFrom::Warm, ServedFrom::Warm, ServedFrom::Unknown)
        );
        assert_eq!(
            (found(None), phase(100 << 20, None).served_from()),
            (ServedFrom::Unknown, ServedFrom::Unknown)
        );
    }

    #[test]
    fn a_cold_claim_is_violated_if_the_cache_served_it() {
        let cached = phase(100 << 20, Some(wire(Some(1 << 20), None)));
        assert!(cached.cold_claim_violated());
        assert!(!Phase { cache: CacheState::Warm, ..cached.clone() }.cold_claim_violated());
        assert!(
            !Phase { wire: None, ..cached }.cold_claim_violated(),
            "an unknown origin is not a violation"
        );
    }

    #[test]
    fn only_verified_bytes_that_crossed_the_wire_are_evidence() {
        let part = |bytes| VerifiedData { age: crate::DataAge::Days, bytes, files: 1 };
        let crossed = |wire_bytes: Option<u64>| {
            let wire = wire_bytes.map(|bytes| wire(Some(bytes), None));
            let phase = Phase { verified: vec![part(60 << 20), part(20 << 20)], ..phase(100 << 20, wire) };
            phase.verified.iter().map(|part| phase.verified_over_the_wire(*part) >> 20).collect::<Vec<_>>()
        };
        assert_eq!(crossed(Some(101 << 20)), [60, 20], "all of it crossed");
        assert_eq!(crossed(Some(60 << 20)), [30, 10], "the cached 40 MiB may all have been compared");
        assert_eq!(crossed(Some(10 << 20)), [0, 0]);
        assert_eq!(crossed(None), [0, 0], "not counted is no evidence");
        assert_eq!(crossed(Some(400 << 20)), [0, 0], "traffic of others hides it");
    }

    #[test]
    fn a_local_disk_has_no_wire() {
        let disk = WireTraffic { source: CounterSource::Disk, ..wire(Some(100 << 20), None) };
        let part = VerifiedData { age: crate::DataAge::Days, bytes: 60 << 20, files: 1 };
        let phase = Phase { verified: vec![part], ..phase(100 << 20, Some(disk)) };
        assert_eq!(phase.verified_over_the_wire(part), 0);
    }
}
