//! Collects slow calls from all thread slots of a recorder.

use super::flight_recorder::{PROBE_THREAD_SLOT, Recorder};
use super::slow_calls::RawSlowCall;

/// Collects the slow calls of a recorder, each exactly once.
#[derive(Debug)]
pub struct SlowCallCollector {
    seen: [u64; PROBE_THREAD_SLOT + 1],
}

impl Default for SlowCallCollector {
    fn default() -> Self {
        Self { seen: [0; PROBE_THREAD_SLOT + 1] }
    }
}

impl SlowCallCollector {
    /// Returns the slow calls that returned since the last call of this function, each with the number of its
    /// thread slot.
    pub fn collect(&mut self, recorder: &Recorder) -> Vec<(usize, RawSlowCall)> {
        let mut found = vec![];
        for (number, slot) in
            recorder.thread_slots().enumerate().chain([(PROBE_THREAD_SLOT, recorder.probe_thread_slot())])
        {
            let (calls, next) = slot.slow_calls().since(self.seen[number]);
            self.seen[number] = next;
            found.extend(calls.into_iter().map(|call| (number, call)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::slow_calls::RING_CAPACITY;
    use super::*;
    use longhaul_model::{Operation, Timestamp};

    fn slow_call(us: i64) -> RawSlowCall {
        RawSlowCall {
            operation: Operation::Sync,
            at: Timestamp::from_us(us),
            duration_ns: 2_000_000_000,
            error: None,
        }
    }

    #[test]
    fn each_slow_call_is_collected_once_with_its_thread_slot() {
        let (recorder, mut collector) = (Recorder::private().unwrap(), SlowCallCollector::default());
        recorder.thread_slot(2).record_slow_call(slow_call(5));
        recorder.thread_slot(PROBE_THREAD_SLOT).record_slow_call(slow_call(6));
        assert_eq!(collector.collect(&recorder), [(2, slow_call(5)), (PROBE_THREAD_SLOT, slow_call(6))]);
        recorder.clear();
        assert_eq!(collector.collect(&recorder), []);
        recorder.thread_slot(2).record_slow_call(slow_call(7));
        assert_eq!(collector.collect(&recorder), [(2, slow_call(7))]);
    }

    #[test]
    fn ring_keeps_the_latest_slow_calls() {
        let (recorder, mut collector) = (Recorder::private().unwrap(), SlowCallCollector::default());
        (0..100).for_each(|us| recorder.thread_slot(0).record_slow_call(slow_call(us)));
        let found: Vec<i64> =
            collector.collect(&recorder).into_iter().map(|(_, call)| call.at.as_us()).collect();
        assert_eq!(found, (100 - RING_CAPACITY as i64..100).collect::<Vec<_>>());
    }
}
