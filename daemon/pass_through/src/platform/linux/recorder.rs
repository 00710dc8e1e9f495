//! Turns requests of the kernel into the operations of programs, and hands them over in the order in which they began.
//!
//! For a call with a path, the kernel looks up each part of it and then asks for the work. These belong together: the operation begins with
//! the first look-up and takes as long as all of them. A look-up alone is an operation only if there is nothing of this name, which the
//! kernel asks before it creates something, too. A close is two requests: `flush` when a program closes, `release` when no program has
//! the file open any more.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use longhaul_recording::{ActionResult, CallTime, EventOrder, Note, TraceAction, TraceEvent};
use parking_lot::Mutex;

use super::tree::NameIn;
use crate::Receiver;

/// Time after the end of a look-up or a `flush` from which it is not connected to a later request.
const PATIENCE: Duration = Duration::from_secs(1);
/// Largest number of operations that wait for an earlier one: more than programs make in [`PATIENCE`]. A call that waits for a lock,
/// or for a share that hangs, is handed over after them.
const MAX_WAITING: usize = 1 << 16;

/// Beginning of a request, with a number that makes it unique.
type Beginning = (Duration, u64);

/// Turns requests into operations.
pub struct Recorder {
    start: Instant,
    state: Mutex<State>,
}

struct State {
    receiver: Receiver,
    next: u64,
    /// Operations, which wait for requests whose operation is not known yet.
    order: EventOrder<Beginning, MAX_WAITING>,
    walks: HashMap<u32, Walk>,
    closings: HashMap<u64, Closing>,
}

/// A call of a program: one request or more.
struct Call {
    thread: u32,
    began: Beginning,
    took: Duration,
}

/// Look-ups of a thread so far.
struct Walk {
    began: Beginning,
    /// End of the last look-up, since the start of the recorder.
    ended: Duration,
    took: Duration,
    name: NameIn,
    end: WalkEnd,
}

/// The result of the last look-up.
enum WalkEnd {
    /// The number of the file that was found.
    Found(u64),
    /// There is nothing at this absolute path.
    Missing(Vec<u8>),
}

struct Closing {
    began: Beginning,
    /// End of the `flush`, since the start of the recorder.
    ended: Duration,
    took: Duration,
    thread: u32,
}

/// The file or name that a request is about.
pub enum Subject {
    /// A file, by its number.
    File(u64),
    /// A name in a folder.
    Name(NameIn),
    /// An open file, by its handle.
    Handle(u64),
}

/// A request that is being answered.
pub struct Request<'r> {
    recorder: &'r Recorder,
    thread: u32,
    began: Beginning,
    is_held: bool,
}

impl Recorder {
    /// Creates a recorder whose time begins now.
    pub fn new(receiver: Receiver) -> Self {
        let state = State {
            receiver,
            next: 0,
            order: EventOrder::default(),
            walks: HashMap::new(),
            closings: HashMap::new(),
        };
        Self { start: Instant::now(), state: Mutex::new(state) }
    }

    /// Begins a request of a thread.
    pub fn begin(&self, thread: u32) -> Request<'_> {
        let mut state = self.state.lock();
        state.next += 1;
        let began = (self.start.elapsed(), state.next);
        state.order.begin(began);
        Request { recorder: self, thread, began, is_held: false }
    }

    /// Tells whether the last look-up of a thread led to this file.
    pub fn has_walked_to(&self, thread: u32, file: u64) -> bool {
        let state = self.state.lock();
        state
            .walks
            .get(&thread)
            .is_some_and(|walk| matches!(walk.end, WalkEnd::Found(found) if found == file))
    }

    /// Reports a call for which recordings have no operation.
    pub fn unknown_call(&self, name: &'static str, path: Option<&[u8]>) {
        self.state.lock().receiver.note(Note::UnknownCall { name, path });
    }

    /// Hands over everything that still waits.
    pub fn finish(&self) {
        let state = &mut *self.state.lock();
        state.expire(Duration::MAX);
        state.order.finish(&mut *state.receiver);
    }
}

