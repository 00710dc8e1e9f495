use proptest::prelude::*;

use super::*;
use longhaul_model::CounterUnavailable;

const SECOND: u64 = 1_000_000_000;

fn name(text: &str) -> TargetName {
    text.parse().expect("a name")
}

/// Returns counters of a mount with this many bytes read and written.
fn counters(source: CounterSource, read: u64, written: u64) -> Counters {
    Counters {
        read_bytes: Some(read),
        written_bytes: Some(written),
        requests: Some((read + written) / 1000),
        ..Counters::new(source, CounterScope::Mount, "0:51".to_owned())
    }
}

fn reading(target: &str, counters: Counters) -> CounterReading {
    CounterReading { target: Some(name(target)), counters: vec![Ok(counters)] }
}

/// Passes one target's counters at a second to the meter, with longhaul's own traffic until then. Returns the
/// traffic.
fn feed(meter: &mut TrafficMeter, second: u64, counters: Counters, own: SelfTraffic) -> Option<Traffic> {
    let own = BTreeMap::from([(name("nas"), own)]);
    let at = Observation { monotonic_ns: second * SECOND, asleep_ns: 0, self_traffic: &own };
    meter.update(&[reading("nas", counters)], &at).pop().map(|metered| metered.traffic)
}

fn self_traffic(read: u64, written: u64) -> SelfTraffic {
    SelfTraffic { read, written, calls: (read + written).div_ceil(4096) }
}

#[test]
fn traffic_is_known_from_the_second_reading_on() {
    let mut meter = TrafficMeter::default();
    assert_eq!(
        feed(&mut meter, 10, counters(CounterSource::Mountstats, 5000, 100), SelfTraffic::default()),
        None
    );
    let traffic =
        feed(&mut meter, 20, counters(CounterSource::Mountstats, 9000, 100), self_traffic(1000, 0)).unwrap();
    assert_eq!(
        (traffic.user_read, traffic.longhaul_read, traffic.user_written),
        (Some(3000), Some(1000), Some(0))
    );
    assert_eq!((traffic.seconds, traffic.requests), (10.0, Some(4)));
}

#[test]
fn reset_of_a_counter_gives_no_traffic_once() {
    let resets: [fn(Counters) -> Counters; 4] = [
        |before| Counters { read_bytes: Some(1), ..before },
        |before| Counters { instance_id: "0:77".to_owned(), ..before },
        |before| Counters { age_seconds: Some(3), ..before },
        |before| Counters { round_trips: Some((1, 5)), ..before },
    ];
    for reset in resets {
        let first = Counters {
            age_seconds: Some(100),
            round_trips: Some((9, 900)),
            ..counters(CounterSource::Mountstats, 9000, 0)
        };
        let mut meter = TrafficMeter::default();
        feed(&mut meter, 10, first.clone(), SelfTraffic::default());
        let other = reset(Counters { read_bytes: Some(9500), age_seconds: Some(110), ..first });
        assert_eq!(feed(&mut meter, 20, other.clone(), SelfTraffic::default()), None, "{other:?}");
        let next = Counters {
            read_bytes: other.read_bytes.map(|bytes| bytes + 7),
            age_seconds: other.age_seconds.map(|age| age + 10),
            ..other
        };
        let traffic = feed(&mut meter, 30, next, SelfTraffic::default());
        assert_eq!(traffic.and_then(|traffic| traffic.user_read), Some(7));
    }
}

#[test]
fn sleep_gives_no_traffic() {
    let (mut meter, own) = (TrafficMeter::default(), BTreeMap::new());
    let at = |seconds: u64, asleep: u64| Observation {
        monotonic_ns: seconds * SECOND,
        asleep_ns: asleep * SECOND,
        self_traffic: &own,
    };
    let readings = |read: u64| [reading("nas", counters(CounterSource::Mountstats, read, 0))];
    assert_eq!(meter.update(&readings(0), &at(1, 0)), []);
    assert_eq!(meter.update(&readings(900), &at(2, 600)), []);
    assert_eq!(meter.update(&readings(1000), &at(3, 600))[0].traffic.user_read, Some(100));
}

#[test]
fn only_32_bit_counters_wrap_around() {
    let requests =
        |source: CounterSource, count: u64| Counters { requests: Some(count), ..counters(source, 0, 0) };
    let end = u64::from(u32::MAX);
    for (source, expected) in [(CounterSource::CifsStats, Some(Some(10))), (CounterSource::Mountstats, None)]
    {
        let mut meter = TrafficMeter::default();
        feed(&mut meter, 1, requests(source.clone(), end - 4), SelfTraffic::default());
        let traffic = feed(&mut meter, 2, requests(source.clone(), 5), SelfTraffic::default());
        assert_eq!(traffic.map(|traffic| traffic.requests), expected, "{source:?}");
    }
    assert_eq!(wrapping_delta(1000, 0, CounterWidth::Bits32), None, "a counter that was reset to zero");
}

