//! Events in the order in which they began, although a trace shows them when they end.

use std::collections::{BTreeMap, BTreeSet};

use super::owned::OwnedEvent;
use crate::{Note, TraceEvent, TraceSink};

/// Holds events back until all that began earlier are known, but not more than a maximum of them: the events of a call that takes
/// longer, such as for a lock, get a later place. `Place` is the place of a call among the others.
#[derive(Default)]
pub struct EventOrder<Place, const MAXIMUM: usize> {
    /// Calls that have begun and not ended. Events with a later place wait for them.
    open: BTreeSet<Place>,
    waiting: BTreeMap<(Place, u64), OwnedEvent>,
    added: u64,
}

impl<Place: Ord + Copy, const MAXIMUM: usize> EventOrder<Place, MAXIMUM> {
    /// Keeps a place for a call that begins now.
    pub fn begin(&mut self, place: Place) {
        self.open.insert(place);
    }

    /// Adds an event behind those that already are at its place.
    pub fn add(&mut self, place: Place, event: &TraceEvent<'_>) {
        self.added += 1;
        self.waiting.insert((place, self.added), OwnedEvent::of(event));
    }

    /// Gives up the place of a call.
    pub fn end(&mut self, place: Place) {
        self.open.remove(&place);
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

    /// Returns a sink for the events at one place.
    pub(super) fn at<'order>(
        &'order mut self,
        place: Place,
        sink: &'order mut dyn TraceSink,
    ) -> OrderedSink<'order, Place, MAXIMUM> {
        OrderedSink { order: self, place, sink }
    }
}

/// Sink that puts events at one place.
pub(super) struct OrderedSink<'order, Place, const MAXIMUM: usize> {
    order: &'order mut EventOrder<Place, MAXIMUM>,
    place: Place,
    sink: &'order mut dyn TraceSink,
}

impl<Place: Ord + Copy, const MAXIMUM: usize> TraceSink for OrderedSink<'_, Place, MAXIMUM> {
    fn event(&mut self, event: &TraceEvent<'_>) {
        let waits = self.order.open.first().is_some_and(|open| *open < self.place);
        // Most events of a trace wait for nothing, so that they need no copy.
        if self.order.waiting.is_empty() && !waits {
            return self.sink.event(event);
        }
        self.order.add(self.place, event);
        self.order.deliver(self.sink);
    }

    fn note(&mut self, note: Note<'_>) {
        self.sink.note(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::testing::Written;
    use crate::{ActionResult, CallTime, TraceAction};
    use std::time::Duration;

    fn close(handle: u64) -> TraceEvent<'static> {
        let (time, action) = (CallTime::beginning(1, Duration::ZERO), TraceAction::Close { handle });
        TraceEvent { time, action, result: ActionResult::Done, depth_in_open_folder: None }
    }

    #[test]
    fn call_that_takes_long_holds_back_a_limited_number() {
        let (mut order, mut written) = (EventOrder::<u64, 2>::default(), Written::default());
        order.begin(0);
        for place in [3, 1, 2] {
            order.at(place, &mut written).event(&close(place));
        }
        assert_eq!(written.events, ["Close { handle: 1 } Done"]);
        order.at(0, &mut written).event(&close(0));
        order.finish(&mut written);
        assert_eq!(written.events[1..], [0, 2, 3].map(|handle| format!("Close {{ handle: {handle} }} Done")));
    }
}
