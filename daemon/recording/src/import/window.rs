//! Events of a trace that shows calls when they end, in the order in which they began.

use std::collections::BTreeMap;
use std::time::Duration;

use super::owned::OwnedEvent;
use crate::{Note, TraceEvent, TraceSink};

/// Largest number of events that are held back.
const MAX_HELD: usize = 1024;

/// Holds the last events back and passes them on by their beginning.
#[derive(Default)]
pub(super) struct SortingWindow {
    held: BTreeMap<(Duration, u64), OwnedEvent>,
    added: u64,
}

impl SortingWindow {
    /// Returns a sink that sorts.
    pub(super) fn sink<'window>(&'window mut self, sink: &'window mut dyn TraceSink) -> SortingSink<'window> {
        SortingSink { window: self, sink }
    }

    /// Passes on all that is held.
    pub(super) fn finish(&mut self, sink: &mut dyn TraceSink) {
        std::mem::take(&mut self.held).values().for_each(|event| sink.event(&event.borrowed()));
    }
}

/// Sink that holds events back.
pub(super) struct SortingSink<'window> {
    window: &'window mut SortingWindow,
    sink: &'window mut dyn TraceSink,
}

impl TraceSink for SortingSink<'_> {
    fn event(&mut self, event: &TraceEvent<'_>) {
        self.window.added += 1;
        self.window.held.insert((event.time.began, self.window.added), OwnedEvent::of(event));
        if self.window.held.len() > MAX_HELD
            && let Some((_, first)) = self.window.held.pop_first()
        {
            self.sink.event(&first.borrowed());
        }
    }

    fn note(&mut self, note: Note<'_>) {
        self.sink.note(note);
    }
}
