//! Assignment of the recorded threads to replay threads.

use crate::Operations;

/// Place of a recorded thread in the recording.
#[derive(Debug, Clone, Copy)]
pub struct ThreadSpan {
    /// Number of its first operation.
    pub first: u32,
    /// Number of its last operation.
    pub last: u32,
    /// Number of its operations.
    pub count: u32,
}

/// Replay threads of the recorded ones.
pub struct Threads {
    /// Spans by the number of the recorded thread; `None` if a number is not used.
    pub spans: Vec<Option<ThreadSpan>>,
    /// Replay thread of each recorded one.
    pub lane_of: Vec<u32>,
    /// Number of steps of each replay thread, at most.
    pub steps: Vec<usize>,
}

impl Threads {
    /// Assigns the threads to at most `limit` replay threads. A thread gets one whose earlier thread has ended, else a new one,
    /// else the one with the fewest steps.
    pub fn assign(operations: &Operations, limit: usize) -> Self {
        let spans = spans(operations);
        let mut order: Vec<(ThreadSpan, usize)> =
            spans.iter().enumerate().filter_map(|(thread, span)| Some(((*span)?, thread))).collect();
        order.sort_unstable_by_key(|(span, _)| span.first);
        let (mut ends, mut steps) = (Vec::<u32>::new(), Vec::<usize>::new());
        let mut lane_of = vec![0; spans.len()];
        for (span, thread) in order {
            let ended = ends.iter().position(|end| *end < span.first);
            let lane = match ended {
                Some(lane) => lane,
                None if ends.len() < limit.max(1) => {
                    ends.push(0);
                    steps.push(0);
                    ends.len() - 1
                }
                None => (0..steps.len()).min_by_key(|lane| steps[*lane]).unwrap_or(0),
            };
            ends[lane] = ends[lane].max(span.last);
            steps[lane] += span.count as usize;
            lane_of[thread] = lane as u32;
        }
        Self { spans, lane_of, steps }
    }
}

fn spans(operations: &Operations) -> Vec<Option<ThreadSpan>> {
    let mut spans: Vec<Option<ThreadSpan>> = vec![];
    for (number, operation) in (0..).zip(operations.iter()) {
        let thread = operation.thread as usize;
        if spans.len() <= thread {
            spans.resize(thread + 1, None);
        }
        let span = spans[thread].get_or_insert(ThreadSpan { first: number, last: number, count: 0 });
        span.last = number;
        span.count += 1;
    }
    spans
}
