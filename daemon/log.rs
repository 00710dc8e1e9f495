//! The log: JSON lines in a file of limited size, and text if longhauld was started in a terminal.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use longhaul_measure::{platform, private_files};
use longhaul_service::config::{ConfigLoader, LOG_LEVELS};
use longhaul_service::{LOG_FILE, ROTATED_LOG_FILES};
use longhaul_telemetry::diagnostics::Diagnostics;
use parking_lot::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::arguments::Arguments;

/// The log of this process.
pub struct Log {
    level: String,
    path: Option<PathBuf>,
    filter: reload::Handle<LevelFilter, Registry>,
    diagnostics: Diagnostics,
}

impl Log {
    /// Starts the log. If the log file cannot be written, reports that on standard error and continues without it.
    pub fn start(config: &longhaul_service::config::Log, arguments: &Arguments) -> anyhow::Result<Self> {
        let level = effective_level(config, arguments);
        let (filter, handle) = reload::Layer::new(parse_level(&level).context("the log level")?);
        let folder = arguments.log_directory.clone().or_else(platform::log_directory);
        let file = folder.and_then(|folder| match RotatingFile::open(&folder, config.max_bytes) {
            Ok(file) => Some((folder.join(LOG_FILE), file)),
            Err(error) => {
                eprintln!("longhauld: no log is written to {}: {error}", folder.display());
                None
            }
        });
        let (path, file) = file.unzip();
        let json = file.map(|file| fmt::layer().json().with_span_list(false).with_writer(file));
        let terminal = io::stderr().is_terminal().then(|| fmt::layer().with_writer(io::stderr));
        let diagnostics = Diagnostics::default();
        let registry = tracing_subscriber::registry().with(filter).with(json);
        // Last: a filtered layer below an unfiltered one would hide the level of the log from `tracing`, which then
        // would build every disabled event.
        registry.with(terminal.map(Layer::boxed)).with(diagnostics.layer()).init();
        Ok(Self { level, path, filter: handle, diagnostics })
    }

    /// Applies the log level of a configuration that was read later. The size limit of the file does not change.
    pub fn apply_config(
        &mut self,
        config: &longhaul_service::config::Log,
        arguments: &Arguments,
    ) -> anyhow::Result<()> {
        self.level = effective_level(config, arguments);
        self.filter.reload(parse_level(&self.level).context("the log level")?).context("change the log level")
    }

    /// Returns the configured log level.
    pub fn level(&self) -> &str {
        &self.level
    }

    /// Returns the path of the log file; `None` if no file is written.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the diagnostics of this log, for the exporter.
    pub fn diagnostics(&self) -> Diagnostics {
        self.diagnostics.clone()
    }

    /// Returns a function that changes the log level from any thread.
    pub fn level_setter(&self) -> longhaul_web::SetLogLevel {
        let filter = self.filter.clone();
        Arc::new(move |level| {
            let managed = ConfigLoader::system().managed_settings().map_err(|error| error.to_string())?;
            managed.check_option("another log level", "log.level").map_err(|error| error.to_string())?;
            let level = parse_level(level).map_err(|error| error.to_string())?;
            filter.reload(level).map_err(|error| error.to_string())
        })
    }
}

fn effective_level(config: &longhaul_service::config::Log, arguments: &Arguments) -> String {
    arguments.log_level.clone().unwrap_or_else(|| config.level.clone())
}

fn parse_level(level: &str) -> anyhow::Result<LevelFilter> {
    let known = LOG_LEVELS.contains(&level).then(|| level.parse().ok()).flatten();
    known.with_context(|| format!("`{level}` is not one of {}", LOG_LEVELS.join(", ")))
}

/// A log file that is rotated when it is full; the oldest rotated file is deleted. launchd does not rotate files,
/// and tracing's own appender rotates by time only.
#[derive(Clone)]
pub struct RotatingFile {
    state: Arc<Mutex<RotationState>>,
}

struct RotationState {
    path: PathBuf,
    file: File,
    written_bytes: u64,
    max_file_bytes: u64,
}

impl RotatingFile {
    /// Opens the log file in a folder. `bytes` limits the size of this file and all rotated ones together.
    fn open(folder: &Path, bytes: u64) -> io::Result<Self> {
        private_files::create_folder(folder)?;
        let path = folder.join(LOG_FILE);
        let file = private_files::options().create(true).append(true).open(&path)?;
        let written = file.metadata()?.len();
        let inner = RotationState {
            path,
            file,
            written_bytes: written,
            max_file_bytes: (bytes / (ROTATED_LOG_FILES + 1)).max(1),
        };
        Ok(Self { state: Arc::new(Mutex::new(inner)) })
    }
}

impl RotationState {
    fn rotated_path(&self, number: u64) -> PathBuf {
        self.path.with_extension(format!("log.{number}"))
    }

    /// Continues with an empty file. It is opened first: if that is not possible, no file has moved, and the log goes on in the full
    /// one.
    fn rotate(&mut self) -> io::Result<()> {
        let new_path = self.path.with_extension("log.new");
        let file = private_files::options().create(true).append(true).open(&new_path)?;
        for number in (1..ROTATED_LOG_FILES).rev() {
            let _ = std::fs::rename(self.rotated_path(number), self.rotated_path(number + 1));
        }
        match std::fs::rename(&self.path, self.rotated_path(1)) {
            // A user has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        std::fs::rename(&new_path, &self.path)?;
        self.file = file;
        self.written_bytes = 0;
        Ok(())
    }
}

impl Write for RotatingFile {
    /// Writes one line. Each call has a whole line, because `fmt` formats a line before it writes it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut inner = self.state.lock();
        if inner.written_bytes > 0 && inner.written_bytes + line.len() as u64 > inner.max_file_bytes {
            // The lines since then show why.
            if inner.rotate().is_err() {
                inner.written_bytes = 0;
            }
        }
        inner.file.write_all(line)?;
        inner.written_bytes += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RotatingFile {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_size_is_limited_and_the_oldest_file_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingFile::open(folder.path(), 400).unwrap();
        for number in 0..100 {
            log.write_all(format!("line {number:04}\n").as_bytes()).unwrap();
        }
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
        assert_eq!(files.len(), 4);
        assert!((300..=400).contains(&bytes), "{bytes}");
        let newest = std::fs::read_to_string(folder.path().join(LOG_FILE)).unwrap();
        assert!(newest.ends_with("line 0099\n"));
    }

    #[test]
    fn no_line_is_lost_if_no_new_file_can_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingFile::open(folder.path(), 400).unwrap();
        let mut write = |numbers: std::ops::Range<u32>| {
            numbers.for_each(|number| log.write_all(format!("line {number:04}\n").as_bytes()).unwrap());
        };
        write(0..20);
        let before = std::fs::read(folder.path().join("longhaul.log.1")).unwrap();
        std::fs::create_dir(folder.path().join("longhaul.log.new")).unwrap();
        write(20..60);
        assert_eq!(std::fs::read(folder.path().join("longhaul.log.1")).unwrap(), before);
        let newest = std::fs::read_to_string(folder.path().join(LOG_FILE)).unwrap();
        assert!(newest.contains("line 0020\n") && newest.ends_with("line 0059\n"), "{newest}");
    }

    #[test]
    fn log_is_continued_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        RotatingFile::open(folder.path(), 4000).unwrap().write_all(b"one\n").unwrap();
        RotatingFile::open(folder.path(), 4000).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join(LOG_FILE)).unwrap(), "one\ntwo\n");
    }
}
