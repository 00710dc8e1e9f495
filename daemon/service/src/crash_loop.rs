//! Detects crash loops, after which the service starts in safe mode.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::private_files;
use longhaul_model::Timestamp;

/// Number of recent starts without an orderly end from which the next start counts as a crash loop.
const MAX_STARTS: usize = 5;
/// Period in which starts are counted.
const WINDOW: Duration = Duration::from_mins(10);

/// Records starts without an orderly end, in a file next to the database.
#[derive(Debug)]
pub struct CrashLoopGuard {
    path: PathBuf,
}

impl CrashLoopGuard {
    /// Returns the guard of a database. Its file is the database's with the extension `starts`.
    pub fn for_database(database: &Path) -> Self {
        Self { path: database.with_extension("starts") }
    }

    /// Records a start. Returns whether this is a crash loop.
    ///
    /// # Errors
    ///
    /// If the file of starts cannot be written.
    pub fn record_start(&self, now: Timestamp) -> io::Result<bool> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let (recent, is_loop) = recent_starts(&text, now);
        let lines: String = recent.iter().chain([&now]).map(|start| format!("{}\n", start.as_us())).collect();
        let mut file = private_files::options().write(true).create(true).truncate(true).open(&self.path)?;
        file.write_all(lines.as_bytes())?;
        Ok(is_loop)
    }

    /// Forgets all recorded starts: after an orderly end, or when the user ends the safe mode.
    pub fn reset(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the starts of the last ten minutes, and whether one more is a crash loop. Lines without a number are
/// ignored, and so are future times, which occur when the clock was set back.
fn recent_starts(text: &str, now: Timestamp) -> (Vec<Timestamp>, bool) {
    let starts = text.lines().filter_map(|line| line.parse().ok().map(Timestamp::from_us));
    let recent: Vec<_> = starts.filter(|start| (now - WINDOW..=now).contains(start)).collect();
    let is_loop = recent.len() >= MAX_STARTS;
    (recent, is_loop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_crashes_within_ten_minutes_are_a_loop() {
        let folder = tempfile::tempdir().unwrap();
        let starts = CrashLoopGuard::for_database(&folder.path().join("longhaul.sqlite"));
        let minute = |number| Timestamp::UNIX_EPOCH + number * Duration::from_mins(1);
        let notes: Vec<bool> = (0..6).map(|start| starts.record_start(minute(start)).unwrap()).collect();
        assert_eq!(notes, [false, false, false, false, false, true]);
        assert!(!starts.record_start(minute(30)).unwrap(), "the other starts are too old");
        starts.reset();
        assert!(!starts.record_start(minute(30)).unwrap());
    }

    #[test]
    fn invalid_lines_and_future_times_are_ignored() {
        let [before, now] = [99, 100].map(Timestamp::from_us);
        assert_eq!(recent_starts("x\n\n99\n100\n900000000000\n", now), (vec![before, now], false));
    }
}
