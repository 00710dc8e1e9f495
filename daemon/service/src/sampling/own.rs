//! What longhaul itself did on each target, over all processes that served it.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_measure::model::TargetName;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::samplers::Own;

/// The processes that serve the targets, and what their predecessors did.
#[derive(Default)]
pub struct OwnBook {
    entries: BTreeMap<TargetName, Entry>,
}

#[derive(Default)]
struct Entry {
    before: Own,
    recorder: Option<Arc<Recorder>>,
}

impl Entry {
    fn total(&self) -> Own {
        let now = self.recorder.as_ref().map(|recorder| {
            let (read, written) = recorder.total_bytes();
            Own { read, written, calls: recorder.finished() }
        });
        let now = now.unwrap_or_default();
        Own {
            read: self.before.read + now.read,
            written: self.before.written + now.written,
            calls: self.before.calls + now.calls,
        }
    }
}

impl OwnBook {
    /// The process that serves a target now.
    pub fn follow(&mut self, target: &TargetName, recorder: Option<Arc<Recorder>>) {
        let entry = self.entries.entry(target.clone()).or_default();
        let is_same = match (&entry.recorder, &recorder) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            *entry = Entry { before: entry.total(), recorder };
        }
    }

    /// The recorders of the processes that are there.
    pub fn recorders(&self) -> impl Iterator<Item = (&TargetName, &Arc<Recorder>)> {
        self.entries.iter().filter_map(|(target, entry)| Some((target, entry.recorder.as_ref()?)))
    }

    /// What was done on each target so far. It only grows.
    pub fn totals(&self) -> BTreeMap<TargetName, Own> {
        self.entries.iter().map(|(target, entry)| (target.clone(), entry.total())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_processes_did_is_not_forgotten() {
        let target: TargetName = "smb".parse().unwrap();
        let recorder = |bytes| {
            let recorder = Recorder::private().unwrap();
            recorder.lane(0).add_read(bytes);
            Arc::new(recorder)
        };
        let mut book = OwnBook::default();
        let first = recorder(10);
        book.follow(&target, Some(Arc::clone(&first)));
        first.lane(1).add_written(5);
        book.follow(&target, Some(Arc::clone(&first)));
        book.follow(&target, Some(recorder(7)));
        assert_eq!(book.totals()[&target], Own { read: 17, written: 5, calls: 0 });
        book.follow(&target, None);
        assert_eq!(book.totals()[&target], Own { read: 17, written: 5, calls: 0 });
        assert_eq!(book.recorders().count(), 0);
    }
}
