//! Counts the traffic that longhaul itself caused on each target, over all worker processes of that target.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_measure::recorder::Recorder;
use longhaul_measure::samplers::SelfTraffic;
use longhaul_model::TargetName;

/// Traffic of the current and all earlier worker processes, by target.
#[derive(Default)]
pub struct SelfTrafficTracker {
    entries: BTreeMap<TargetName, TargetTraffic>,
}

#[derive(Default)]
struct TargetTraffic {
    earlier_processes: SelfTraffic,
    recorder: Option<Arc<Recorder>>,
}

impl TargetTraffic {
    fn total(&self) -> SelfTraffic {
        let now = self.recorder.as_ref().map(|recorder| {
            let (read, written) = recorder.total_bytes();
            SelfTraffic { read, written, calls: recorder.total_calls() }
        });
        let now = now.unwrap_or_default();
        SelfTraffic {
            read: self.earlier_processes.read + now.read,
            written: self.earlier_processes.written + now.written,
            calls: self.earlier_processes.calls + now.calls,
        }
    }
}

impl SelfTrafficTracker {
    /// Sets the flight recorder of the process that serves a target now. `None`: there is no process.
    pub fn set_recorder(&mut self, target: &TargetName, recorder: Option<Arc<Recorder>>) {
        let entry = self.entries.entry(target.clone()).or_default();
        let is_same = match (&entry.recorder, &recorder) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            *entry = TargetTraffic { earlier_processes: entry.total(), recorder };
        }
    }

    /// Returns the flight recorder of the process that serves each target now. `None`: there is no process.
    pub fn recorders(&self) -> impl Iterator<Item = (&TargetName, Option<&Arc<Recorder>>)> {
        self.entries.iter().map(|(target, entry)| (target, entry.recorder.as_ref()))
    }

    /// Forgets all targets but those for which this returns true.
    pub fn retain(&mut self, is_kept: impl Fn(&TargetName) -> bool) {
        self.entries.retain(|target, _| is_kept(target));
    }

    /// Returns the total traffic on each target so far. Totals never decrease.
    pub fn totals(&self) -> BTreeMap<TargetName, SelfTraffic> {
        self.entries.iter().map(|(target, entry)| (target.clone(), entry.total())).collect()
    }
}

#[cfg(test)]
mod tests {
    use longhaul_measure::recorder::PROBE_THREAD_SLOT;
    use longhaul_model::Operation;

    use super::*;

    #[test]
    fn traffic_of_earlier_processes_is_kept() {
        let target: TargetName = "smb".parse().unwrap();
        let recorder = |bytes| {
            let recorder = Recorder::private().unwrap();
            recorder.thread_slot(0).add_read(bytes);
            Arc::new(recorder)
        };
        let mut tracker = SelfTrafficTracker::default();
        let first = recorder(10);
        tracker.set_recorder(&target, Some(Arc::clone(&first)));
        first.thread_slot(1).add_written(5);
        tracker.set_recorder(&target, Some(Arc::clone(&first)));
        tracker.set_recorder(&target, Some(recorder(7)));
        assert_eq!(tracker.totals()[&target], SelfTraffic { read: 17, written: 5, calls: 0 });
        tracker.set_recorder(&target, None);
        assert_eq!(tracker.totals()[&target], SelfTraffic { read: 17, written: 5, calls: 0 });
        assert_eq!(tracker.recorders().filter_map(|(_, recorder)| recorder).count(), 0);
    }

    #[test]
    fn calls_of_runs_and_of_the_probe_are_counted() {
        let target: TargetName = "smb".parse().unwrap();
        let recorder = Arc::new(Recorder::private().unwrap());
        let mut tracker = SelfTrafficTracker::default();
        tracker.set_recorder(&target, Some(Arc::clone(&recorder)));
        for slot in [0, PROBE_THREAD_SLOT] {
            recorder.thread_slot(slot).end(Operation::Getattr, 5_000, &Ok::<(), ()>(()));
        }
        assert_eq!(tracker.totals()[&target], SelfTraffic { read: 0, written: 0, calls: 2 });
    }
}