#[test]
fn traffic_includes_the_time_while_a_source_was_unavailable() {
    let (mut meter, own) = (TrafficMeter::default(), BTreeMap::new());
    let at = |seconds: u64| Observation { monotonic_ns: seconds * SECOND, asleep_ns: 0, self_traffic: &own };
    let unavailable =
        CounterUnavailable { source: CounterSource::Mountstats, reason: "it is empty".to_owned() };
    meter.update(&[reading("nas", counters(CounterSource::Mountstats, 100, 0))], &at(1));
    let no_reading = CounterReading { target: Some(name("nas")), counters: vec![Err(unavailable)] };
    assert_eq!(meter.update(&[no_reading], &at(2)), []);
    let metered = meter.update(&[reading("nas", counters(CounterSource::Mountstats, 400, 0))], &at(3));
    assert_eq!((metered[0].traffic.user_read, metered[0].traffic.seconds), (Some(300), 2.0));
}

#[test]
fn cached_own_reads_do_not_reduce_user_traffic() {
    let mut meter = TrafficMeter::default();
    feed(&mut meter, 1, counters(CounterSource::Mountstats, 0, 0), SelfTraffic::default());
    let all_cached =
        feed(&mut meter, 2, counters(CounterSource::Mountstats, 0, 0), self_traffic(1 << 20, 0)).unwrap();
    assert_eq!((all_cached.user_read, all_cached.longhaul_read), (Some(0), Some(0)));
    let users =
        feed(&mut meter, 3, counters(CounterSource::Mountstats, 5000, 0), self_traffic(1 << 20, 0)).unwrap();
    assert_eq!(
        (users.user_read, users.longhaul_read),
        (Some(5000), Some(0)),
        "own reads are not carried over"
    );
}

#[test]
fn own_writes_are_expected_on_the_wire_for_a_limited_time() {
    let mut meter = TrafficMeter::default();
    let own = self_traffic(0, 1000);
    feed(&mut meter, 0, counters(CounterSource::Mountstats, 0, 0), SelfTraffic::default());
    feed(&mut meter, 10, counters(CounterSource::Mountstats, 0, 0), own);
    let late = feed(&mut meter, 40, counters(CounterSource::Mountstats, 0, 600), own).unwrap();
    assert_eq!((late.user_written, late.longhaul_written), (Some(0), Some(600)));
    let too_late =
        feed(&mut meter, 10 + WRITEBACK_SECONDS + 1, counters(CounterSource::Mountstats, 0, 900), own)
            .unwrap();
    assert_eq!((too_late.user_written, too_late.longhaul_written), (Some(300), Some(0)));
}

#[test]
fn own_traffic_of_targets_with_one_counter_is_added() {
    let own =
        |read| BTreeMap::from([(name("a"), self_traffic(read, 0)), (name("b"), self_traffic(2 * read, 0))]);
    let readings =
        |read| ["a", "b"].map(|target| reading(target, counters(CounterSource::Mountstats, read, 0)));
    let mut meter = TrafficMeter::default();
    let (none, some) = (own(0), own(1000));
    meter.update(&readings(0), &Observation { monotonic_ns: SECOND, asleep_ns: 0, self_traffic: &none });
    let metered = meter.update(
        &readings(5000),
        &Observation { monotonic_ns: 2 * SECOND, asleep_ns: 0, self_traffic: &some },
    );
    assert_eq!(metered.len(), 2);
    assert!(metered.iter().all(|one| one.traffic.user_read == Some(2000)), "{metered:?}");
}

#[test]
fn reconnect_after_idle_time_is_not_counted() {
    let with = |answered: u64, reconnects: u64| Counters {
        round_trips: Some((answered, 1000 * answered)),
        reconnects: Some(reconnects),
        ..counters(CounterSource::Mountstats, 0, 0)
    };
    let mut meter = TrafficMeter::default();
    let mut after = |second: u64, answered: u64, reconnects: u64| {
        feed(&mut meter, second, with(answered, reconnects), SelfTraffic::default())
            .and_then(|traffic| traffic.reconnects)
    };
    assert_eq!((after(0, 1, 1), after(10, 2, 2)), (None, Some(0)), "the idle time before is unknown");
    assert_eq!((after(20, 3, 3), after(30, 4, 3)), (Some(1), Some(0)), "the connection was in use");
    for second in (40..=400).step_by(10) {
        assert_eq!(after(second, 4, 3), Some(0));
    }
    assert_eq!(after(410, 5, 4), Some(0), "after six idle minutes, the kernel had closed the connection");
    assert_eq!(after(420, 6, 5), Some(1));
    assert_eq!(after(720, 7, 6), Some(0), "it may have been idle between two readings");
}

