//! Time that strace takes from a program: it stops each thread at the beginning and at the end of each call.
//!
//! How long that is, a trace does not say. But no call takes less time than strace needs within it, and no two calls of a thread are
//! closer to each other than strace needs between them. The shortest of each so far is taken to be strace's part of every one: rather too
//! little than too much, because the program did something in it as well.

use std::collections::HashMap;
use std::time::Duration;

use crate::CallTime;

/// Keeps the time that strace has taken from each thread.
#[derive(Default)]
pub(super) struct RecorderTime {
    shortest_call: Option<Duration>,
    shortest_gap: Option<Duration>,
    threads: HashMap<u64, Thread>,
}

/// A thread after one of its calls.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// End of the last call, if the trace tells it.
    ended: Option<Duration>,
    /// Time that strace has taken.
    taken: Duration,
}

impl RecorderTime {
    /// Takes a call as the trace shows it, and returns its times without what strace took. Calls of a thread come in their order.
    pub(super) fn call(&mut self, shown: CallTime) -> CallTime {
        let thread = self.threads.entry(shown.thread).or_default();
        let gap = thread.ended.and_then(|ended| shown.began.checked_sub(ended));
        self.shortest_gap = shortest(self.shortest_gap, gap);
        self.shortest_call = shortest(self.shortest_call, shown.took);
        let in_gap = gap.and(self.shortest_gap).unwrap_or_default();
        let in_call = shown.took.and(self.shortest_call).unwrap_or_default();
        let recorder = thread.taken.saturating_add(in_gap);
        thread.taken = recorder.saturating_add(in_call);
        thread.ended = shown.took.map(|took| shown.began.saturating_add(took));
        CallTime { took: shown.took.map(|took| took - in_call), recorder, ..shown }
    }

    /// Forgets a thread that ended, and returns the time of its end.
    pub(super) fn end(&mut self, at: CallTime) -> CallTime {
        let taken = self.threads.remove(&at.thread).unwrap_or_default().taken;
        CallTime { recorder: taken, ..at }
    }
}

fn shortest(known: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    known.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use longhaul_model::{Histogram, Operation};

    use super::*;
    use crate::{Recording, Scrubber, Source, import, importer};

    /// Reads lines of one or more threads; strace takes 20 microseconds in each call and 30 between two.
    fn record(lines: &[&str]) -> Recording {
        let mut importer = importer(Source::Strace, b"/share").unwrap();
        let mut scrubber = Scrubber::new(b"/share");
        import(importer.as_mut(), &mut lines.join("\n").as_bytes(), &mut scrubber).unwrap();
        scrubber.finish(Source::Strace, None)
    }

    fn pauses_us(recording: &Recording) -> Vec<u64> {
        let mean = |class: u8| recording.mean_pauses[usize::from(class)] / 1000;
        recording.operations.iter().map(|operation| mean(operation.pause.number())).collect()
    }

    #[test]
    fn time_of_strace_is_in_no_pause_and_no_total() {
        let recording = record(&[
            r#"1 7.000000 openat(AT_FDCWD, "/lib/x", O_RDONLY) = 3 <0.000020>"#,
            r#"1 7.000050 close(3) = 0 <0.000020>"#,
            r#"1 7.000100 mkdir("/share/a", 0777) = 0 <0.005020>"#,
            r#"1 7.005150 openat(AT_FDCWD, "/lib/y", O_RDONLY) = 3 <0.000020>"#,
            r#"1 7.005200 close(3) = 0 <0.000020>"#,
            r#"1 7.006250 mkdir("/share/b", 0777) = 0 <0.005020>"#,
        ]);
        assert_eq!(pauses_us(&recording), [0, 1000]);
        let times = recording.times.unwrap();
        assert_eq!((times.waiting, times.total), (Duration::from_millis(10), Duration::from_millis(11)));
    }

    #[test]
    fn what_strace_took_from_a_thread_before_the_last_operation_is_not_taken_off_again() {
        let recording = record(&[
            r#"1 7.000000 openat(AT_FDCWD, "/lib/x", O_RDONLY) = 3 <0.000020>"#,
            r#"1 7.000050 close(3) = 0 <0.000020>"#,
            r#"2 7.000000 openat(AT_FDCWD, "/lib/x", O_RDONLY) = 3 <0.000020>"#,
            r#"2 7.000050 close(3) = 0 <0.000020>"#,
            r#"1 7.000100 mkdir("/share/a", 0777) = 0 <0.005020>"#,
            r#"2 7.005200 openat(AT_FDCWD, "/lib/y", O_RDONLY) = 3 <0.000020>"#,
            r#"2 7.005250 mkdir("/share/b", 0777) = 0 <0.005020>"#,
        ]);
        // 150 after the end of the first without strace's part; a call and a gap of strace lie between.
        assert_eq!(pauses_us(&recording), [0, 100]);
    }

    #[test]
    fn time_of_a_call_on_two_files_counts_once() {
        for output in ["/share/b", "/tmp/b"] {
            let opening = format!(r#"1 7.000050 openat(AT_FDCWD, "{output}", O_WRONLY) = 4 <0.000020>"#);
            let recording = record(&[
                r#"1 7.000000 openat(AT_FDCWD, "/share/a", O_RDONLY) = 3 <0.000020>"#,
                &opening,
                r#"1 7.000100 sendfile(4, 3, NULL, 100) = 100 <0.005020>"#,
                r#"1 7.006150 mkdir("/share/d", 0777) = 0 <0.000020>"#,
            ]);
            assert_eq!(pauses_us(&recording).last(), Some(&1000), "{output}");
            let times = recording.times.unwrap().by_operation;
            let counts =
                [Operation::Read, Operation::Write].map(|kind| times.get(&kind).map(Histogram::count));
            assert_eq!(counts, [Some(1), None], "{output}");
        }
    }

    #[test]
    fn trace_without_durations_keeps_its_pauses() {
        let recording = record(&[
            r#"1 7.000000 mkdir("/share/a", 0777) = 0"#,
            r#"1 7.001000 mkdir("/share/b", 0777) = 0"#,
        ]);
        assert_eq!(pauses_us(&recording), [0, 1000]);
    }
}
