//! The switch that turns the latency probe of a worker on and off, and that knows the worker's current workload.

use std::time::Duration;

use crate::platform::{IoPolicy, System, monotonic_ns};
use longhaul_model::ProbeMode;
use parking_lot::{Condvar, Mutex};

/// Stage of the worker's current workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkloadStage {
    /// Data of the workload is being prepared.
    Preparing,
    /// A run is in progress. The probe may make its scheduled requests, but no additional calls.
    Running,
    /// A run is in progress whose I/O policy slows the requests of the probe, too. It makes none.
    Throttled,
}

#[derive(Debug)]
struct State {
    probing: ProbeMode,
    /// Current workload; `None` while the worker is idle.
    workload: Option<(WorkloadStage, String)>,
    /// True after the sandbox was removed, until the probe is switched on or a workload starts.
    is_disabled: bool,
}

impl State {
    fn is_on(&self) -> bool {
        match self.probing {
            _ if self.is_disabled || matches!(self.workload, Some((WorkloadStage::Throttled, _))) => false,
            ProbeMode::On => true,
            ProbeMode::DuringRuns => self.workload.is_some(),
        }
    }
}

/// Switch between a worker and its latency probe. Its lock is never held during a call on the target, so worker
/// and probe never wait for each other.
#[derive(Debug)]
pub struct ProbeSwitch {
    state: Mutex<State>,
    changed: Condvar,
}

impl ProbeSwitch {
    /// Creates a switch with this initial mode.
    pub fn new(probing: ProbeMode) -> Self {
        Self {
            state: Mutex::new(State { probing, workload: None, is_disabled: false }),
            changed: Condvar::new(),
        }
    }

    /// Sets the mode of the probe. Also enables a probe that was disabled.
    pub fn set_probing(&self, probing: ProbeMode) {
        self.update(|state| (state.probing, state.is_disabled) = (probing, false));
    }

    /// Records that the preparation of a workload starts. Also enables a probe that was disabled.
    pub fn set_preparing(&self, workload: &str) {
        self.update(|state| {
            (state.workload, state.is_disabled) =
                (Some((WorkloadStage::Preparing, workload.to_owned())), false)
        });
    }

    /// Records that a run of a workload starts. Also enables a probe that was disabled.
    pub fn set_running(&self, workload: &str) {
        self.update(|state| {
            (state.workload, state.is_disabled) = (Some((WorkloadStage::Running, workload.to_owned())), false)
        });
    }

    /// Records the I/O policy that the run in progress will set, and switches the probe off while a Mac throttles it: there the policy covers all
    /// threads of the process, and slows requests over SMB and AFP, but not over NFS (xnu bsd/man/man3/getiopolicy_np.3:58). On Linux
    /// it covers one thread (ioprio_set(2)).
    pub fn set_io_policy(&self, system: System, policy: IoPolicy) {
        if (system, policy) == (System::MacOs, IoPolicy::Throttled) {
            self.update(|state| {
                state.workload.iter_mut().for_each(|(stage, _)| *stage = WorkloadStage::Throttled)
            });
        }
    }

    /// Records that the workload has ended.
    pub fn set_idle(&self) {
        self.update(|state| state.workload = None);
    }

    /// Disables the probe until its mode is set again or a workload starts. Called when the sandbox is removed.
    pub fn disable(&self) {
        self.update(|state| state.is_disabled = true);
    }

    /// Returns the name of the current workload; `None` while the worker is idle.
    pub fn current_workload(&self) -> Option<String> {
        self.state.lock().workload.as_ref().map(|(_, workload)| workload.clone())
    }

    /// Returns whether the probe may make calls in addition to its requests, which is not allowed during a run.
    pub fn allows_extra_calls(&self) -> bool {
        let state = self.state.lock();
        state.is_on() && !matches!(state.workload, Some((WorkloadStage::Running, _)))
    }

    /// Returns whether the probe is on.
    pub fn is_on(&self) -> bool {
        self.state.lock().is_on()
    }

    /// Waits until the probe is on.
    pub fn wait_until_on(&self) {
        self.changed.wait_while(&mut self.state.lock(), |state| !state.is_on());
    }

    /// Waits until a time on the monotonic clock, in nanoseconds, or until the probe is switched off. Returns
    /// whether the probe is on.
    pub fn wait_until(&self, at_ns: u64) -> bool {
        let mut state = self.state.lock();
        loop {
            let remaining = at_ns.saturating_sub(monotonic_ns());
            if !state.is_on() || remaining == 0 {
                return state.is_on();
            }
            self.changed.wait_for(&mut state, Duration::from_nanos(remaining));
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_during_runs_is_on_only_with_a_workload() {
        let switch = ProbeSwitch::new(ProbeMode::DuringRuns);
        assert!(!switch.is_on());
        switch.set_preparing("photo-batch");
        assert!(switch.is_on() && switch.allows_extra_calls());
        switch.set_running("photo-batch");
        assert!(switch.is_on() && !switch.allows_extra_calls());
        assert_eq!(switch.current_workload().as_deref(), Some("photo-batch"));
        switch.set_idle();
        assert!(!switch.is_on() && switch.current_workload().is_none());
    }

    #[test]
    fn probe_is_off_while_a_mac_throttles_the_process() {
        let switch = ProbeSwitch::new(ProbeMode::On);
        switch.set_running("time-machine-throttled");
        switch.set_io_policy(System::Linux, IoPolicy::Throttled);
        switch.set_io_policy(System::MacOs, IoPolicy::Default);
        assert!(switch.is_on());
        switch.set_io_policy(System::MacOs, IoPolicy::Throttled);
        assert!(!switch.is_on());
        assert_eq!(switch.current_workload().as_deref(), Some("time-machine-throttled"));
        switch.set_idle();
        assert!(switch.is_on());
    }

    #[test]
    fn disabled_probe_is_enabled_by_mode_or_workload() {
        let switch = ProbeSwitch::new(ProbeMode::On);
        for enable in
            [&(|| switch.set_probing(ProbeMode::On)) as &dyn Fn(), &|| switch.set_running("folder-index")]
        {
            switch.disable();
            assert!(!switch.is_on());
            enable();
            assert!(switch.is_on());
        }
    }

    #[test]
    fn wait_ends_at_its_time_or_when_switched_off() {
        let switch = ProbeSwitch::new(ProbeMode::On);
        let start = monotonic_ns();
        assert!(switch.wait_until(start + 5_000_000));
        assert!(monotonic_ns() >= start + 5_000_000);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| switch.wait_until(u64::MAX));
            switch.set_probing(ProbeMode::DuringRuns);
            assert!(!waiting.join().unwrap());
        });
    }
}
