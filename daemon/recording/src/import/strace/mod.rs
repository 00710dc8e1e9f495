//! The text output of strace: `strace -f -ttt -T -y PROGRAM`, also without `-T`, `-y` and times.

mod calls;
mod context;
mod handles;
mod processes;
mod recorder_time;
mod syntax;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use self::context::Context;
use self::processes::{DescriptorCount, Shared, Thread};
use self::recorder_time::RecorderTime;
use self::syntax::{Answer, Call};
use super::Importer;
use super::numbers::DayClock;
use super::order::EventOrder;
use super::whole_files::MAX_OPEN;
use crate::{CallTime, Note, TraceSink};

/// Largest number of threads that are followed at the same time. The calls of another one are counted as unknown.
const MAX_THREADS: usize = 1 << 16;

/// Largest number of events that wait for a call that began earlier.
const MAX_WAITING: usize = 4096;

/// Mark at the end of a call that goes on while another thread is shown.
const UNFINISHED: &[u8] = b"<unfinished ...>";

/// Message that strace writes into the middle of a line if its output is not a file.
const ATTACHED: &[u8] = b"strace: Process ";

/// Message about the first thread of a process in which another one has executed a program; that one takes its number.
const SUPERSEDED: &[u8] = b"+++ superseded by execve in pid ";

/// Reads the text output of strace.
pub struct StraceImporter {
    threads: HashMap<u64, Thread>,
    descriptors: DescriptorCount,
    begun: HashMap<u64, BegunCall>,
    /// Threads that strace has announced; only without `-o`.
    announced: HashSet<u64>,
    recorder_time: RecorderTime,
    order: EventOrder<u64, MAX_WAITING>,
    next_rank: u64,
    start_folder: Option<Rc<[u8]>>,
    next_handle: u64,
    clock: DayClock,
    now: Duration,
}

/// A call whose end is shown later.
struct BegunCall {
    text: Vec<u8>,
    began: Duration,
    /// Its rank among all calls.
    rank: u64,
    /// The tables that a new thread will share, if this call starts one.
    starts: Option<Shared>,
}

impl StraceImporter {
    /// Creates an importer; `folder` is the current folder of the program at its start, for relative paths in a trace without
    /// `-y`.
    pub fn new(folder: Option<&[u8]>) -> Self {
        Self {
            threads: HashMap::new(),
            descriptors: DescriptorCount::default(),
            begun: HashMap::new(),
            announced: HashSet::new(),
            recorder_time: RecorderTime::default(),
            order: EventOrder::default(),
            next_rank: 0,
            start_folder: folder.map(Rc::from),
            next_handle: 0,
            clock: DayClock::default(),
            now: Duration::ZERO,
        }
    }

    /// Returns a thread. One that appears was started by a call that has begun and not ended, if there is one.
    fn thread(&mut self, number: u64) -> Thread {
        if let Some(thread) = self.threads.get(&number) {
            return thread.clone();
        }
        if self.threads.len() >= MAX_THREADS {
            return Thread::new(None, &self.descriptors);
        }
        let parent = self
            .begun
            .iter()
            .filter_map(|(parent, call)| Some((call.began, *parent, call.starts?)))
            .max_by_key(|(began, parent, _)| (*began, *parent));
        let parent = parent.and_then(|(_, parent, shared)| Some(self.threads.get(&parent)?.start(shared)));
        let thread = parent.unwrap_or_else(|| Thread::new(self.start_folder.clone(), &self.descriptors));
        self.threads.insert(number, thread.clone());
        thread
    }

    /// Gives the first thread its number, which strace shows only once there is another one, if its output is not a file.
    fn number_first_thread(&mut self, number: u64) {
        if number == 0 || self.threads.contains_key(&number) || self.announced.contains(&number) {
            return;
        }
        if let Some(thread) = self.threads.remove(&0) {
            self.threads.insert(number, thread);
        }
        if let Some(call) = self.begun.remove(&0) {
            self.keep_begun(number, call);
        }
    }

    /// Takes an announcement; what stands before it is the beginning of a call.
    fn announce(&mut self, thread: u64, rest: &[u8], start: usize) {
        let number = rest[start + ATTACHED.len()..].split(|byte| *byte == b' ').next();
        self.announced.extend(number.and_then(syntax::number));
        if start > 0 {
            self.begin(thread, &rest[..start]);
        }
    }

    fn begin(&mut self, thread: u64, text: &[u8]) {
        self.thread(thread);
        let name = name_of(text);
        let starts = calls::starts_thread(name).then(|| Shared::of_call(text));
        let is_followed = self.threads.contains_key(&thread);
        if is_followed && (starts.is_some() || calls::is_known(name)) {
            let rank = self.new_rank();
            self.order.begin(rank);
            self.keep_begun(thread, BegunCall { text: text.to_vec(), began: self.now, rank, starts });
        }
    }

    /// Keeps a call until its end is shown. The end of the previous one of the thread is never shown.
    fn keep_begun(&mut self, thread: u64, call: BegunCall) {
        if let Some(previous) = self.begun.insert(thread, call) {
            self.order.end(previous.rank);
        }
    }

    /// Returns the rank of a call that begins after all others.
    fn new_rank(&mut self) -> u64 {
        self.next_rank += 1;
        self.next_rank
    }

