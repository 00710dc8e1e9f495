//! What the machine says about itself: processors and memory. Never its disks, which can hang on a dead share.

use longhaul_measure::model::Conditions;

/// What this process knows and a worker does not ask.
pub struct Host {
    processors: Option<u32>,
    memory_available: Option<u64>,
}

impl Host {
    /// As it is now.
    pub fn now() -> Self {
        let processors = std::thread::available_parallelism().ok();
        Self {
            processors: processors.and_then(|count| u32::try_from(count.get()).ok()),
            memory_available: memory_available(),
        }
    }

    /// Adds it to the conditions of a run.
    pub fn add_to(&self, conditions: &mut Conditions) {
        conditions.processors = self.processors;
        conditions.memory_available = self.memory_available;
    }
}

/// The machine's memory in bytes; `None` where it is not known.
#[cfg(feature = "host-metrics")]
pub fn memory_total() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    Some(system.total_memory()).filter(|bytes| *bytes > 0)
}

/// The machine's memory in bytes; `None` where it is not known.
#[cfg(not(feature = "host-metrics"))]
pub fn memory_total() -> Option<u64> {
    None
}

#[cfg(feature = "host-metrics")]
fn memory_available() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    Some(system.available_memory()).filter(|bytes| *bytes > 0)
}

#[cfg(not(feature = "host-metrics"))]
fn memory_available() -> Option<u64> {
    None
}
