//! Faults with a known place.

use longhaul_analysis::attribution::Layer;
use longhaul_model::draw::draw;

use crate::machines::Lab;

/// Fault with a known place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Delay of the network, in milliseconds one way.
    Delay(u64),
    /// Loss of packets, in percent.
    Loss(u64),
    /// Rate limit of the network, in megabits per second.
    Rate(u64),
    /// Delay of each access to the disk below the NAS's file system, in milliseconds.
    Disk(u64),
    /// Milliseconds of each 30 in which the NAS's processor is taken.
    BusyNas(u64),
    /// Milliseconds of each 30 in which this machine's processor is taken.
    BusyClient(u64),
}

impl Fault {
    /// Returns the fault of a trial. The first draws of all trials go through all kinds.
    pub fn drawn(trial: u64, seed: u64) -> Self {
        let within = |low: u64, high: u64| low + draw(seed, trial, 1) % (high - low + 1);
        match draw(seed, trial, 0).wrapping_add(trial) % 6 {
            0 => Self::Delay(within(4, 15)),
            1 => Self::Loss(within(3, 6)),
            2 => Self::Rate(within(2, 6)),
            3 => Self::Disk(within(20, 50)),
            4 => Self::BusyNas(within(22, 27)),
            _ => Self::BusyClient(within(22, 27)),
        }
    }

    /// Returns the layer in which the fault is.
    pub const fn layer(self) -> Layer {
        match self {
            Self::Delay(_) | Self::Loss(_) | Self::Rate(_) => Layer::Wire,
            Self::Disk(_) => Layer::ServerDisk,
            Self::BusyNas(_) => Layer::Server,
            Self::BusyClient(_) => Layer::Client,
        }
    }

    /// Begins the fault.
    pub fn begin(self, lab: &Lab) {
        match self {
            Self::Delay(time) => lab.net(&format!("delay {time}ms")),
            Self::Loss(percent) => lab.net(&format!("delay 1ms loss {percent}%")),
            Self::Rate(megabits) => lab.net(&format!("rate {megabits}mbit")),
            Self::Disk(time) => delay_disk(lab, time),
            Self::BusyNas(time) => drop(lab.ask_nas(&hog(time))),
            Self::BusyClient(time) => drop(lab.ask(&hog(time))),
        }
    }

    /// Ends the fault.
    pub fn end(self, lab: &Lab) {
        match self {
            Self::Delay(_) | Self::Loss(_) | Self::Rate(_) => lab.net("clear"),
            Self::Disk(_) => delay_disk(lab, 0),
            Self::BusyNas(_) => drop(lab.ask_nas(KILL_HOG)),
            Self::BusyClient(_) => drop(lab.ask(KILL_HOG)),
        }
    }
}

/// Ends the command of [`hog`]. The brackets keep it from ending its own shell.
const KILL_HOG: &str = "pkill -f 'longhaul-[h]og'";

/// Returns the command that takes the only processor of a machine for a part of each 30 ms, before all ordinary programs.
fn hog(milliseconds: u64) -> String {
    let idle = 30 - milliseconds;
    format!(
        "setsid chrt -f 10 python3 -c 'import time # longhaul-hog\nwhile True:\n end = time.monotonic() + {milliseconds} / 1000\n \
         while time.monotonic() < end: pass\n time.sleep({idle} / 1000)' >/dev/null 2>&1 </dev/null &"
    )
}

fn delay_disk(lab: &Lab, milliseconds: u64) {
    lab.ask_nas(&format!(
            "dmsetup --noudevsync suspend slow && echo \"0 $(blockdev --getsz /dev/loop0) delay /dev/loop0 0 {milliseconds}\" | \
             dmsetup load slow && dmsetup --noudevsync resume slow"
    ));
}

/// Returns whether two faults can be injected together: not twice the same means, and not two processors that are taken in
/// steps of 30 ms, because then each answer also waits for the other's step, and the wait belongs to both.
pub fn is_pair(first: Fault, second: Fault) -> bool {
    let is_step = |fault| matches!(fault, Fault::BusyNas(_) | Fault::BusyClient(_));
    first.layer() != second.layer() && !(is_step(first) && is_step(second))
}
