//! Runs longhaul in a temporary home, replaces what differs between machines in its output, and compares the output
//! with snapshots.

use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jiff::Zoned;
use jiff::tz::TimeZone;
use longhaul_measure::platform;
use longhaul_service::daemon_address::DaemonAddress;
use longhaul_store::Store;
use tempfile::TempDir;

use super::world;
use crate::support::template::Template;
use crate::support::temporary_folder;

/// Four weeks of results.
static FOUR_WEEKS: Template = Template::new(|database| {
    Store::open(database, &[]).unwrap().set_machine_id(world::MACHINE).unwrap();
    world::fill(database, world::FOUR_WEEKS);
});

/// Width of the terminal in columns; only the help depends on it.
const COLUMNS: &str = "100";

/// Temporary home folder, and the machine-specific words to replace in output.
pub struct Home {
    root: TempDir,
    replacements: Vec<(String, &'static str)>,
}

impl Home {
    /// Creates a home without database and configuration.
    pub fn new() -> Self {
        let root = temporary_folder("longhaul-screens-");
        std::fs::create_dir(root.path().join("home")).unwrap();
        let programs = Path::new(env!("CARGO_BIN_EXE_longhaul")).parent().unwrap();
        let text = |path: &Path| path.display().to_string();
        let now = Zoned::now().with_time_zone(TimeZone::UTC);
        let week = now.date().iso_week_date();
        let replacements = vec![
            (text(root.path()), "[ROOT]"),
            (text(&root.path().canonicalize().unwrap()), "[ROOT]"),
            (text(programs), "[PROGRAMS]"),
            (platform::system_version(), "[SYSTEM]"),
            (format!("{}-W{:02}", week.year(), week.week()), "[THIS-WEEK]"),
            (now.date().to_string(), "[TODAY]"),
            (env!("CARGO_PKG_VERSION").to_owned(), "[VERSION]"),
        ];
        Self { root, replacements }
    }

    /// Creates a home with an empty database.
    pub fn empty() -> Self {
        let home = Self::new();
        Store::open(&home.database(), &[]).unwrap().set_machine_id(world::MACHINE).unwrap();
        home
    }

    /// Creates a home with a database that cannot be read.
    pub fn broken() -> Self {
        let home = Self::new();
        home.write("home/data/longhaul/longhaul.sqlite", "this is not a database, however long it gets");
        home
    }

    /// Creates a home with a configuration and four weeks of results.
    pub fn full() -> Self {
        let home = Self::new();
        FOUR_WEEKS.copy_to(&home.database());
        home.configure(world::CONFIG);
        home
    }

    /// Creates a home with the results of a data set.
    pub fn of(world: world::World) -> Self {
        let home = Self::empty();
        world::fill(&home.database(), world);
        home
    }

    /// Returns a path below the temporary folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.path("home/data/longhaul/longhaul.sqlite")
    }

    /// Writes a file and creates its parent folders.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes the configuration file.
    pub fn configure(&self, text: &str) {
        self.write("home/config/longhaul/config.toml", text);
    }

    /// Runs longhaul. `~` in the command line stands for the temporary folder.
    pub fn longhaul(&self, line: &str) -> Screen {
        self.run(env!("CARGO_BIN_EXE_longhaul"), line, None)
    }

    /// Runs longhaul with these lines on standard input.
    pub fn longhaul_answered(&self, line: &str, answers: &str) -> Screen {
        self.write("answers", answers);
        self.run(env!("CARGO_BIN_EXE_longhaul"), line, Some("answers"))
    }

