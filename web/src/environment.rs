//! Describes the environment in which the figures were measured.

use longhaul_analysis::summary::Week;
use longhaul_measure::platform;
use longhaul_model::History;
use longhaul_store::StoredEpoch;
use longhaul_view::{Environment, negotiated_until};

/// Returns a description of this machine now, and of what was negotiated on each target at the end of a week.
pub fn report_environment(week: Week, history: &History, epochs: &[StoredEpoch]) -> Environment {
    Environment::of_this_machine(
        platform::system_version(),
        longhaul_service::processors(),
        longhaul_service::memory_total(),
        negotiated_until(week, history, epochs),
    )
}