#[test]
fn interface_is_user_traffic_and_process_disk_is_own() {
    let mut meter = TrafficMeter::default();
    let with = |scope, source, read| Counters { scope, ..counters(source, read, 0) };
    let eth = |read| with(CounterScope::Interface, CounterSource::Interface("eth0".into()), read);
    feed(&mut meter, 1, eth(0), SelfTraffic::default());
    let traffic = feed(&mut meter, 2, eth(5000), self_traffic(1000, 0)).unwrap();
    assert_eq!((traffic.user_read, traffic.longhaul_read), (Some(5000), None));
    let disk = |read| with(CounterScope::Process, CounterSource::Disk, read);
    feed(&mut meter, 1, disk(0), SelfTraffic::default());
    let traffic = feed(&mut meter, 2, disk(5000), self_traffic(1000, 0)).unwrap();
    assert_eq!((traffic.user_read, traffic.longhaul_read), (Some(0), Some(5000)));
}

#[test]
fn interface_is_forgotten_an_hour_after_it_is_gone() {
    let (mut meter, own) = (TrafficMeter::default(), BTreeMap::new());
    let source = |interface: &str| CounterSource::Interface(interface.into());
    for (interface, second) in [("tap1", 10), ("tap2", 3600 + 10)] {
        let counters = vec![Ok(counters(source(interface), 0, 0))];
        let at = Observation { monotonic_ns: second * SECOND, asleep_ns: 0, self_traffic: &own };
        meter.update(&[CounterReading { target: None, counters }], &at);
    }
    let known: Vec<_> = meter.last_readings.into_keys().collect();
    assert_eq!(known, [(None, source("tap2"))]);
}

#[test]
fn headers_of_own_calls_are_own_traffic() {
    let mut meter = TrafficMeter::default();
    let megabytes = 64u64 << 20;
    feed(&mut meter, 1, counters(CounterSource::Connections, 0, 0), SelfTraffic::default());
    let wire = megabytes + megabytes / 100;
    let traffic =
        feed(&mut meter, 9, counters(CounterSource::Connections, wire, 0), self_traffic(megabytes, 0))
            .unwrap();
    assert_eq!((traffic.user_read, traffic.longhaul_read), (Some(0), Some(wire)));
}

fn traffic(scope: CounterScope, bytes: Option<u64>, requests: Option<u64>) -> Traffic {
    Traffic { scope, user_read: bytes, user_written: bytes.map(|_| 0), requests, ..no_traffic() }
}

fn no_traffic() -> Traffic {
    let mut meter = TrafficMeter::default();
    feed(&mut meter, 1, counters(CounterSource::Mountstats, 0, 0), SelfTraffic::default());
    feed(&mut meter, 2, counters(CounterSource::Mountstats, 0, 0), SelfTraffic::default())
        .expect("two readings")
}

#[test]
fn lease_renewal_is_no_use_but_opening_a_folder_is() {
    let used =
        |bytes, requests, calls| is_used_by_others(&traffic(CounterScope::Mount, bytes, requests), calls);
    assert_eq!(used(Some(0), Some(0), 0), Some(false));
    assert_eq!(used(Some(900), Some(2), 0), Some(false), "a lease was renewed");
    assert_eq!(used(Some(0), Some(40), 0), Some(true), "names were looked up");
    assert_eq!(used(Some(1 << 20), Some(1), 0), Some(true));
    assert_eq!(used(Some(0), Some(40), 12), Some(false), "requests of longhaul's own probe");
    assert_eq!(used(Some(0), None, 0), Some(false));
    assert_eq!(used(None, None, 0), None);
}

#[test]
fn a_longer_reading_allows_more_idle_requests() {
    let used = |seconds, requests| {
        let of_time = traffic(CounterScope::Mount, Some(0), Some(requests));
        is_used_by_others(&Traffic { seconds, ..of_time }, 0)
    };
    assert_eq!((used(10.0, 4), used(10.0, 6)), (Some(false), Some(true)));
    assert_eq!((used(60.0, 6), used(60.0, 24), used(60.0, 25)), (Some(false), Some(false), Some(true)));
    assert_eq!((used(1.0, 4), used(1.0, 5)), (Some(false), Some(true)), "at least four");
}