    fn resume(&mut self, thread: u64, rest: &[u8], sink: &mut dyn TraceSink) {
        let Some(resumed) = rest.windows(RESUMED.len()).position(|part| part == RESUMED) else {
            return sink.note(Note::Damaged);
        };
        let Some(begun) = self.begun.remove(&thread) else {
            // `<... resumed>` has no name, so that its two parts overlap.
            let name = rest.get(BEGIN_RESUMED.len()..resumed);
            if name.is_some_and(calls::is_known) {
                sink.note(Note::Damaged);
            }
            return;
        };
        let mut text = begun.text;
        text.extend_from_slice(&rest[resumed + RESUMED.len()..]);
        self.call(thread, &text, CallStart { began: begun.began, rank: Some(begun.rank) }, sink);
        self.order.end(begun.rank);
        self.order.deliver(sink);
    }

    fn call(&mut self, number: u64, text: &[u8], at: CallStart, sink: &mut dyn TraceSink) {
        let Some(call) = syntax::call(text) else { return sink.note(Note::Damaged) };
        if self.descriptors.get() >= MAX_OPEN {
            self.close_all(number, sink);
        }
        let thread = self.thread(number);
        let time =
            self.recorder_time.call(CallTime { took: call.took, ..CallTime::beginning(number, at.began) });
        if calls::starts_thread(call.name) {
            return self.start_thread(&thread, text, &call);
        }
        if !self.threads.contains_key(&number) && calls::is_known(call.name) {
            // Its descriptors are not kept: what it opens would never be closed.
            return sink.note(Note::UnknownHandle);
        }
        let took = time.took.or_else(|| at.rank.map(|_| self.now.saturating_sub(at.began)));
        let rank = at.rank.unwrap_or_else(|| self.new_rank());
        let mut context = Context {
            thread,
            time: CallTime { took, ..time },
            depth_in_open_folder: None,
            next_handle: &mut self.next_handle,
            sink: &mut self.order.at(rank, sink),
        };
        calls::handle(&mut context, &call);
    }

    fn start_thread(&mut self, parent: &Thread, text: &[u8], call: &Call<'_>) {
        let Answer::Number(child) = call.answer else { return };
        let shared = Shared::of_call(text);
        if self.threads.len() < MAX_THREADS {
            self.threads.entry(child.number).or_insert_with(|| parent.start(shared));
        }
    }

    /// Closes what all processes have open. A trace without the ends of openings would fill the memory.
    fn close_all(&mut self, thread: u64, sink: &mut dyn TraceSink) {
        let handles = self.threads.values().flat_map(|thread| thread.close_if(|_, _| true)).collect();
        let rank = self.new_rank();
        CallTime::beginning(thread, self.now).close_all(&mut self.order.at(rank, sink), handles);
    }

    fn supersede(&mut self, number: u64, successor: &[u8]) {
        let Some(successor) = successor.split(|byte| *byte == b' ').next().and_then(syntax::number) else {
            return;
        };
        if let Some(thread) = self.threads.remove(&successor) {
            self.threads.insert(number, thread);
        }
        if let Some(call) = self.begun.remove(&successor) {
            self.keep_begun(number, call);
        }
    }

    /// Ends a thread: the files that only its process had open are closed.
    fn end_thread(&mut self, number: u64, sink: &mut dyn TraceSink) {
        if let Some(begun) = self.begun.remove(&number) {
            self.order.end(begun.rank);
            self.order.deliver(sink);
        }
        let Some(thread) = self.threads.remove(&number) else { return };
        let time = self.recorder_time.end(CallTime::beginning(number, self.now));
        let rank = self.new_rank();
        time.close_all(&mut self.order.at(rank, sink), thread.end());
    }
}

/// Start of a call: its time, and its rank among all calls if it was shown in two parts.
struct CallStart {
    began: Duration,
    rank: Option<u64>,
}

const BEGIN_RESUMED: &[u8] = b"<... ";
const RESUMED: &[u8] = b" resumed>";

impl Importer for StraceImporter {
    fn line(&mut self, line: &[u8], sink: &mut dyn TraceSink) {
        let line = syntax::line(line);
        self.now = line.time.map_or(self.now, |time| self.clock.at(time));
        let rest = line.rest;
        self.number_first_thread(line.thread);
        if let Some(start) = announcement(rest) {
            return self.announce(line.thread, rest, start);
        }
        if rest.is_empty() || rest.starts_with(b"strace: ") || rest.starts_with(b"--- ") {
            return;
        }
        if let Some(successor) = rest.strip_prefix(SUPERSEDED) {
            return self.supersede(line.thread, successor);
        }
        if rest.starts_with(b"+++ ") {
            return self.end_thread(line.thread, sink);
        }
        if rest.starts_with(BEGIN_RESUMED) {
            return self.resume(line.thread, rest, sink);
        }
        if let Some(text) = rest.strip_suffix(UNFINISHED) {
            return self.begin(line.thread, text.trim_ascii_end());
        }
        self.call(line.thread, rest, CallStart { began: self.now, rank: None }, sink);
    }

    fn end(&mut self, sink: &mut dyn TraceSink) {
        for (_, call) in self.begun.drain() {
            if call.starts.is_none() {
                sink.note(Note::Damaged);
            }
        }
        self.order.finish(sink);
    }
}

/// Returns the position of an announcement at the end of a line.
fn announcement(rest: &[u8]) -> Option<usize> {
    if !rest.ends_with(b" attached") {
        return None;
    }
    rest.windows(ATTACHED.len()).rposition(|part| part == ATTACHED)
}

/// Returns the name of a call whose text may be incomplete.
fn name_of(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b'(').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
