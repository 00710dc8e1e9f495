//! Runs work in several threads, each with its own thread slot of the recorder.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::context::TimedFs;
use crate::error::RunError;
use crate::recorder::THREAD_SLOTS;

impl TimedFs<'_> {
    /// Runs `job` for every item in `width` threads, starting the items in order.
    ///
    /// The number of threads is at most one less than the recorder's thread slots, because slot 0 belongs to the
    /// calling thread. After the first error, no further item is started, and items in progress are finished.
    pub fn run_parallel<T: Sync>(
        &self,
        width: usize,
        items: &[T],
        job: impl Fn(&TimedFs<'_>, &T) -> Result<(), RunError> + Sync,
    ) -> Result<(), RunError> {
        let next = AtomicUsize::new(0);
        let work = |slot: usize| {
            let context = self.for_thread_slot(slot);
            while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                job(&context, item).inspect_err(|_| next.store(items.len(), Relaxed))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (1..=width.clamp(1, THREAD_SLOTS - 1)).map(|slot| scope.spawn(move || work(slot))).collect();
            let results = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            results.fold(Ok(()), Result::and)
        })
    }

    /// Returns a handle for another thread slot, with the same start time.
    fn for_thread_slot(&self, slot: usize) -> TimedFs<'_> {
        TimedFs {
            thread_slot: self.recorder.thread_slot(slot),
            recorder: self.recorder,
            stop: self.stop,
            began_ns: self.began_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use parking_lot::Mutex;

    use super::*;
    use crate::recorder::Recorder;
    use crate::timed_fs::StopSwitch;
    use longhaul_model::Operation;

    #[test]
    fn every_item_is_done_once_and_recorded() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = TimedFs::new(&recorder, 0, &stop);
        let done = Mutex::new(vec![]);
        let items: Vec<u32> = (0..500).collect();
        let job = |context: &TimedFs<'_>, item: &u32| {
            context.compute(Operation::Decode, || done.lock().push(*item));
            Ok(())
        };
        context.run_parallel(8, &items, job).unwrap();
        let mut done = done.into_inner();
        done.sort_unstable();
        assert_eq!((done, recorder.snapshot().operations[0].latency.count()), (items, 500));
    }

    #[test]
    fn the_first_error_stops_the_work() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = TimedFs::new(&recorder, 0, &stop);
        let items: Vec<u32> = (0..100_000).collect();
        let job = |_: &TimedFs<'_>, item: &u32| match item {
            7 => Err(RunError::damaged(Path::new("seven"), "it is seven")),
            _ => Ok(()),
        };
        let error = context.run_parallel(4, &items, job).unwrap_err();
        assert_eq!(error.to_string(), "seven is damaged: it is seven");
    }
}
