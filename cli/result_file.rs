//! Writes results to files that the user names.

use std::fs::{self, File};
use std::path::Path;

use anyhow::Context as _;
use longhaul_store::has_sqlite_header;

use crate::errors::UsageError;

/// Writes a result to a file, and says so. An existing file is replaced, unless it is a database.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    refuse_database(path)?;
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))?;
    crate::output::eprintln!("Written: {}", path.display());
    Ok(())
}

/// Writes a text to a file like [`write`], without the colours that a terminal would show.
pub fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    write(path, anstream::adapter::strip_str(text).to_string())
}

/// Refuses to overwrite an SQLite database: the most costly typing mistake would be to name the database as
/// output.
pub fn refuse_database(path: &Path) -> anyhow::Result<()> {
    // To read from a pipe or a terminal would wait for its other end.
    let is_file = fs::metadata(path).is_ok_and(|facts| facts.is_file());
    // A file that cannot be read is told when it is written.
    let is_database = is_file && File::open(path).is_ok_and(|file| has_sqlite_header(&file));
    anyhow::ensure!(
        !is_database,
        UsageError(format!("{} is a database: give another `--output FILE`", path.display()))
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_file_has_no_colours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.txt");
        write_text(&path, "\u{1b}[1mÜber\u{1b}[0m alles\n").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "Über alles\n");
    }
}
