//! Describes the environment in which the figures were measured.

use longhaul_measure::platform;
use longhaul_model::History;
use longhaul_store::StoredEpoch;
use longhaul_view::{Environment, Machine};

/// Returns a description of this machine, and of what was negotiated on each target in its newest epoch.
pub fn report_environment(history: &History, epochs: &[StoredEpoch]) -> Environment {
    let machine = Machine {
        system: platform::system_version(),
        processors: longhaul_service::processors(),
        memory_bytes: longhaul_service::memory_total(),
    };
    let negotiated = epochs.iter().map(|epoch| (epoch.number, epoch.negotiated.clone())).collect();
    Environment::of_this_machine(machine, history, &negotiated)
}
