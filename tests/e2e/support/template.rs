//! Databases with which several tests begin: each is filled once in this process, and every test gets a copy.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use longhaul_demo::synthetic_history;
use longhaul_measure::private_files;

/// A week of made-up results.
static ONE_WEEK: Template = Template::new(|database| fill_weeks(database, 1));
/// Two weeks of made-up results.
static TWO_WEEKS: Template = Template::new(|database| fill_weeks(database, 2));

/// Database that is filled when it is needed for the first time.
pub struct Template {
    fill: fn(&Path),
    content: OnceLock<Vec<u8>>,
}

impl Template {
    /// Creates a template. `fill` creates the database at a path, and closes it.
    pub const fn new(fill: fn(&Path)) -> Self {
        Self { fill, content: OnceLock::new() }
    }

    /// Creates a copy at a path where there is no file, with the folders and modes that longhaul gives to a new database.
    pub fn copy_to(&self, database: &Path) {
        let content = self.content.get_or_init(|| filled(self.fill));
        private_files::create_folder(database.parent().unwrap()).unwrap();
        let mut file = private_files::options().write(true).create_new(true).open(database).unwrap();
        file.write_all(content).unwrap();
    }
}

/// Returns the content of a database that was filled and closed.
fn filled(fill: fn(&Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("longhaul.sqlite");
    fill(&database);
    // SQLite removes the write-ahead log once the database contains all of it.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the database is closed");
    fs::read(&database).unwrap()
}

/// Creates a database with this many weeks of made-up results.
pub fn made_up_weeks(database: &Path, weeks: u32) {
    match weeks {
        1 => ONE_WEEK.copy_to(database),
        2 => TWO_WEEKS.copy_to(database),
        _ => fill_weeks(database, weeks),
    }
}

fn fill_weeks(database: &Path, weeks: u32) {
    synthetic_history::fill_database(database, (synthetic_history::BEGIN, weeks)).unwrap();
}
