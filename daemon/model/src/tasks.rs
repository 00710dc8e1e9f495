//! The everyday tasks as data: their names, and the waits in them that verdicts are about.
//!
//! The code that performs them is in the workloads of `longhaul-measure`, in the same order.

use crate::{CacheState, WaitKind, WaitMetric};

/// An everyday task: a workload with metrics that are compared between targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    name: &'static str,
    summary: &'static str,
    metrics: &'static [WaitMetric],
    is_paced: bool,
}

impl Task {
    /// Returns the name, which is stored with each run and never changes.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns one line that says what the task replays.
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// Returns the metrics, each in seconds, in the order in which the times of a run are stored.
    pub const fn metrics(&self) -> &'static [WaitMetric] {
        self.metrics
    }

    /// Returns whether the task waits on a schedule of its own, so that its total duration says nothing about the target.
    pub const fn is_paced(&self) -> bool {
        self.is_paced
    }
}

/// Shows a large folder, walks and searches a tree, previews files.
pub const FOLDER_INDEX: Task = Task {
    name: "folder-index",
    summary: "opens a folder of 1,000 files, walks a tree cold and warm, searches it, previews files",
    metrics: &[
        large_folder("folder-cold", CacheState::Cold, 0.125),
        large_folder("folder-warm", CacheState::Warm, 0.0),
        tree_walk("walk-cold", CacheState::Cold, 0.125),
        tree_walk("walk-warm", CacheState::Warm, 0.0),
    ],
    is_paced: false,
};

/// Opens a batch of photos and switches between them.
pub const PHOTO_BATCH: Task = Task {
    name: "photo-batch",
    summary: "opens 155 photos (415 MB) with thumbnails, switches between photos, then repeats both",
    metrics: &[
        photos("photos-cold", CacheState::Cold),
        photos("photos-warm", CacheState::Warm),
        photo_switch("switch-cold", CacheState::Cold),
        photo_switch("switch-warm", CacheState::Warm),
    ],
    is_paced: true,
};

/// Copies what changed in a source tree, and verifies the copy.
pub const INCREMENTAL_BACKUP: Task = Task {
    name: "incremental-backup",
    summary: "copies the 1 % of a local source that changed, like rsync with fsync, and verifies the copy",
    metrics: &[WaitMetric {
        name: "backup",
        activity: "an incremental backup",
        cache: CacheState::None,
        figures: &[("scan", "scan"), ("copy", "copy"), ("delete", "delete")],
        wait_kind: WaitKind::Background,
        weight: 0.25,
    }],
    is_paced: false,
};

/// Replays a Time Machine backup at normal I/O priority.
pub const TIME_MACHINE: Task = Task {
    name: "time-machine",
    summary: "Time Machine's speed test, writes with full syncs into a disk image, thinning, a restore",
    metrics: &[burst("a Time Machine burst", 0.25), restore("restoring from Time Machine")],
    is_paced: false,
};

/// Replays a Time Machine backup at the throttled I/O policy of the system's backup daemon.
pub const TIME_MACHINE_THROTTLED: Task = Task {
    name: "time-machine-throttled",
    summary: "time-machine at the throttled I/O policy that the system's backup daemon uses",
    metrics: &[
        burst("a throttled Time Machine burst", 0.0),
        restore("a throttled restore from Time Machine"),
    ],
    is_paced: false,
};

/// Replays what a person's own programs did.
pub const YOUR_DAY: Task = Task {
    name: "your-day",
    summary: "replays a recording of your own programs (`longhaul record`)",
    metrics: &[
        day("your day: total", &[("replay", "total")]),
        day("your day: time waiting", &[("replay", "waiting")]),
    ],
    is_paced: true,
};

/// Every task, in the order in which they are listed. In memory, a run refers to its task by the index here; the database
/// stores its name.
pub static TASKS: &[Task] =
    &[FOLDER_INDEX, PHOTO_BATCH, INCREMENTAL_BACKUP, TIME_MACHINE, TIME_MACHINE_THROTTLED, YOUR_DAY];

/// The tasks that are the same for everyone: all but the replay of a recording.
pub static STANDARD_TASKS: &[Task] =
    &[FOLDER_INDEX, PHOTO_BATCH, INCREMENTAL_BACKUP, TIME_MACHINE, TIME_MACHINE_THROTTLED];

/// Returns every metric with its task, in the order in which they are listed.
pub fn all_metrics() -> impl Iterator<Item = (&'static Task, &'static WaitMetric)> {
    TASKS.iter().flat_map(|task| task.metrics.iter().map(move |metric| (task, metric)))
}

/// The wait of a user who opens a folder.
const fn large_folder(name: &'static str, cache: CacheState, weight: f64) -> WaitMetric {
    WaitMetric {
        name,
        activity: "opening a large folder",
        cache,
        figures: &[("open-folder", "folder-shown")],
        wait_kind: WaitKind::Interactive,
        weight,
    }
}

/// The wait of an indexer.
const fn tree_walk(name: &'static str, cache: CacheState, weight: f64) -> WaitMetric {
    WaitMetric {
        activity: "walking a large tree",
        figures: &[("walk", "walk")],
        wait_kind: WaitKind::Background,
        ..large_folder(name, cache, weight)
    }
}

/// The wait until every thumbnail is shown.
const fn photos(name: &'static str, cache: CacheState) -> WaitMetric {
    WaitMetric {
        name,
        activity: "opening a batch of photos",
        cache,
        figures: &[("open", "all-thumbnails")],
        wait_kind: WaitKind::Interactive,
        weight: 0.0625,
    }
}

/// The wait for the next full-size photo.
const fn photo_switch(name: &'static str, cache: CacheState) -> WaitMetric {
    WaitMetric {
        activity: "switching to the next photo",
        figures: &[("browse", "switch-median")],
        ..photos(name, cache)
    }
}

const fn burst(activity: &'static str, weight: f64) -> WaitMetric {
    WaitMetric {
        name: "burst",
        activity,
        cache: CacheState::None,
        figures: &[("burst", "burst")],
        wait_kind: WaitKind::Background,
        weight,
    }
}

const fn restore(activity: &'static str) -> WaitMetric {
    WaitMetric {
        name: "restore-cold",
        cache: CacheState::Cold,
        figures: &[("restore", "restore")],
        ..burst(activity, 0.0)
    }
}

/// A time of a replayed recording.
const fn day(activity: &'static str, figures: &'static [(&'static str, &'static str)]) -> WaitMetric {
    WaitMetric {
        name: figures[0].1,
        activity,
        cache: CacheState::Cold,
        figures,
        wait_kind: WaitKind::Interactive,
        weight: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_METRICS;

    #[test]
    fn task_names_are_unique_and_summaries_say_something() {
        let mut names: Vec<_> = TASKS.iter().map(Task::name).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        assert!(TASKS.iter().all(|task| task.summary().len() > 20));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TASKS.len());
    }

    #[test]
    fn standard_tasks_are_all_but_the_last() {
        assert_eq!(STANDARD_TASKS, &TASKS[..TASKS.len() - 1]);
        assert_eq!(TASKS.last(), Some(&YOUR_DAY));
    }

    #[test]
    fn metric_names_are_unique_and_weights_add_up_to_one() {
        for task in TASKS {
            let mut names: Vec<_> = task.metrics().iter().map(|metric| metric.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), task.metrics().len());
            assert!((1..=MAX_METRICS).contains(&names.len()), "{}", task.name());
        }
        let weight: f64 = all_metrics().map(|(_, metric)| metric.weight).sum();
        assert!((weight - 1.0).abs() < 1e-12, "{weight}");
    }
}
