//! Databases with which several tests begin: each is filled once in this process, and every test gets a copy.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use longhaul_demo::synthetic_history;
use longhaul_measure::private_files;

use super::temporary_folder;

/// Made-up results.
static TWO_DAYS: Template = Template::new(|database| fill_days(database, 2));
static ONE_WEEK: Template = Template::new(|database| fill_days(database, 7));
static TWO_WEEKS: Template = Template::new(|database| fill_days(database, 14));

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
    let folder = temporary_folder("longhaul-template-");
    let database = folder.path().join("longhaul.sqlite");
    fill(&database);
    // SQLite removes the write-ahead log once the database contains all of it.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the database is closed");
    fs::read(&database).unwrap()
}

/// Creates a database with this many days of made-up results.
pub fn made_up_days(database: &Path, days: u32) {
    match days {
        2 => TWO_DAYS.copy_to(database),
        7 => ONE_WEEK.copy_to(database),
        14 => TWO_WEEKS.copy_to(database),
        _ => fill_days(database, days),
    }
}

fn fill_days(database: &Path, days: u32) {
    synthetic_history::fill_database(database, synthetic_history::BEGIN, days).unwrap();
}
