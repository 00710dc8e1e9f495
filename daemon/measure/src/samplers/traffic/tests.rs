use proptest::prelude::*;

use super::*;
use crate::model::Unread;

const SECOND: u64 = 1_000_000_000;

fn name(text: &str) -> TargetName {
    text.parse().expect("a name")
}

/// A counter of a mount that has moved this much.
fn counters(source: Source, read: u64, written: u64) -> Counters {
    Counters {
        read_bytes: Some(read),
        written_bytes: Some(written),
        requests: Some((read + written) / 1000),
        ..Counters::of(source, Covers::Mount, "0:51".to_owned())
    }
}

fn reading(target: &str, counters: Counters) -> Reading {
    Reading { target: Some(name(target)), counters: vec![Ok(counters)] }
}

/// Feeds one target's counter at a second, with what longhaul itself had moved by then.
fn feed(meter: &mut Meter, second: u64, counters: Counters, own: Own) -> Option<Traffic> {
    let own = BTreeMap::from([(name("nas"), own)]);
    let look = Look { monotonic_ns: second * SECOND, asleep_ns: 0, own: &own };
    meter.feed(&[reading("nas", counters)], &look).pop().map(|metered| metered.traffic)
}

fn moved(read: u64, written: u64) -> Own {
    Own { read, written, calls: (read + written).div_ceil(4096) }
}

#[test]
fn one_reading_tells_nothing_and_the_second_what_was_between() {
    let mut meter = Meter::default();
    assert_eq!(feed(&mut meter, 10, counters(Source::Mountstats, 5000, 100), Own::default()), None);
    let traffic = feed(&mut meter, 20, counters(Source::Mountstats, 9000, 100), moved(1000, 0)).unwrap();
    assert_eq!(
        (traffic.user_read, traffic.own_read, traffic.user_written),
        (Some(3000), Some(1000), Some(0))
    );
    assert_eq!((traffic.seconds, traffic.requests), (10.0, Some(4)));
}

#[test]
fn a_counter_that_began_anew_gives_nothing_once() {
    let begun_anew: [fn(Counters) -> Counters; 4] = [
        |before| Counters { read_bytes: Some(1), ..before },
        |before| Counters { life: "0:77".to_owned(), ..before },
        |before| Counters { age_seconds: Some(3), ..before },
        |before| Counters { round_trips: Some((1, 5)), ..before },
    ];
    for anew in begun_anew {
        let first = Counters {
            age_seconds: Some(100),
            round_trips: Some((9, 900)),
            ..counters(Source::Mountstats, 9000, 0)
        };
        let mut meter = Meter::default();
        feed(&mut meter, 10, first.clone(), Own::default());
        let other = anew(Counters { read_bytes: Some(9500), age_seconds: Some(110), ..first });
        assert_eq!(feed(&mut meter, 20, other.clone(), Own::default()), None, "{other:?}");
        let next = Counters {
            read_bytes: other.read_bytes.map(|bytes| bytes + 7),
            age_seconds: other.age_seconds.map(|age| age + 10),
            ..other
        };
        let traffic = feed(&mut meter, 30, next, Own::default());
        assert_eq!(traffic.and_then(|traffic| traffic.user_read), Some(7));
    }
}

#[test]
fn time_asleep_tells_nothing() {
    let (mut meter, own) = (Meter::default(), BTreeMap::new());
    let look = |seconds: u64, asleep: u64| Look {
        monotonic_ns: seconds * SECOND,
        asleep_ns: asleep * SECOND,
        own: &own,
    };
    let at = |read: u64| [reading("nas", counters(Source::Mountstats, read, 0))];
    assert_eq!(meter.feed(&at(0), &look(1, 0)), []);
    assert_eq!(meter.feed(&at(900), &look(2, 600)), []);
    assert_eq!(meter.feed(&at(1000), &look(3, 600))[0].traffic.user_read, Some(100));
}

#[test]
fn a_count_of_32_bits_goes_on_past_its_end_and_one_of_64_does_not() {
    let requests = |source: Source, count: u64| Counters { requests: Some(count), ..counters(source, 0, 0) };
    let end = u64::from(u32::MAX);
    for (source, grown) in [(Source::CifsStats, Some(Some(10))), (Source::Mountstats, None)] {
        let mut meter = Meter::default();
        feed(&mut meter, 1, requests(source.clone(), end - 4), Own::default());
        let traffic = feed(&mut meter, 2, requests(source.clone(), 5), Own::default());
        assert_eq!(traffic.map(|traffic| traffic.requests), grown, "{source:?}");
    }
    assert_eq!(since(1000, 0, Bits::ThirtyTwo), None, "set to zero by somebody");
}

#[test]
fn a_source_that_fell_silent_goes_on_where_it_was() {
    let (mut meter, own) = (Meter::default(), BTreeMap::new());
    let look = |seconds: u64| Look { monotonic_ns: seconds * SECOND, asleep_ns: 0, own: &own };
    let silent = Unread { source: Source::Mountstats, why: "it is empty".to_owned() };
    meter.feed(&[reading("nas", counters(Source::Mountstats, 100, 0))], &look(1));
    assert_eq!(
        meter.feed(&[Reading { target: Some(name("nas")), counters: vec![Err(silent)] }], &look(2)),
        []
    );
    let metered = meter.feed(&[reading("nas", counters(Source::Mountstats, 400, 0))], &look(3));
    assert_eq!((metered[0].traffic.user_read, metered[0].traffic.seconds), (Some(300), 2.0));
}