impl Request<'_> {
    /// Ends a request that is an operation.
    pub fn end(mut self, subject: Subject, result: ActionResult, action: Option<TraceAction<'_>>) {
        let now = self.recorder.start.elapsed();
        let mut state = self.recorder.state.lock();
        let mut took = now.saturating_sub(self.began.0);
        if let Subject::Handle(handle) = subject {
            state.stay_open(handle);
        }
        if let Some(walk) = state.walks.remove(&self.thread) {
            if walk.leads_to(&subject) {
                took += walk.took;
                state.order.end(self.began);
                self.began = walk.began;
            } else {
                state.end_walk(self.thread, walk);
            }
        }
        if let Some(action) = action {
            state.add(Call { thread: self.thread, began: self.began, took }, action, result);
        }
    }

    /// Ends a look-up that found a file.
    pub fn found(self, name: NameIn, file: u64) {
        self.looked_up(name, WalkEnd::Found(file));
    }

    /// Ends a look-up that found nothing at this absolute path.
    pub fn missing(self, name: NameIn, path: Vec<u8>) {
        self.looked_up(name, WalkEnd::Missing(path));
    }

    fn looked_up(mut self, name: NameIn, end: WalkEnd) {
        let now = self.recorder.start.elapsed();
        let mut state = self.recorder.state.lock();
        let mut took = now.saturating_sub(self.began.0);
        if let Some(walk) = state.walks.remove(&self.thread) {
            if matches!(walk.end, WalkEnd::Found(folder) if folder == name.folder) {
                took += walk.took;
                state.order.end(self.began);
                self.began = walk.began;
            } else {
                state.end_walk(self.thread, walk);
            }
        }
        state.walks.insert(self.thread, Walk { began: self.began, ended: now, took, name, end });
        self.is_held = true;
    }

    /// Ends a `flush` of a handle.
    pub fn flushed(mut self, handle: u64) {
        let now = self.recorder.start.elapsed();
        let mut state = self.recorder.state.lock();
        let took = now.saturating_sub(self.began.0);
        let closing = Closing { began: self.began, ended: now, took, thread: self.thread };
        if let Some(earlier) = state.closings.insert(handle, closing) {
            state.order.end(earlier.began);
        }
        self.is_held = true;
    }

    /// Ends the `release` of a handle.
    pub fn released(mut self, handle: u64) {
        let mut took = self.recorder.start.elapsed().saturating_sub(self.began.0);
        let mut state = self.recorder.state.lock();
        if let Some(closing) = state.closings.remove(&handle) {
            took += closing.took;
            state.order.end(self.began);
            (self.began, self.thread) = (closing.began, closing.thread);
        }
        let call = Call { thread: self.thread, began: self.began, took };
        state.add(call, TraceAction::Close { handle }, ActionResult::Done);
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        let now = self.recorder.start.elapsed();
        let state = &mut *self.recorder.state.lock();
        if !self.is_held {
            state.order.end(self.began);
        }
        state.expire(now);
        state.order.deliver(&mut *state.receiver);
    }
}

impl Walk {
    fn leads_to(&self, subject: &Subject) -> bool {
        let is_found = |file| matches!(self.end, WalkEnd::Found(found) if found == file);
        match subject {
            Subject::File(file) => is_found(*file),
            // The last part of a path is not always looked up before it is used.
            Subject::Name(name) => self.name == *name || is_found(name.folder),
            Subject::Handle(_) => false,
        }
    }
}

impl State {
    /// Adds an operation, which waits for those that began before it.
    fn add(&mut self, call: Call, action: TraceAction<'_>, result: ActionResult) {
        let time =
            CallTime { took: Some(call.took), ..CallTime::beginning(call.thread.into(), call.began.0) };
        // The kernel names a folder by its number, however the program named it.
        let event = TraceEvent { time, action, result, depth_in_open_folder: None };
        self.order.add(call.began, &event);
    }

    /// Ends look-ups that belong to no other request: only a name that does not exist was looked for.
    fn end_walk(&mut self, thread: u32, walk: Walk) {
        self.order.end(walk.began);
        if let WalkEnd::Missing(path) = &walk.end {
            let call = Call { thread, began: walk.began, took: walk.took };
            self.add(call, TraceAction::Attributes { path, found: None }, ActionResult::NotFound);
        }
    }

    /// Notes that a file is used after a program closed it: through another descriptor, or a map in memory.
    fn stay_open(&mut self, handle: u64) {
        if let Some(closing) = self.closings.remove(&handle) {
            self.order.end(closing.began);
        }
    }

