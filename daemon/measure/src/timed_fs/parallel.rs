//! Runs work in several threads, each with its own thread slot of the recorder.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use super::context::TimedFs;
use crate::error::RunError;
use crate::recorder::THREAD_SLOTS;

impl TimedFs<'_> {
    /// Runs `job` for every item in `width` threads, starting the items in order.
    ///
    /// The number of threads is at most one less than the recorder's thread slots, because slot 0 belongs to the
    /// calling thread. After the first error, no further item is started, and items in progress are finished.
    ///
    /// # Errors
    ///
    /// The error that came first: later ones may only follow from it.
    pub fn run_parallel<T: Sync>(
        &self,
        width: usize,
        items: &[T],
        job: impl Fn(&TimedFs<'_>, &T) -> Result<(), RunError> + Sync,
    ) -> Result<(), RunError> {
        let (next, first_error) = (AtomicUsize::new(0), Mutex::new(None));
        let work = |slot: usize| {
            let context = self.for_thread_slot(slot);
            while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                if let Err(error) = job(&context, item) {
                    first_error.lock().get_or_insert(error);
                    next.store(items.len(), Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            (1..=width.clamp(1, THREAD_SLOTS - 1)).for_each(|slot| drop(scope.spawn(move || work(slot))));
        });
        first_error.into_inner().map_or(Ok(()), Err)
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
        let (items, started): (Vec<u32>, _) = ((0..100).collect(), AtomicUsize::new(0));
        let job = |_: &TimedFs<'_>, item: &u32| {
            started.fetch_add(1, Relaxed);
            match item {
                7 => Err(RunError::damaged(Path::new("seven"), "it is seven")),
                _ => Ok(()),
            }
        };
        let error = context.run_parallel(1, &items, job).unwrap_err();
        assert_eq!((error.to_string().as_str(), started.into_inner()), ("seven is damaged: it is seven", 8));
    }
}
