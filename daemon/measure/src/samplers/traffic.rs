//! Readings of counters into what went on between them. Pure.

use std::collections::BTreeMap;

use crate::model::{Reading, TargetName, Traffic};

/// What longhaul's own runs and probes did on a target, as their calls say. It only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Own {
    /// Bytes that read calls returned.
    pub read: u64,
    /// Bytes that write calls accepted.
    pub written: u64,
    /// Calls of every kind.
    pub calls: u64,
}

/// When readings were made, and what longhaul itself had done by then.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// Nanoseconds of the clock that stops in sleep.
    pub monotonic_ns: u64,
    /// Nanoseconds that the machine has slept since it was started.
    pub asleep_ns: u64,
    /// Longhaul's own doings by target; a target that is not in it was not touched.
    pub own: &'a BTreeMap<TargetName, Own>,
}

/// What went on at one source of one target since the last look.
#[derive(Debug, Clone, PartialEq)]
pub struct Metered {
    /// The target; `None`: the machine.
    pub target: Option<TargetName>,
    /// What went on.
    pub traffic: Traffic,
    /// Whether somebody else than longhaul used it; see [`is_used`].
    pub used: Option<bool>,
}

/// Remembers the last reading of every source of every target.
#[derive(Debug, Default)]
pub struct Meter {}

impl Meter {
    /// Takes in what every source says now and gives what went on since it last said something. A first reading gives
    /// nothing, and neither does one after sleep or after its counter began anew.
    pub fn feed(&mut self, _readings: &[Reading], _look: &Look<'_>) -> Vec<Metered> {
        vec![]
    }
}

/// Whether somebody else than longhaul used a mount; `None` if its source cannot tell. `own_calls`: what longhaul itself
/// called in this time.
pub fn is_used(_traffic: &Traffic, _own_calls: u64) -> Option<bool> {
    None
}
