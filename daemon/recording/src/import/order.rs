//! Events in the order in which they began, although a trace shows them when they end.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;

use crate::{ActionResult, CallTime, Note, TraceAction, TraceEvent, TraceSink};

/// Holds events back until all that began earlier are known, but not more than a maximum of them: the events of a call that takes
/// longer, such as for a lock, get a later rank. `Rank` is the rank of a call among the others.
#[derive(Default)]
pub struct EventOrder<Rank, const MAXIMUM: usize> {
    /// Calls that have begun and not ended. Events with a later rank wait for them.
    open: BTreeSet<Rank>,
    waiting: BTreeMap<(Rank, u64), OwnedEvent>,
    added: u64,
}

impl<Rank: Ord + Copy, const MAXIMUM: usize> EventOrder<Rank, MAXIMUM> {
    /// Reserves a rank for a call that begins now.
    pub fn begin(&mut self, rank: Rank) {
        self.open.insert(rank);
    }

    /// Adds an event behind those that have its rank already.
    pub fn add(&mut self, rank: Rank, event: &TraceEvent<'_>) {
        self.added += 1;
        self.waiting.insert((rank, self.added), OwnedEvent::of(event));
    }

    /// Ends the reservation of a rank.
    pub fn end(&mut self, rank: Rank) {
        self.open.remove(&rank);
    }

    /// Passes on the events before which no other one can begin.
    pub fn deliver(&mut self, sink: &mut dyn TraceSink) {
        loop {
            let is_full = self.waiting.len() > MAXIMUM;
            let Some(first) = self.waiting.first_entry() else { return };
            if !is_full && self.open.first().is_some_and(|open| *open < first.key().0) {
                return;
            }
            sink.event(&first.remove().borrowed());
        }
    }

    /// Passes on all that waits.
    pub fn finish(&mut self, sink: &mut dyn TraceSink) {
        self.open.clear();
        self.deliver(sink);
    }

    /// Returns a sink for the events of one rank.
    pub(super) fn at<'order>(
        &'order mut self,
        rank: Rank,
        sink: &'order mut dyn TraceSink,
    ) -> OrderedSink<'order, Rank, MAXIMUM> {
        OrderedSink { order: self, rank, sink }
    }
}

/// Sink that gives events one rank.
pub(super) struct OrderedSink<'order, Rank, const MAXIMUM: usize> {
    order: &'order mut EventOrder<Rank, MAXIMUM>,
    rank: Rank,
    sink: &'order mut dyn TraceSink,
}

impl<Rank: Ord + Copy, const MAXIMUM: usize> TraceSink for OrderedSink<'_, Rank, MAXIMUM> {
    fn event(&mut self, event: &TraceEvent<'_>) {
        let waits = self.order.open.first().is_some_and(|open| *open < self.rank);
        // Most events of a trace wait for nothing, so that they need no copy.
        if self.order.waiting.is_empty() && !waits {
            return self.sink.event(event);
        }
        self.order.add(self.rank, event);
        self.order.deliver(self.sink);
    }

    fn note(&mut self, note: Note<'_>) {
        self.sink.note(note);
    }
}

/// An event that outlives the paths it comes with.
struct OwnedEvent {
    time: CallTime,
    action: TraceAction<'static>,
    result: ActionResult,
    depth_in_open_folder: Option<NonZeroU8>,
    paths: Paths,
}

/// The paths of an action, first and second.
#[derive(Default)]
struct Paths {
    first: Vec<u8>,
    second: Vec<u8>,
}

impl OwnedEvent {
    /// Copies an event.
    fn of(event: &TraceEvent<'_>) -> Self {
        let mut paths = Paths::default();
        let action = event.action.clone().with_paths(&mut |path| {
            let place = if paths.first.is_empty() { &mut paths.first } else { &mut paths.second };
            *place = path.to_vec();
            &[]
        });
        let TraceEvent { time, result, depth_in_open_folder, .. } = *event;
        Self { time, action, result, depth_in_open_folder, paths }
    }

    /// Returns the event.
    fn borrowed(&self) -> TraceEvent<'_> {
        let mut paths = [&self.paths.first, &self.paths.second].into_iter();
        let action = self.action.clone().with_paths(&mut |_| paths.next().map_or(&[], |path| path));
        let OwnedEvent { time, result, depth_in_open_folder, .. } = *self;
        TraceEvent { time, action, result, depth_in_open_folder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::testing::Written;
    use std::time::Duration;

    fn close(handle: u64) -> TraceEvent<'static> {
        let (time, action) = (CallTime::beginning(1, Duration::ZERO), TraceAction::Close { handle });
        TraceEvent { time, action, result: ActionResult::Done, depth_in_open_folder: None }
    }

    #[test]
    fn call_that_takes_long_holds_back_a_limited_number() {
        let (mut order, mut written) = (EventOrder::<u64, 2>::default(), Written::default());
        order.begin(0);
        for rank in [3, 1, 2] {
            order.at(rank, &mut written).event(&close(rank));
        }
        assert_eq!(written.events, ["Close { handle: 1 } Done"]);
        order.at(0, &mut written).event(&close(0));
        order.finish(&mut written);
        assert_eq!(written.events[1..], [0, 2, 3].map(|handle| format!("Close {{ handle: {handle} }} Done")));
    }
}
