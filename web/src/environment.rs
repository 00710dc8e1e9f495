//! Where the figures come from.

use longhaul_measure::platform;
use longhaul_measure::summary::History;
use longhaul_report::Environment;
use longhaul_store::StoredEpoch;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// This machine, and what was negotiated on each target in its newest epoch.
pub fn environment(history: &History, epochs: &[StoredEpoch]) -> Environment {
    let negotiated =
        |number: i64| epochs.iter().find(|epoch| epoch.number == number).map(|epoch| &epoch.negotiated);
    let of_epoch = history
        .epochs
        .iter()
        .filter_map(|epoch| Some((epoch.target.clone(), negotiated(epoch.number)?.clone())));
    let processors = std::thread::available_parallelism().ok();
    Environment {
        longhaul: VERSION.to_owned(),
        system: Some(platform::system_version()),
        processors: processors.and_then(|count| u32::try_from(count.get()).ok()),
        memory_bytes: longhaul_service::memory_total(),
        // Epochs are in the order of their numbers: the newest one stays.
        negotiated: of_epoch.collect(),
    }
}
