//! File system that delays requests by a script, so that the true latency is known.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fuser::{BackgroundSession, Errno};
use longhaul_measure::platform::monotonic_ns;

use super::server::Caching;
use super::{Behaviour, Disk, Incoming, RequestKind, Serving};

/// Decides when each request is answered, in nanoseconds on the monotonic clock.
pub trait Script: Send + Sync + 'static {
    /// Returns when a request that arrives at `now_ns` is answered. `is_timed` is true for the probe's own requests.
    fn answered_ns(&self, now_ns: u64, is_timed: bool) -> u64;
}

/// Controls and counters of the file system, shared with the test.
#[derive(Default)]
pub struct Controls {
    /// While true, reads of the probe's file do not return.
    pub block_reads: AtomicBool,
    /// Number of delayed requests.
    pub delayed: AtomicU64,
    /// Arrival and answer times, in nanoseconds on the monotonic clock, of the probe's requests and of all delayed
    /// ones.
    pub request_times: Mutex<Vec<(u64, u64)>>,
}

/// Mounted file system. It is unmounted when dropped.
pub struct Slow {
    _session: BackgroundSession,
    disk: Disk,
    /// Controls shared with the test.
    pub controls: Arc<Controls>,
}

impl Slow {
    /// Mounts an empty file system with this many threads that answer requests.
    pub fn mount(at: &Path, threads: usize, script: impl Script) -> Self {
        let (disk, controls) = (Disk::new(), Arc::new(Controls::default()));
        let behaviour = Arc::new(Scripted { script, controls: Arc::clone(&controls) });
        let serving = Serving { behaviour, caching: Caching::Names, threads };
        Self { _session: disk.mount(at, serving), disk, controls }
    }

    /// Returns the size in bytes of the largest file, which is the one that the probe reads.
    pub fn largest_file(&self) -> u64 {
        self.disk.volume().largest_file()
    }
}

struct Scripted<S> {
    script: S,
    controls: Arc<Controls>,
}

impl<S: Script> Scripted<S> {
    /// Waits as long as the script requires.
    fn wait(&self, is_timed: bool) {
        let now = monotonic_ns();
        let until = self.script.answered_ns(now, is_timed);
        let is_delayed = until > now;
        if is_delayed {
            self.controls.delayed.fetch_add(1, Ordering::Relaxed);
            sleep_until(until);
        }
        // A stall delays the first request that arrives, even if it is not one of the probe's.
        if is_timed || is_delayed {
            self.controls.request_times.lock().unwrap().push((now, monotonic_ns()));
        }
    }
}

impl<S: Script> Behaviour for Scripted<S> {
    fn before(&self, Incoming { kind, is_probes }: Incoming) -> Result<(), Errno> {
        let is_read = kind == RequestKind::Read && is_probes;
        while is_read && self.controls.block_reads.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let can_be_timed = matches!(kind, RequestKind::Attributes | RequestKind::Read | RequestKind::Write);
        if kind != RequestKind::Close {
            self.wait(is_probes && can_be_timed);
        }
        Ok(())
    }
}

/// Waits until a time on the monotonic clock. The last 2 ms are spent spinning, because a late wake-up would delay
/// the answer beyond the script.
fn sleep_until(at_ns: u64) {
    const AWAKE_NS: u64 = 2_000_000;
    while let Some(left) = at_ns.checked_sub(monotonic_ns()).filter(|left| *left > 0) {
        match left.checked_sub(AWAKE_NS) {
            Some(asleep) if asleep > 0 => std::thread::sleep(Duration::from_nanos(asleep)),
            _ => std::hint::spin_loop(),
        }
    }
}
