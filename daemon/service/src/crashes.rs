//! Whether the service crashed again and again: then it comes up in safe mode.

use std::io;
use std::path::{Path, PathBuf};

/// So many starts without an orderly end...
const STARTS: usize = 5;
/// ...within so many microseconds are a loop.
const WITHIN_US: i64 = 600 * 1_000_000;

/// The starts that have not come to an orderly end, in a file beside the database.
#[derive(Debug)]
pub struct Starts {
    path: PathBuf,
}

impl Starts {
    /// Those of a database.
    pub fn beside(database: &Path) -> Self {
        Self { path: database.with_extension("starts") }
    }

    /// Notes a start, and says whether it is one too many.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn note(&self, now_us: i64) -> io::Result<bool> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let (recent, is_loop) = judge(&text, now_us);
        let lines: String = recent.iter().chain([&now_us]).map(|start| format!("{start}\n")).collect();
        std::fs::write(&self.path, lines)?;
        Ok(is_loop)
    }

    /// Notes an orderly end, or that the person wants it to go on.
    pub fn forget(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The starts of the last ten minutes, and whether another one makes a loop. What is no number, or lies in the future
/// because the clock was set back, is left out.
fn judge(text: &str, now_us: i64) -> (Vec<i64>, bool) {
    let starts = text.lines().filter_map(|line| line.parse::<i64>().ok());
    let recent: Vec<i64> = starts.filter(|start| (now_us - WITHIN_US..=now_us).contains(start)).collect();
    let is_loop = recent.len() >= STARTS;
    (recent, is_loop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_crashes_within_ten_minutes_are_a_loop() {
        let folder = tempfile::tempdir().unwrap();
        let starts = Starts::beside(&folder.path().join("longhaul.sqlite"));
        let minute = 60_000_000;
        let notes: Vec<bool> = (0..6).map(|start| starts.note(start * minute).unwrap()).collect();
        assert_eq!(notes, [false, false, false, false, false, true]);
        assert!(!starts.note(30 * minute).unwrap(), "long ago");
        starts.forget();
        assert!(!starts.note(30 * minute).unwrap());
    }

    #[test]
    fn garbage_and_the_future_do_not_count() {
        assert_eq!(judge("x\n\n99\n100\n900000000000\n", 100), (vec![99, 100], false));
    }
}
