//! The log: JSON lines in a file of bounded size, and text for whoever started longhauld in a terminal.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_service::config::LEVELS;
use longhaul_service::{LOG_FILE, OLDER_LOG_FILES};
use longhaul_telemetry::diagnostics::Diagnostics;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::arguments::Arguments;
use crate::diagnosing::Diagnosing;

/// The log of this process.
pub struct Log {
    level: String,
    path: Option<PathBuf>,
    filter: reload::Handle<LevelFilter, Registry>,
    diagnostics: Diagnostics,
}

impl Log {
    /// Starts it. Where no log can be written, it says so and goes on without.
    pub fn start(config: &longhaul_service::config::Log, arguments: &Arguments) -> anyhow::Result<Self> {
        let level = level_of(config, arguments);
        let (filter, handle) = reload::Layer::new(parse(&level).context("the log level")?);
        let folder = arguments.log_directory.clone().or_else(platform::log_directory);
        let file = folder.and_then(|folder| match Rotating::open(&folder, config.bytes) {
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
        let diagnosing = Diagnosing::new(diagnostics.clone());
        let registry = tracing_subscriber::registry().with(filter).with(json);
        registry.with(terminal.map(Layer::boxed)).with(diagnosing).init();
        Ok(Self { level, path, filter: handle, diagnostics })
    }

    /// Takes up the level of a configuration that was read after the start. The size of its file stays.
    pub fn adopt(
        &mut self,
        config: &longhaul_service::config::Log,
        arguments: &Arguments,
    ) -> anyhow::Result<()> {
        self.level = level_of(config, arguments);
        self.filter.reload(parse(&self.level).context("the log level")?).context("change the log level")
    }

    /// The level it was started with.
    pub fn level(&self) -> &str {
        &self.level
    }

    /// The file that it is written to; `None`: to none.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The lines of this log for the exporter.
    pub fn diagnostics(&self) -> Diagnostics {
        self.diagnostics.clone()
    }

    /// Changes the level from any thread.
    pub fn setter(&self) -> longhaul_web::SetLevel {
        let filter = self.filter.clone();
        Arc::new(move |level| {
            let level = parse(level).map_err(|error| error.to_string())?;
            filter.reload(level).map_err(|error| error.to_string())
        })
    }
}

fn level_of(config: &longhaul_service::config::Log, arguments: &Arguments) -> String {
    arguments.log_level.clone().unwrap_or_else(|| config.level.clone())
}

fn parse(level: &str) -> anyhow::Result<LevelFilter> {
    let known = LEVELS.contains(&level).then(|| level.parse().ok()).flatten();
    known.with_context(|| format!("`{level}` is none of {}", LEVELS.join(", ")))
}

/// A file that is moved aside when it is full; the oldest part goes. launchd rotates nothing, and tracing's own appender
/// rotates by time only.
#[derive(Clone)]
pub struct Rotating {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    path: PathBuf,
    file: File,
    written: u64,
    part_bytes: u64,
}

impl Rotating {
    /// Opens the log in a folder. It and its older parts share the room that is given, in bytes.
    fn open(folder: &Path, bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(LOG_FILE);
        let file = File::options().create(true).append(true).open(&path)?;
        let written = file.metadata()?.len();
        let inner = Inner { path, file, written, part_bytes: (bytes / (OLDER_LOG_FILES + 1)).max(1) };
        Ok(Self { inner: Arc::new(Mutex::new(inner)) })
    }
}

impl Inner {
    fn older(&self, number: u64) -> PathBuf {
        self.path.with_extension(format!("log.{number}"))
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..OLDER_LOG_FILES).rev() {
            let _ = std::fs::rename(self.older(number), self.older(number + 1));
        }
        std::fs::rename(&self.path, self.older(1))?;
        self.file = File::options().create(true).append(true).open(&self.path)?;
        self.written = 0;
        Ok(())
    }
}

impl Write for Rotating {
    /// One call is one line: `fmt` formats a line before it writes it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.written > 0 && inner.written + line.len() as u64 > inner.part_bytes {
            inner.rotate()?;
        }
        inner.file.write_all(line)?;
        inner.written += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Rotating {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_never_takes_more_than_its_room_and_loses_its_oldest_part() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Rotating::open(folder.path(), 400).unwrap();
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
    fn a_log_is_gone_on_with_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        Rotating::open(folder.path(), 4000).unwrap().write_all(b"one\n").unwrap();
        Rotating::open(folder.path(), 4000).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join(LOG_FILE)).unwrap(), "one\ntwo\n");
    }
}