    /// Runs a program, optionally with a file as its standard input.
    pub fn run(&self, program: &str, line: &str, input: Option<&str>) -> Screen {
        let root = self.root.path().display().to_string();
        let output = Command::new(program)
            .args(line.split_whitespace().map(|word| word.replace('~', &root)))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("XDG_DATA_HOME", self.path("home/data"))
            .env("XDG_CONFIG_HOME", self.path("home/config"))
            .env("XDG_STATE_HOME", self.path("home/state"))
            // This folder is empty: without systemctl the output does not depend on a running systemd.
            .env("PATH", self.path("programs"))
            .env("TZ", "UTC")
            .env("COLUMNS", COLUMNS)
            .current_dir(self.path("home"))
            .stdin(input.map_or(Stdio::null(), |name| File::open(self.path(name)).unwrap().into()))
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| self.normalize(&String::from_utf8(bytes).unwrap());
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        Screen {
            line: format!("{name} {line}"),
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Replaces everything that depends on the machine, the home folder or the time.
    pub fn normalize(&self, text: &str) -> String {
        let address = DaemonAddress::read(&self.database());
        let port = address.map(|address| (format!("127.0.0.1:{}", address.port), "127.0.0.1:[PORT]"));
        let replacements = self.replacements.iter().cloned().chain(port);
        let text = replacements.fold(text.to_owned(), |text, (word, instead)| text.replace(&word, instead));
        let is_of_this_machine = text.contains(r#""environment": {"#);
        let line =
            |line: &str| if is_of_this_machine { normalize_machine(line) } else { normalize_line(line) };
        text.split_inclusive('\n').map(line).collect()
    }
}

/// Replaces the description of this machine in a line of JSON.
fn normalize_machine(line: &str) -> String {
    match line.split_once(": ") {
        Some((key, _))
            if ["system", "processors", "memory_bytes"].contains(&key.trim().trim_matches('"')) =>
        {
            format!("{key}: [MACHINE],\n")
        }
        _ => normalize_line(line),
    }
}

/// Replaces random keys and ids, varying sizes and times, and the hardware description in a line.
fn normalize_line(line: &str) -> String {
    let until = |begin: &str, end: &str, instead: &str| {
        let (before, rest) = line.split_once(begin)?;
        let after = rest.find(end).map_or("", |end| &rest[end..]);
        Some(format!("{before}{begin}{instead}{after}"))
    };
    let changed = match line {
        _ if line.contains("/login?key=") => until("key=", "\n", "[KEY]"),
        _ if line.starts_with("would write ") => until(" (", " bytes)", "[SIZE]"),
        _ if line.starts_with(" ok ") => until(" database ", "\n", "[SIZE]"),
        _ if line.contains(" so far.") => until(": ", " so far.", "[TIME]"),
        _ if line.contains("trace") || line.contains("Trace") => Some(without_ids(line)),
        _ if line.contains(" processors, ") && line.contains("[VERSION]") => Some("[MACHINE]\n".to_owned()),
        _ => None,
    };
    changed.unwrap_or_else(|| line.to_owned())
}

/// Replaces every id of 32 hexadecimal digits.
fn without_ids(line: &str) -> String {
    let is_id = |word: &str| word.len() == 32 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| match word.split_at(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len()) {
            (id, end) if is_id(id) => format!("[ID]{end}"),
            _ => word.to_owned(),
        })
        .collect()
}

/// Output of a program.
pub struct Screen {
    line: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Screen {
    /// Returns the command line, the output and the exit code. Lines of standard error start with `! `.
    pub fn text(&self) -> String {
        let code = self.code.map_or("a signal".to_owned(), |code| code.to_string());
        let errors: String = self.err.lines().map(|line| format!("! {line}\n")).collect();
        format!("$ {}\n{}\n{errors}=> {code}\n", self.line, self.out.trim_end())
    }

    /// Returns the output of a measurement without numbers, column widths that depend on them, and table rows.
    pub fn text_without_numbers(&self) -> String {
        let text = self.text();
        let lines = text.lines().filter_map(without_numbers);
        lines.map(|line| line + "\n").collect()
    }
}

/// Replaces the numbers in a line. Returns `None` for a table row: a line that starts with a space and contains
/// numbers.
fn without_numbers(line: &str) -> Option<String> {
    const UNITS: [&str; 10] = ["ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB"];
    if line.starts_with(['$', '=']) {
        return Some(line.to_owned());
    }
    let mut words: Vec<&str> = vec![];
    for word in line.split_whitespace() {
        let bare = word.trim_start_matches(['(', '[']);
        let is_unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ')', ':']));
        match bare.starts_with(|c: char| c.is_ascii_digit()) {
            // The protocol of this machine's folder.
            false if words.last() == Some(&"nas") && word.starts_with('(') => words.push("[PROTOCOL]"),
            true => words.push("#"),
            false if is_unit && words.last() == Some(&"#") => {}
            false => words.push(word),
        }
    }
    let is_row = line.starts_with(' ') && words.contains(&"#");
    (!is_row).then(|| words.join(" "))
}

/// Snapshots of one group of screens. After a mismatch the other screens are still compared.
pub struct Snapshots {
    group: &'static str,
    names: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Snapshots {
    pub fn new(group: &'static str) -> Self {
        Self { group, names: BTreeSet::new(), wrong: vec![] }
    }

    /// Compares a screen with its snapshot.
    pub fn check(&mut self, name: &str, screen: &str) {
        let name = format!("{}--{name}", self.group);
        assert!(self.names.insert(format!("{name}.snap")), "snapshot {name} is used twice");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(folder());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name.clone(), screen));
        if catch_unwind(AssertUnwindSafe(compare)).is_err() {
            self.wrong.push(name);
        }
    }

    /// Panics if a screen differs from its snapshot, or if a snapshot has no screen.
    pub fn finish(self) {
        let prefix = format!("{}--", self.group);
        let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
        let files = files.filter_map(|name| name.into_string().ok());
        let stale: Vec<String> = files
            .filter(|name| name.starts_with(&prefix) && name.ends_with(".snap") && !self.names.contains(name))
            .collect();
        assert!(
            self.wrong.is_empty() && stale.is_empty(),
            "screens that differ from their snapshots: {:?} (INSTA_UPDATE=always accepts them); snapshots without a \
             screen, to be removed: {stale:?}",
            self.wrong
        );
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/snapshots/screens")
}
