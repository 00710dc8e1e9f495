//! The lines of the usage profile: what a user does how often a week, and the waits that follow from it.

/// Line of the usage profile.
#[derive(Debug)]
pub struct ProfileLine {
    /// Key in the configuration.
    pub key: &'static str,
    /// Waits that follow from each time, as `task/metric` with their number.
    pub waits: &'static [(&'static str, f64)],
    /// Times in an ordinary week, for users whose usage is neither given nor counted.
    pub ordinary: f64,
}

/// All lines of the usage profile. An ordinary week has 100 large folders opened, and 3 sessions with photos in which
/// the photo is switched 20 times each. It has only waits of a user.
pub const PROFILE_LINES: [ProfileLine; 5] = [
    ProfileLine { key: "folder-openings", waits: &[("folder-index/folder-cold", 1.0)], ordinary: 100.0 },
    ProfileLine {
        key: "photo-sessions",
        waits: &[("photo-batch/photos-cold", 1.0), ("photo-batch/switch-cold", SWITCHES_PER_SESSION)],
        ordinary: 3.0,
    },
    ProfileLine { key: "backups", waits: &[("incremental-backup/backup", 1.0)], ordinary: 0.0 },
    ProfileLine { key: "time-machine-bursts", waits: &[("time-machine/burst", 1.0)], ordinary: 0.0 },
    ProfileLine { key: "recorded-days", waits: &[("your-day/waiting", 1.0)], ordinary: 0.0 },
];

/// Number of times that a user switches to another photo in one session.
pub const SWITCHES_PER_SESSION: f64 = 20.0;

impl ProfileLine {
    /// Returns the waits a week, as `task/metric` with their number, for a number of times a week.
    pub fn waits_a_week(&self, times: f64) -> impl Iterator<Item = (String, f64)> {
        self.waits.iter().map(move |(metric, waits)| ((*metric).to_owned(), waits * times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all_metrics;

    #[test]
    fn waits_of_every_line_are_metrics() {
        let known: Vec<String> =
            all_metrics().map(|(task, metric)| format!("{}/{}", task.name(), metric.name)).collect();
        let waits = PROFILE_LINES.iter().flat_map(|line| line.waits_a_week(1.0));
        assert!(waits.into_iter().all(|(metric, _)| known.contains(&metric)));
    }
}
