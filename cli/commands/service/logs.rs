//! `longhaul service logs`: prints the log of the background service.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use longhaul_measure::platform;
use longhaul_service::LOG_FILE;

use crate::arguments::LogsArgs;
use crate::errors::UsageError;
use crate::exit;
use crate::output::printable;
use crate::render::log;

/// Interval at which a followed log is read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Prints the end of the log and, with `--follow`, every new line.
pub fn run(arguments: &LogsArgs) -> anyhow::Result<ExitCode> {
    let folder = platform::log_directory()
        .ok_or_else(|| UsageError("HOME is not set, so the folder of the log is unknown".to_owned()))?;
    let path = folder.join(LOG_FILE);
    let mut printer = Printer { json: arguments.json, zone: TimeZone::system() };
    let mut tail = Tail::new(path.clone());
    let mut last = VecDeque::new();
    let found = tail.read_new_lines(&mut |line| {
        last.push_back(line);
        if last.len() > arguments.lines {
            last.pop_front();
        }
        Ok(())
    });
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound && !arguments.follow => {
            return Ok(report_missing_log(&path));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())?
        }
        _ => {}
    }
    let printed = last.iter().try_for_each(|line| printer.print(line));
    let followed =
        printed.and_then(|()| if arguments.follow { follow(&mut tail, &mut printer) } else { Ok(()) });
    match followed {
        // The reader of a pipe has closed it: this is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(exit::OK),
        other => other.with_context(|| path.display().to_string()).map(|()| exit::OK),
    }
}

fn report_missing_log(path: &Path) -> ExitCode {
    crate::output::eprintln!(
        "longhaul: there is no log at {}: the service has not run yet. `longhaul service install` installs and starts it",
        path.display()
    );
    ExitCode::from(exit::NO_DATA)
}

struct Printer {
    json: bool,
    zone: TimeZone,
}

impl Printer {
    fn print(&mut self, line: &[u8]) -> io::Result<()> {
        writeln!(anstream::stdout().lock(), "{}", self.shown(line))
    }

    fn shown(&self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\n');
        if self.json { printable(text) } else { log::line(text, &self.zone) }
    }
}

fn follow(tail: &mut Tail, printer: &mut Printer) -> io::Result<()> {
    loop {
        match tail.read_new_lines(&mut |line| printer.print(&line)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            // During a rotation the file may be missing for a moment.
            _ => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// The end of a file that grows, may be truncated, and may be replaced by a new file of the same name.
struct Tail {
    path: PathBuf,
    reader: Option<BufReader<File>>,
    /// The start of a line whose end has not been written yet.
    partial_line: Vec<u8>,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self { path, reader: None, partial_line: vec![] }
    }

    /// Passes all lines written since the last call to `take`: the rest of the open file and, if the file was
    /// replaced, the new file.
    fn read_new_lines(&mut self, take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        self.read_current_file(take)?;
        if !self.is_current()? {
            // Read again, because lines may have been written between the read above and the rotation.
            self.read_current_file(take)?;
            self.finish_line(take)?;
            self.reader = Some(BufReader::new(File::open(&self.path)?));
            self.read_current_file(take)?;
        }
        Ok(())
    }

    fn read_current_file(&mut self, take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let Some(file) = &mut self.reader else { return Ok(()) };
        let length = file.get_ref().metadata()?.len();
        if file.stream_position()? > length {
            file.seek(SeekFrom::Start(0))?;
            self.partial_line.clear();
        }
        while file.read_until(b'\n', &mut self.partial_line)? > 0 {
            if self.partial_line.ends_with(b"\n") {
                take(std::mem::take(&mut self.partial_line))?;
            }
        }
        Ok(())
    }

    fn finish_line(&mut self, take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        if self.partial_line.is_empty() { Ok(()) } else { take(std::mem::take(&mut self.partial_line)) }
    }

    /// Returns whether the open file is still the one with the path.
    fn is_current(&self) -> io::Result<bool> {
        let Some(file) = &self.reader else { return Ok(false) };
        let identity = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
        Ok(identity(file.get_ref().metadata()?) == identity(std::fs::metadata(&self.path)?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Log {
        _folder: tempfile::TempDir,
        path: PathBuf,
        tail: Tail,
    }

    impl Log {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            Self { _folder: folder, tail: Tail::new(path.clone()), path }
        }

        fn append(&self, text: &str) {
            let mut file = File::options().append(true).create(true).open(&self.path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        /// Returns the new lines, joined by spaces.
        fn new_lines(&mut self) -> String {
            let mut lines = vec![];
            let read = self.tail.read_new_lines(&mut |line| {
                lines.push(String::from_utf8(line).unwrap().trim_end().to_owned());
                Ok(())
            });
            assert!(read.is_ok() || read.is_err_and(|error| error.kind() == ErrorKind::NotFound));
            lines.join(" ")
        }
    }

    #[test]
    fn line_of_a_crash_does_not_control_the_terminal() {
        for json in [true, false] {
            let printer = Printer { json, zone: TimeZone::UTC };
            assert_eq!(printer.shown(b"{\"a\":1}x\n"), "{\"a\":1}x");
            assert!(!printer.shown(b"panicked at \x1b[2J\n").contains('\u{1b}'), "{json}");
        }
    }

    #[test]
    fn complete_lines_are_read_once() {
        let mut log = Log::new();
        assert_eq!(log.new_lines(), "");
        log.append("a\nb\nc");
        assert_eq!(log.new_lines(), "a b");
        log.append("d\n");
        assert_eq!(log.new_lines(), "cd");
        assert_eq!(log.new_lines(), "");
    }

    #[test]
    fn rotation_loses_no_line() {
        let mut log = Log::new();
        log.append("a\n");
        assert_eq!(log.new_lines(), "a");
        log.append("b\n");
        fs::rename(&log.path, log.path.with_extension("1")).unwrap();
        assert_eq!(log.new_lines(), "b", "the end of the old file is read while there is no new one");
        log.append("c\n");
        assert_eq!(log.new_lines(), "c");
        fs::rename(&log.path, log.path.with_extension("1")).unwrap();
        log.append("d\ne");
        assert_eq!(log.new_lines(), "d");
    }

    #[test]
    fn truncated_log_is_read_from_its_start() {
        let mut log = Log::new();
        log.append("a\nb\n");
        assert_eq!(log.new_lines(), "a b");
        File::options().write(true).open(&log.path).unwrap().set_len(0).unwrap();
        log.append("c\n");
        assert_eq!(log.new_lines(), "c");
    }
}
