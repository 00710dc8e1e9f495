//! Describes the environment in which the figures were measured.

use longhaul_analysis::summary::Week;
use longhaul_measure::platform;
use longhaul_model::History;
use longhaul_store::StoredEpoch;
use longhaul_view::{Environment, Machine, negotiated_until};

/// Returns a description of this machine now, and of what was negotiated on each target at the end of a week.
pub fn report_environment(week: Week, history: &History, epochs: &[StoredEpoch]) -> Environment {
    let machine = Machine {
        system: platform::system_version(),
        processors: longhaul_service::processors(),
        memory_bytes: longhaul_service::memory_total(),
    };
    Environment::of_this_machine(machine, negotiated_until(week, history, epochs))
}
