//! The catalog of all workloads: those of longhaul-measure, and the presets.

use std::sync::LazyLock;

use longhaul_measure::workloads::{Catalog, READ_BACK, WORKLOADS, Workload};

use crate::custom::CustomPreset;
use crate::preset::presets;

/// Returns all workloads and then all presets, in display order.
pub fn catalog() -> Catalog {
    static ALL: LazyLock<Vec<&'static dyn Workload>> = LazyLock::new(|| {
        let presets = presets().iter().map(|preset| preset as &dyn Workload);
        let read_back = std::iter::once(&READ_BACK as &dyn Workload);
        WORKLOADS.iter().copied().chain(read_back).chain(presets).collect()
    });
    Catalog { workloads: &ALL, custom: Some(&CustomPreset) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn preset_names_are_unique() {
        let mut names: Vec<_> = catalog().workloads.iter().map(|workload| workload.name()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    }

    #[test]
    fn no_workload_owns_a_foreign_path() {
        for workload in catalog().workloads {
            for path in ["diary.txt", "../scan 000001.pdf", "", "/etc/passwd"] {
                assert!(!workload.owns(Path::new(path)), "{} owns {path}", workload.name());
            }
        }
    }
}
