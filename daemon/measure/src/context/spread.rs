//! Work spread over several threads, each with its own lane.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::Context;
use crate::error::RunError;
use crate::recorder::LANES;

impl Context<'_> {
    /// Does `job` for every item, `width` at a time (at most one fewer than the recorder's lanes), in the order of the
    /// items. Ends at the first error: whoever is at work finishes the operation in flight and begins no other item.
    pub fn spread<T: Sync>(
        &self,
        width: usize,
        items: &[T],
        job: impl Fn(&Context<'_>, &T) -> Result<(), RunError> + Sync,
    ) -> Result<(), RunError> {
        let next = AtomicUsize::new(0);
        let work = |lane: usize| {
            let context = self.in_lane(lane);
            while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                job(&context, item).inspect_err(|_| next.store(items.len(), Relaxed))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (1..=width.clamp(1, LANES - 1)).map(|lane| scope.spawn(move || work(lane))).collect();
            let results = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            results.fold(Ok(()), Result::and)
        })
    }

    /// The same door, with the same clock, for another thread.
    fn in_lane(&self, lane: usize) -> Context<'_> {
        Context {
            lane: self.recorder.lane(lane),
            recorder: self.recorder,
            stop: self.stop,
            began_ns: self.began_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use super::*;
    use crate::context::StopSwitch;
    use crate::model::Operation;
    use crate::recorder::Recorder;

    #[test]
    fn every_item_is_done_once_and_recorded() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        let done = Mutex::new(vec![]);
        let items: Vec<u32> = (0..500).collect();
        let job = |context: &Context<'_>, item: &u32| {
            context.compute(Operation::Decode, || done.lock().unwrap().push(*item));
            Ok(())
        };
        context.spread(8, &items, job).unwrap();
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert_eq!((done, recorder.recorded().operations[0].latency.count()), (items, 500));
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        let items: Vec<u32> = (0..100_000).collect();
        let job = |_: &Context<'_>, item: &u32| match item {
            7 => Err(RunError::damaged(Path::new("seven"), "it is seven")),
            _ => Ok(()),
        };
        let error = context.spread(4, &items, job).unwrap_err();
        assert_eq!(error.to_string(), "seven is damaged: it is seven");
    }
}
