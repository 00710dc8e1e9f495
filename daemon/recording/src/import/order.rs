//! Events in the order in which they began, although a trace shows them when they end.

use std::collections::VecDeque;

use super::owned::OwnedEvent;
use crate::{TraceEvent, TraceSink};

/// Largest number of events that wait for one that began earlier. A call that waits for longer, such as for a lock, keeps its
/// later place.
const MAX_WAITING: usize = 4096;

/// Place of a call that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

enum Slot {
    Begun,
    Ended(Vec<OwnedEvent>),
}

/// Holds events back until all that began earlier are known.
#[derive(Default)]
pub(super) struct EventOrder {
    slots: VecDeque<Slot>,
    /// Number of slots that have left.
    left: u64,
}

impl EventOrder {
    /// Keeps a place for a call that begins now.
    pub(super) fn begin(&mut self) -> Ticket {
        self.slots.push_back(Slot::Begun);
        Ticket(self.left + self.slots.len() as u64 - 1)
    }

    /// Returns a sink for the events of a call, at its place or, without one, at the end.
    pub(super) fn at<'order>(
        &'order mut self,
        ticket: Option<Ticket>,
        sink: &'order mut dyn TraceSink,
    ) -> OrderedSink<'order> {
        OrderedSink { order: self, ticket, sink }
    }

    /// Gives up a place.
    pub(super) fn end(&mut self, ticket: Ticket, sink: &mut dyn TraceSink) {
        if let Some(slot) = self.slot(ticket)
            && matches!(slot, Slot::Begun)
        {
            *slot = Slot::Ended(vec![]);
        }
        self.release(sink);
    }

    /// Passes on all that waits.
    pub(super) fn finish(&mut self, sink: &mut dyn TraceSink) {
        while !self.slots.is_empty() {
            self.pass_first(sink);
        }
    }

    fn slot(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let index = ticket.0.checked_sub(self.left)?;
        self.slots.get_mut(usize::try_from(index).ok()?)
    }

    fn release(&mut self, sink: &mut dyn TraceSink) {
        while matches!(self.slots.front(), Some(Slot::Ended(_))) || self.slots.len() > MAX_WAITING {
            self.pass_first(sink);
        }
    }

    fn pass_first(&mut self, sink: &mut dyn TraceSink) {
        if let Some(Slot::Ended(events)) = self.slots.pop_front() {
            events.iter().for_each(|event| sink.event(&event.borrowed()));
        }
        self.left += 1;
    }
}

/// Sink that puts events at the place of one call.
pub(super) struct OrderedSink<'order> {
    order: &'order mut EventOrder,
    ticket: Option<Ticket>,
    sink: &'order mut dyn TraceSink,
}

impl TraceSink for OrderedSink<'_> {
    fn event(&mut self, event: &TraceEvent<'_>) {
        if let Some(slot) = self.ticket.and_then(|ticket| self.order.slot(ticket)) {
            match slot {
                Slot::Begun => *slot = Slot::Ended(vec![OwnedEvent::of(event)]),
                Slot::Ended(events) => events.push(OwnedEvent::of(event)),
            }
        } else if self.order.slots.is_empty() || self.ticket.is_some() {
            self.sink.event(event);
        } else {
            self.order.slots.push_back(Slot::Ended(vec![OwnedEvent::of(event)]));
        }
    }

    fn note(&mut self, note: crate::Note<'_>) {
        self.sink.note(note);
    }
}

impl Drop for OrderedSink<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.order.end(ticket, self.sink);
        } else {
            self.order.release(self.sink);
        }
    }
}