#[test]
fn what_the_cache_served_is_not_taken_from_somebody_else() {
    let mut meter = Meter::default();
    feed(&mut meter, 1, counters(Source::Mountstats, 0, 0), Own::default());
    let all_cached = feed(&mut meter, 2, counters(Source::Mountstats, 0, 0), moved(1 << 20, 0)).unwrap();
    assert_eq!((all_cached.user_read, all_cached.own_read), (Some(0), Some(0)));
    let users = feed(&mut meter, 3, counters(Source::Mountstats, 5000, 0), moved(1 << 20, 0)).unwrap();
    assert_eq!((users.user_read, users.own_read), (Some(5000), Some(0)), "nothing is carried over");
}

#[test]
fn what_was_written_is_waited_for_and_not_for_ever() {
    let mut meter = Meter::default();
    let own = moved(0, 1000);
    feed(&mut meter, 0, counters(Source::Mountstats, 0, 0), Own::default());
    feed(&mut meter, 10, counters(Source::Mountstats, 0, 0), own);
    let late = feed(&mut meter, 40, counters(Source::Mountstats, 0, 600), own).unwrap();
    assert_eq!((late.user_written, late.own_written), (Some(0), Some(600)));
    let too_late =
        feed(&mut meter, 10 + CARRIED_SECONDS + 1, counters(Source::Mountstats, 0, 900), own).unwrap();
    assert_eq!((too_late.user_written, too_late.own_written), (Some(300), Some(0)));
}

#[test]
fn two_targets_behind_one_counter_are_taken_away_together() {
    let own = |read| BTreeMap::from([(name("a"), moved(read, 0)), (name("b"), moved(2 * read, 0))]);
    let readings = |read| ["a", "b"].map(|target| reading(target, counters(Source::Mountstats, read, 0)));
    let mut meter = Meter::default();
    let (none, some) = (own(0), own(1000));
    meter.feed(&readings(0), &Look { monotonic_ns: SECOND, asleep_ns: 0, own: &none });
    let metered = meter.feed(&readings(5000), &Look { monotonic_ns: 2 * SECOND, asleep_ns: 0, own: &some });
    assert_eq!(metered.len(), 2);
    assert!(metered.iter().all(|one| one.traffic.user_read == Some(2000)), "{metered:?}");
}

#[test]
fn a_connection_that_rested_did_not_fail() {
    let at = |answered: u64, reconnects: u64| Counters {
        round_trips: Some((answered, 1000 * answered)),
        reconnects: Some(reconnects),
        ..counters(Source::Mountstats, 0, 0)
    };
    let mut meter = Meter::default();
    let mut after = |second: u64, answered: u64, reconnects: u64| {
        feed(&mut meter, second, at(answered, reconnects), Own::default()).and_then(|seen| seen.reconnects)
    };
    assert_eq!((after(0, 1, 1), after(10, 2, 2)), (None, Some(0)), "how long it rested before is not known");
    assert_eq!((after(20, 3, 3), after(30, 4, 3)), (Some(1), Some(0)), "it was in use");
    for second in (40..=400).step_by(10) {
        assert_eq!(after(second, 4, 3), Some(0));
    }
    assert_eq!(after(410, 5, 4), Some(0), "nobody used it for six minutes, and the kernel closed it");
    assert_eq!(after(420, 6, 5), Some(1));
    assert_eq!(after(720, 7, 6), Some(0), "between two readings five minutes apart it may have rested");
}

#[test]
fn an_interface_is_anybodys_and_a_disk_of_a_process_is_ours() {
    let mut meter = Meter::default();
    let with = |covers, source, read| Counters { covers, ..counters(source, read, 0) };
    let eth = |read| with(Covers::Interface, Source::Interface("eth0".into()), read);
    feed(&mut meter, 1, eth(0), Own::default());
    let traffic = feed(&mut meter, 2, eth(5000), moved(1000, 0)).unwrap();
    assert_eq!((traffic.user_read, traffic.own_read), (Some(5000), None));
    feed(&mut meter, 1, with(Covers::Process, Source::Disk, 0), Own::default());
    let traffic = feed(&mut meter, 2, with(Covers::Process, Source::Disk, 5000), moved(1000, 0)).unwrap();
    assert_eq!((traffic.user_read, traffic.own_read), (Some(0), Some(5000)));
}

#[test]
fn headers_of_our_own_calls_are_not_somebody_elses_traffic() {
    let mut meter = Meter::default();
    let megabytes = 64u64 << 20;
    feed(&mut meter, 1, counters(Source::Connections, 0, 0), Own::default());
    let wire = megabytes + megabytes / 100;
    let traffic = feed(&mut meter, 9, counters(Source::Connections, wire, 0), moved(megabytes, 0)).unwrap();
    assert_eq!((traffic.user_read, traffic.own_read), (Some(0), Some(wire)));
}