    fn expire(&mut self, now: Duration) {
        // Since the end: a `flush` alone may write for seconds.
        let is_old = |ended: Duration| now.saturating_sub(ended) > PATIENCE;
        let old: Vec<u32> =
            self.walks.iter().filter(|(_, walk)| is_old(walk.ended)).map(|(thread, _)| *thread).collect();
        for thread in old {
            if let Some(walk) = self.walks.remove(&thread) {
                self.end_walk(thread, walk);
            }
        }
        let order = &mut self.order;
        self.closings.retain(|_, closing| {
            let is_kept = !is_old(closing.ended);
            if !is_kept {
                order.end(closing.began);
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::sync::Arc;

    use longhaul_recording::TraceSink;

    use super::*;

    type Log = Arc<Mutex<Vec<String>>>;

    /// A sink for events alone.
    struct Events<F>(F);

    impl<F: FnMut(&TraceEvent<'_>)> TraceSink for Events<F> {
        fn event(&mut self, event: &TraceEvent<'_>) {
            (self.0)(event);
        }

        fn note(&mut self, _note: Note<'_>) {}
    }

    fn recorder() -> (Recorder, Log) {
        let log = Log::default();
        let told = Arc::clone(&log);
        let receiver = move |event: &TraceEvent<'_>| {
            let words = match &event.action {
                TraceAction::Attributes { path, .. } => format!("look at {}", String::from_utf8_lossy(path)),
                TraceAction::CreateFolder { path } => format!("create {}", String::from_utf8_lossy(path)),
                TraceAction::Close { handle } => format!("close {handle}"),
                other => format!("{other:?}"),
            };
            told.lock().push(format!("{}: {words}", event.time.thread));
        };
        (Recorder::new(Box::new(Events(receiver))), log)
    }

    fn name(folder: u64, name: &str) -> NameIn {
        NameIn::new(folder, OsStr::new(name))
    }

    fn look(recorder: &Recorder, thread: u32, file: u64) {
        let path = format!("/{file}");
        let action = TraceAction::Attributes { path: path.as_bytes(), found: None };
        recorder.begin(thread).end(Subject::File(file), ActionResult::Done, Some(action));
    }

    #[test]
    fn look_ups_on_the_way_belong_to_the_operation() {
        let (recorder, log) = recorder();
        recorder.begin(1).found(name(1, "a"), 7);
        recorder.begin(1).found(name(7, "b"), 8);
        assert!(recorder.has_walked_to(1, 8) && !recorder.has_walked_to(2, 8));
        look(&recorder, 1, 8);
        recorder.finish();
        assert_eq!(*log.lock(), ["1: look at /8"]);
    }

    #[test]
    fn name_looked_for_before_it_is_created_is_one_operation() {
        let (recorder, log) = recorder();
        recorder.begin(1).missing(name(1, "a"), b"/a".into());
        let action = TraceAction::CreateFolder { path: b"/a" };
        recorder.begin(1).end(Subject::Name(name(1, "a")), ActionResult::Done, Some(action));
        recorder.begin(1).missing(name(1, "b"), b"/b".into());
        recorder.finish();
        assert_eq!(*log.lock(), ["1: create /a", "1: look at /b"]);
    }

    #[test]
    fn operations_are_handed_over_in_the_order_of_their_beginning() {
        let (recorder, log) = recorder();
        let slow = recorder.begin(1);
        look(&recorder, 2, 9);
        assert!(log.lock().is_empty());
        slow.end(Subject::File(5), ActionResult::Done, Some(TraceAction::CreateFolder { path: b"/slow" }));
        assert_eq!(*log.lock(), ["1: create /slow", "2: look at /9"]);
    }

    #[test]
    fn call_that_takes_long_holds_back_a_limited_number() {
        let (recorder, log) = recorder();
        let slow = recorder.begin(1);
        (0..=MAX_WAITING).for_each(|_| look(&recorder, 2, 9));
        assert_eq!(*log.lock(), ["2: look at /9"]);
        slow.end(Subject::File(5), ActionResult::Done, Some(TraceAction::CreateFolder { path: b"/slow" }));
        assert_eq!(log.lock()[1], "1: create /slow");
    }

    #[test]
    fn file_that_is_used_after_a_flush_is_closed_later() {
        let (recorder, log) = recorder();
        recorder.begin(1).flushed(3);
        let action = TraceAction::Close { handle: 4 };
        recorder.begin(1).end(Subject::Handle(3), ActionResult::Done, Some(action));
        recorder.begin(0).released(3);
        assert_eq!(*log.lock(), ["1: close 4", "0: close 3"]);
    }

    #[test]
    fn close_counts_from_the_flush_of_the_program() {
        let (recorder, log) = recorder();
        recorder.begin(1).flushed(3);
        look(&recorder, 1, 9);
        recorder.begin(0).released(3);
        recorder.finish();
        assert_eq!(*log.lock(), ["1: close 3", "1: look at /9"]);
    }

    /// Longer than the time for which a recorder waits for a later request.
    const SLOW: Duration = Duration::from_secs(2);

    /// Returns a recorder that has existed for two seconds, and the durations of its operations.
    fn recorder_of_durations() -> (Recorder, Arc<Mutex<Vec<Duration>>>) {
        let durations: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let told = Arc::clone(&durations);
        let receiver = move |event: &TraceEvent<'_>| told.lock().extend(event.time.took);
        let mut recorder = Recorder::new(Box::new(Events(receiver)));
        recorder.start -= SLOW;
        (recorder, durations)
    }

    /// Begins a request at the start of the recorder.
    fn begin_at_start(recorder: &Recorder, thread: u32) -> Request<'_> {
        let mut request = recorder.begin(thread);
        let mut state = recorder.state.lock();
        state.order.end(request.began);
        request.began.0 = Duration::ZERO;
        state.order.begin(request.began);
        drop(state);
        request
    }

    #[test]
    fn close_includes_a_flush_of_two_seconds() {
        let (recorder, durations) = recorder_of_durations();
        begin_at_start(&recorder, 1).flushed(3);
        recorder.begin(0).released(3);
        let durations = durations.lock();
        assert!(durations.len() == 1 && durations[0] >= SLOW, "{durations:?}");
    }

    #[test]
    fn operation_includes_a_look_up_of_two_seconds() {
        let (recorder, durations) = recorder_of_durations();
        begin_at_start(&recorder, 1).found(name(1, "a"), 7);
        look(&recorder, 1, 7);
        let durations = durations.lock();
        assert!(durations.len() == 1 && durations[0] >= SLOW, "{durations:?}");
    }
}