#[test]
fn use_is_unknown_for_sources_with_a_wide_scope() {
    let used = |scope, bytes| is_used_by_others(&traffic(scope, Some(bytes), None), 0);
    assert_eq!(used(CounterScope::Server, 1 << 20), Some(true));
    assert_eq!((used(CounterScope::Protocol, 0), used(CounterScope::Protocol, 1 << 20)), (Some(false), None));
    assert_eq!((used(CounterScope::Interface, 1 << 20), used(CounterScope::Process, 1 << 20)), (None, None));
}

/// Activity between two readings.
#[derive(Debug, Clone)]
struct Step {
    /// Duration in seconds.
    seconds: u64,
    /// Bytes that a user read and wrote.
    user: (u64, u64),
    /// Bytes that longhaul read from the client's cache, and from the server.
    own_read: (u64, u64),
    /// Bytes that longhaul wrote.
    own_written: u64,
    /// Share of longhaul's dirty bytes that are sent to the server.
    flushed: f64,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || 0u64..1_000_000;
    (1u64..30, (bytes(), bytes()), (bytes(), bytes()), bytes(), 0.0f64..=1.0).prop_map(
        |(seconds, user, own_read, own_written, flushed)| Step {
            seconds,
            user,
            own_read,
            own_written,
            flushed,
        },
    )
}

proptest! {
    #[test]
    fn user_and_own_traffic_add_up_to_the_bytes_on_the_wire(
        steps in proptest::collection::vec(step(), 1..30),
        source in prop_oneof![Just(CounterSource::Mountstats), Just(CounterSource::CifsStats), Just(CounterSource::Connections)],
    ) {
        let (mut meter, mut own, mut second, mut dirty, mut wire) = (TrafficMeter::default(), SelfTraffic::default(), 0, 0u64, (0u64, 0u64));
        feed(&mut meter, 0, counters(source.clone(), 0, 0), own);
        for step in steps {
            let before = wire;
            second += step.seconds;
            own = own.saturating_add(self_traffic(step.own_read.0 + step.own_read.1, step.own_written));
            dirty += step.own_written;
            let flushed = (dirty as f64 * step.flushed) as u64;
            dirty -= flushed;
            wire = (wire.0 + step.user.0 + step.own_read.1, wire.1 + step.user.1 + flushed);
            let traffic = feed(&mut meter, second, counters(source.clone(), wire.0, wire.1), own).unwrap();
            prop_assert_eq!(traffic.user_read.unwrap() + traffic.longhaul_read.unwrap(), wire.0 - before.0);
            prop_assert_eq!(traffic.user_written.unwrap() + traffic.longhaul_written.unwrap(), wire.1 - before.1);
            prop_assert!(traffic.user_read.unwrap() <= step.user.0, "own bytes must not be counted as a user's");
        }
    }

    #[test]
    fn own_writes_sent_in_time_are_never_user_traffic(
        steps in proptest::collection::vec((1u64..20, 0u64..1_000_000), 1..30),
    ) {
        let (mut meter, mut written, mut second) = (TrafficMeter::default(), 0u64, 0);
        feed(&mut meter, 0, counters(CounterSource::Mountstats, 0, 0), SelfTraffic::default());
        for (seconds, bytes) in steps {
            let sent = written;
            (second, written) = (second + seconds, written + bytes);
            let traffic =
                feed(&mut meter, second, counters(CounterSource::Mountstats, 0, sent), self_traffic(0, written)).unwrap();
            prop_assert_eq!(traffic.user_written, Some(0));
        }
    }

    #[test]
    fn any_readings_do_not_panic(
        values in proptest::collection::vec((any::<u64>(), proptest::option::of(any::<u64>()), any::<u64>(), any::<u64>()), 1..20),
    ) {
        let mut meter = TrafficMeter::default();
        for (at, count, own, asleep) in values {
            let counters = Counters {
                read_bytes: count,
                written_bytes: count,
                requests: count,
                age_seconds: count,
                round_trips: count.zip(count),
                ..Counters::new(CounterSource::CifsStats, CounterScope::Mount, String::new())
            };
            let own = BTreeMap::from([(name("nas"), SelfTraffic { read: own, written: own, calls: own })]);
            let observation = Observation { monotonic_ns: at, asleep_ns: asleep, self_traffic: &own };
            meter.update(&[reading("nas", counters)], &observation);
        }
    }
}