fn traffic(covers: Covers, bytes: Option<u64>, requests: Option<u64>) -> Traffic {
    let quiet = feed_of_nothing();
    Traffic { covers, user_read: bytes, user_written: bytes.map(|_| 0), requests, ..quiet }
}

fn feed_of_nothing() -> Traffic {
    let mut meter = Meter::default();
    feed(&mut meter, 1, counters(Source::Mountstats, 0, 0), Own::default());
    feed(&mut meter, 2, counters(Source::Mountstats, 0, 0), Own::default()).expect("a window")
}

#[test]
fn keeping_a_lease_alive_is_no_use_and_opening_a_folder_is() {
    let used = |bytes, requests, calls| is_used(&traffic(Covers::Mount, bytes, requests), calls);
    assert_eq!(used(Some(0), Some(0), 0), Some(false));
    assert_eq!(used(Some(900), Some(2), 0), Some(false), "a lease was renewed");
    assert_eq!(used(Some(0), Some(40), 0), Some(true), "names were looked up");
    assert_eq!(used(Some(1 << 20), Some(1), 0), Some(true));
    assert_eq!(used(Some(0), Some(40), 12), Some(false), "longhaul's own probe asked");
    assert_eq!(used(Some(0), None, 0), Some(false));
    assert_eq!(used(None, None, 0), None);
}

#[test]
fn a_source_that_counts_more_than_the_mount_says_only_what_it_can() {
    let used = |covers, bytes| is_used(&traffic(covers, Some(bytes), None), 0);
    assert_eq!(used(Covers::Server, 1 << 20), Some(true));
    assert_eq!((used(Covers::Protocol, 0), used(Covers::Protocol, 1 << 20)), (Some(false), None));
    assert_eq!((used(Covers::Interface, 1 << 20), used(Covers::Process, 1 << 20)), (None, None));
}

/// What happens in one window: seconds, bytes that the user read and wrote, that longhaul read and the cache served or did
/// not, and that it wrote; and the share of its unwritten bytes that reach the wire.
#[derive(Debug, Clone)]
struct Step {
    seconds: u64,
    user: (u64, u64),
    own_read: (u64, u64),
    own_written: u64,
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
    fn user_and_own_are_what_crossed_and_neither_is_below_zero(
        steps in proptest::collection::vec(step(), 1..30),
        source in prop_oneof![Just(Source::Mountstats), Just(Source::CifsStats), Just(Source::Connections)],
    ) {
        let (mut meter, mut own, mut second, mut dirty, mut wire) = (Meter::default(), Own::default(), 0, 0u64, (0u64, 0u64));
        feed(&mut meter, 0, counters(source.clone(), 0, 0), own);
        for step in steps {
            let before = wire;
            second += step.seconds;
            own = own.plus(moved(step.own_read.0 + step.own_read.1, step.own_written));
            dirty += step.own_written;
            let flushed = (dirty as f64 * step.flushed) as u64;
            dirty -= flushed;
            wire = (wire.0 + step.user.0 + step.own_read.1, wire.1 + step.user.1 + flushed);
            let traffic = feed(&mut meter, second, counters(source.clone(), wire.0, wire.1), own).unwrap();
            prop_assert_eq!(traffic.user_read.unwrap() + traffic.own_read.unwrap(), wire.0 - before.0);
            prop_assert_eq!(traffic.user_written.unwrap() + traffic.own_written.unwrap(), wire.1 - before.1);
            prop_assert!(traffic.user_read.unwrap() <= step.user.0, "the user is never given what is ours");
        }
    }

    #[test]
    fn writes_of_our_own_that_cross_in_time_are_never_the_users(
        steps in proptest::collection::vec((1u64..20, 0u64..1_000_000), 1..30),
    ) {
        let (mut meter, mut written, mut second) = (Meter::default(), 0u64, 0);
        feed(&mut meter, 0, counters(Source::Mountstats, 0, 0), Own::default());
        for (seconds, bytes) in steps {
            let late = written;
            (second, written) = (second + seconds, written + bytes);
            let traffic = feed(&mut meter, second, counters(Source::Mountstats, 0, late), moved(0, written)).unwrap();
            prop_assert_eq!(traffic.user_written, Some(0));
        }
    }

    #[test]
    fn any_readings_end_without_panic(
        values in proptest::collection::vec((any::<u64>(), proptest::option::of(any::<u64>()), any::<u64>(), any::<u64>()), 1..20),
    ) {
        let mut meter = Meter::default();
        for (at, count, own, asleep) in values {
            let counters = Counters {
                read_bytes: count,
                written_bytes: count,
                requests: count,
                age_seconds: count,
                round_trips: count.zip(count),
                ..Counters::of(Source::CifsStats, Covers::Mount, String::new())
            };
            let own = BTreeMap::from([(name("nas"), Own { read: own, written: own, calls: own })]);
            let look = Look { monotonic_ns: at, asleep_ns: asleep, own: &own };
            meter.feed(&[reading("nas", counters)], &look);
        }
    }
}
