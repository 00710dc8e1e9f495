//! Events with their own copies of the paths.

use std::num::NonZeroU8;

use crate::{ActionResult, CallTime, TraceAction, TraceEvent};

/// An event that outlives the paths it comes with.
pub(super) struct OwnedEvent {
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
    pub(super) fn of(event: &TraceEvent<'_>) -> Self {
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
    pub(super) fn borrowed(&self) -> TraceEvent<'_> {
        let mut paths = [&self.paths.first, &self.paths.second].into_iter();
        let action = self.action.clone().with_paths(&mut |_| paths.next().map_or(&[], |path| path));
        let OwnedEvent { time, result, depth_in_open_folder, .. } = *self;
        TraceEvent { time, action, result, depth_in_open_folder }
    }
}
