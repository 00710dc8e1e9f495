//! The tables of workloads.

use std::path::Path;

use super::settings::Settings;
use super::workload::Workload;
use super::{folder_index, incremental_backup, photo_batch, time_machine, your_day};

/// The workload that replays a recording.
static YOUR_DAY: your_day::YourDay = your_day::YourDay::new();

/// The workloads of this crate, in display order.
pub static WORKLOADS: &[&dyn Workload] = &[
    &folder_index::FolderIndex,
    &photo_batch::PhotoBatch,
    &incremental_backup::IncrementalBackup,
    &time_machine::TimeMachine::NORMAL,
    &time_machine::TimeMachine::THROTTLED,
    &YOUR_DAY,
];

/// All workloads of a program.
#[derive(Clone, Copy)]
pub struct Catalog {
    /// Workloads with a fixed name, in display order.
    pub workloads: &'static [&'static dyn Workload],
    /// Workload that runs [`Settings::custom_profile`]; `None` if the program runs no custom profiles.
    pub custom: Option<&'static dyn Workload>,
}

impl Catalog {
    /// Returns the workload with this name.
    pub fn find(self, name: &str) -> Option<&'static dyn Workload> {
        self.workloads.iter().copied().find(|workload| workload.name() == name)
    }

    /// Returns the workload to run: the one for custom profiles if the settings contain one, otherwise the one with
    /// this name.
    pub fn select(self, name: &str, settings: &Settings) -> Option<&'static dyn Workload> {
        match settings.custom_profile {
            Some(_) => self.custom,
            None => self.find(name),
        }
    }

    /// Returns whether some workload creates a file with this path in this folder of a sandbox.
    ///
    /// `folder` is the workload's folder at the top of the sandbox; `path` is relative to it.
    pub fn owns(self, folder: &str, path: &Path) -> bool {
        self.workloads.iter().any(|workload| workload.folder() == folder && workload.owns(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{TASKS, Task};

    #[test]
    fn workloads_match_the_tasks_of_the_model() {
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        assert_eq!(names, TASKS.iter().map(Task::name).collect::<Vec<_>>());
        let paced: Vec<_> = WORKLOADS.iter().map(|workload| workload.is_paced()).collect();
        assert_eq!(paced, TASKS.iter().map(Task::is_paced).collect::<Vec<_>>());
    }

    #[test]
    fn custom_profile_takes_the_place_of_the_named_workload() {
        let catalog = Catalog { workloads: WORKLOADS, custom: Some(WORKLOADS[1]) };
        let selected = |custom_profile| {
            let settings = Settings { custom_profile, ..Settings::default() };
            catalog.select("folder-index", &settings).map(|workload| workload.name())
        };
        assert_eq!(selected(None), Some("folder-index"));
        assert_eq!(selected(Some("a profile".into())), Some("photo-batch"));
    }
}
