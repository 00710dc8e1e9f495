//! Times of the requests of a phase, from readings before and after it. Pure, without I/O and clocks.

use super::traffic::{CounterWidth, wrapping_delta};
use crate::platform::{PhaseCounters, ProcessorTimes};
use longhaul_model::{Counters, RequestTimes, RequestTotals, TcpCounters};

/// Counters and processor times at one point in time.
#[derive(Debug, Clone, Default)]
pub struct PhaseReading {
    /// Counters of the target.
    pub counters: PhaseCounters,
    /// Processor times.
    pub processor: ProcessorTimes,
}

/// Returns the times of the requests between two readings; `None` if no source has any.
pub(crate) fn request_times(before: &PhaseReading, after: &PhaseReading) -> Option<RequestTimes> {
    let requests = same(&before.counters.requests, &after.counters.requests);
    let connections = same(&before.counters.connections, &after.counters.connections);
    let processor = |time: fn(&ProcessorTimes) -> Option<u64>| {
        time(&after.processor)?.checked_sub(time(&before.processor)?)
    };
    let retransmits = connections
        .and_then(|(then, now)| wrapping_delta(then.retransmits?, now.retransmits?, CounterWidth::Bits32));
    let times = RequestTimes {
        requests: requests.map(|(then, now)| totals_delta(then, now)).unwrap_or_default(),
        tcp: connections.map(|(then, now)| tcp_delta(&then.tcp, &now.tcp)).unwrap_or_default(),
        retransmits,
        processor_us: processor(|times| times.used_us),
        processor_wait_us: processor(|times| times.waited_us),
        kernel_us: processor(|times| times.kernel_us),
        sent_bytes: connections.and_then(|(then, now)| delta(then.written_bytes, now.written_bytes)),
        received_bytes: connections.and_then(|(then, now)| delta(then.read_bytes, now.read_bytes)),
    };
    (times != RequestTimes::default()).then_some(times)
}

/// Returns both readings of a counter; `None` if it is not the same counter, because of a remount or reconnect.
fn same<'a>(then: &'a Option<Counters>, now: &'a Option<Counters>) -> Option<(&'a Counters, &'a Counters)> {
    let (then, now) = (then.as_ref()?, now.as_ref()?);
    (then.source == now.source && then.instance_id == now.instance_id).then_some((then, now))
}

fn totals_delta(then: &Counters, now: &Counters) -> RequestTotals {
    let (then, now) = (&then.request_totals, &now.request_totals);
    RequestTotals {
        answered: delta(then.answered, now.answered),
        queue_us: delta(then.queue_us, now.queue_us),
        answer_us: delta(then.answer_us, now.answer_us),
        execute_us: delta(then.execute_us, now.execute_us),
    }
}

/// Returns the increases of the counters, and the states of the second reading.
fn tcp_delta(then: &TcpCounters, now: &TcpCounters) -> TcpCounters {
    let sent = || wrapping_delta(then.segments_sent?, now.segments_sent?, CounterWidth::Bits32);
    TcpCounters { segments_sent: sent(), ..*now }
}

fn delta(then: Option<u64>, now: Option<u64>) -> Option<u64> {
    now?.checked_sub(then?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{CounterScope, CounterSource};
    use proptest::prelude::*;

    fn reading(instance: &str, requests: RequestTotals, tcp: TcpCounters) -> PhaseReading {
        let counters = |source| Counters {
            request_totals: requests,
            tcp,
            retransmits: Some(u64::from(u32::MAX)),
            ..Counters::new(source, CounterScope::Mount, instance.to_owned())
        };
        PhaseReading {
            counters: PhaseCounters {
                narrowest: None,
                requests: Some(counters(CounterSource::Mountstats)),
                connections: Some(counters(CounterSource::Connections)),
            },
            processor: ProcessorTimes { used_us: Some(700), ..ProcessorTimes::default() },
        }
    }

    fn totals(answered: u64, answer_us: u64) -> RequestTotals {
        RequestTotals { answered: Some(answered), answer_us: Some(answer_us), ..RequestTotals::default() }
    }

    #[test]
    fn counters_are_subtracted_and_states_kept() {
        let tcp = |segments, rtt| TcpCounters {
            segments_sent: Some(segments),
            min_rtt_us: Some(rtt),
            ..TcpCounters::default()
        };
        let before = reading("a", totals(10, 5_000), tcp(u64::from(u32::MAX), 900));
        let after = reading("a", totals(13, 8_000), tcp(4, 250));
        let times = request_times(&before, &after).unwrap();
        assert_eq!((times.requests.answered, times.requests.answer_us), (Some(3), Some(3_000)));
        assert_eq!((times.tcp.segments_sent, times.tcp.min_rtt_us), (Some(5), Some(250)));
        assert_eq!(times.requests.queue_us, None);
        assert_eq!((times.retransmits, times.processor_us, times.kernel_us), (Some(0), Some(0), None));
    }

    #[test]
    fn a_counter_that_was_reset_is_unknown() {
        let before = reading("a", totals(10, 5_000), TcpCounters::default());
        let times = request_times(&before, &reading("a", totals(2, 1), TcpCounters::default())).unwrap();
        assert_eq!((times.requests.answered, times.requests.answer_us), (None, None));
        let times = request_times(&before, &reading("b", totals(99, 9_000), TcpCounters::default())).unwrap();
        assert_eq!((times.requests, times.retransmits), (RequestTotals::default(), None));
    }

    #[test]
    fn without_any_source_there_are_no_times() {
        assert_eq!(request_times(&PhaseReading::default(), &PhaseReading::default()), None);
    }

    proptest! {
        #[test]
        fn counters_of_32_bits_grow_across_zero(then: u32, grown in 0u32..1 << 31) {
            let now = then.wrapping_add(grown);
            prop_assert_eq!(
                wrapping_delta(then.into(), now.into(), CounterWidth::Bits32),
                Some(u64::from(grown))
            );
        }
    }
}
