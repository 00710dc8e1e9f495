//! Counts the traffic that longhaul itself caused on each target, over all worker processes of that target.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_measure::platform::{SYSTEM, System};
use longhaul_measure::recorder::Recorder;
use longhaul_measure::samplers::SelfTraffic;
use longhaul_model::{Mount, Protocol, TargetName};

/// Traffic of the current and all earlier worker processes, by target.
#[derive(Default)]
pub struct SelfTrafficTracker {
    entries: BTreeMap<TargetName, TargetTraffic>,
}

#[derive(Default)]
struct TargetTraffic {
    earlier_processes: SelfTraffic,
    recorder: Option<Arc<Recorder>>,
    /// Protocol of the target. `None`: unknown.
    protocol: Option<Protocol>,
}

impl TargetTraffic {
    fn total(&self) -> SelfTraffic {
        let of_process = |recorder| of_process(recorder, SYSTEM, self.protocol.as_ref());
        let now = self.recorder.as_deref().map(of_process).unwrap_or_default();
        SelfTraffic {
            read: self.earlier_processes.read + now.read,
            written: self.earlier_processes.written + now.written,
            calls: self.earlier_processes.calls + now.calls,
        }
    }
}

/// Returns the traffic of one worker process. On a Mac one call lists hundreds of entries, each with its attributes. NFS has no
/// call for that: the system looks each entry up and asks for its attributes (xnu bsd/vfs/vfs_attrlist.c:3932-4032), so an
/// entry counts as a call. Over SMB one request returns the attributes of many entries. Linux lists names, and the attributes of an
/// entry are a call of longhaul's own.
fn of_process(recorder: &Recorder, system: System, protocol: Option<&Protocol>) -> SelfTraffic {
    let (read, written) = recorder.total_bytes();
    let listed = match (system, protocol) {
        (System::MacOs, Some(Protocol::Nfs(_))) => recorder.listed_entries(),
        (System::MacOs | System::Linux, _) => 0,
    };
    SelfTraffic { read, written, calls: recorder.total_calls() + listed }
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
            let (earlier_processes, protocol) = (entry.total(), entry.protocol.take());
            *entry = TargetTraffic { earlier_processes, recorder, protocol };
        }
    }

    /// Sets the protocols of the mounted targets. An idle automount keeps that of the share.
    pub fn set_protocols(&mut self, mounts: &[(TargetName, Mount)]) {
        for (target, mount) in mounts.iter().filter(|(_, mount)| !mount.protocol.is_automount()) {
            if let Some(entry) = self.entries.get_mut(target) {
                entry.protocol = Some(mount.protocol.clone());
            }
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
    use std::fs::File;

    use longhaul_measure::error::RunError;
    use longhaul_measure::platform::ListingFields;
    use longhaul_measure::recorder::PROBE_THREAD_SLOT;
    use longhaul_measure::samplers::{Observation, TrafficMeter};
    use longhaul_measure::timed_fs::{Folder, ListingBuffer, StopSwitch, TimedFs};
    use longhaul_model::{CounterReading, CounterScope, CounterSource, Counters, Operation};

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

    /// Returns whether 650 kB on the wire look like the use of a user, beside what this recorder has counted.
    fn is_used(recorder: &Recorder, system: System, protocol: &Protocol) -> Option<bool> {
        let target: TargetName = "nas".parse().unwrap();
        let own = of_process(recorder, system, Some(protocol));
        let (nothing, own) = (BTreeMap::new(), BTreeMap::from([(target.clone(), own)]));
        let reading = |bytes| {
            let counters =
                Counters::new(CounterSource::Connections, CounterScope::Server, "192.0.2.5".to_owned());
            let counters = Counters { read_bytes: Some(bytes), written_bytes: Some(0), ..counters };
            [CounterReading { target: Some(target.clone()), counters: vec![Ok(counters)] }]
        };
        let at = |monotonic_ns, self_traffic| Observation { monotonic_ns, asleep_ns: 0, self_traffic };
        let mut meter = TrafficMeter::default();
        meter.update(&reading(0), &at(1_000_000_000, &nothing));
        meter.update(&reading(650_000), &at(2_000_000_000, &own)).pop().unwrap().is_used
    }

    #[test]
    fn attributes_of_own_listings_are_no_use_of_a_share() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..1000 {
            File::create(directory.path().join(number.to_string())).unwrap();
        }
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let folder = Folder::from_handle(File::open(directory.path()).unwrap().into(), directory.path());
        let context = TimedFs::new(&recorder, 0, &stop);
        context
            .list(&folder, ListingFields::Names, &mut ListingBuffer::default(), |_| Ok::<(), RunError>(()))
            .unwrap();
        assert_eq!(recorder.listed_entries(), 1000);
        let (nfs, smb) = (Protocol::Nfs(None), Protocol::Smb(None));
        assert_eq!(is_used(&recorder, System::MacOs, &nfs), Some(false));
        assert_eq!(is_used(&recorder, System::MacOs, &smb), Some(true), "one request lists many entries");
        assert_eq!(
            is_used(&recorder, System::Linux, &nfs),
            Some(true),
            "there, each entry's attributes are a call"
        );
    }

    #[test]
    fn protocol_of_a_share_outlives_its_idle_automount() {
        let target: TargetName = "nas".parse().unwrap();
        let mounted = |protocol| vec![(target.clone(), Mount::new("/m/nas", "nas:/x", protocol))];
        let mut tracker = SelfTrafficTracker::default();
        tracker.set_recorder(&target, Some(Arc::new(Recorder::private().unwrap())));
        for protocol in [Protocol::Nfs(None), Protocol::Other("autofs".to_owned())] {
            tracker.set_protocols(&mounted(protocol));
        }
        tracker.set_recorder(&target, None);
        assert_eq!(tracker.entries[&target].protocol, Some(Protocol::Nfs(None)));
    }
}
