//! `longhaul logs`: what the background service says.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use jiff::tz::TimeZone;
use longhaul_measure::platform;
use longhaul_service::LOG_FILE;

use crate::render::log;
use crate::{Usage, exit};

/// How often a log that is followed is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Arguments of `logs`.
#[derive(Args)]
pub struct Logs {
    /// Go on showing lines as they come, until Ctrl-C.
    #[arg(long, short)]
    pub follow: bool,
    /// How many of the last lines are shown.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub lines: usize,
    /// Print the lines as they are stored, one JSON object each.
    #[arg(long)]
    pub json: bool,
}

/// Prints the end of the log, and what comes if that is wanted.
pub fn run(arguments: &Logs) -> anyhow::Result<ExitCode> {
    let folder = platform::log_directory()
        .ok_or_else(|| Usage("HOME is not set, so it is not known where the log is".to_owned()))?;
    let path = folder.join(LOG_FILE);
    let mut printer = Printer { json: arguments.json, zone: TimeZone::system() };
    let mut tail = Tail::new(path.clone());
    let mut last = VecDeque::new();
    let found = tail.read(&mut |line| {
        last.push_back(line);
        if last.len() > arguments.lines {
            last.pop_front();
        }
        Ok(())
    });
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound && !arguments.follow => return Ok(no_log(&path)),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())?
        }
        _ => {}
    }
    let printed = last.iter().try_for_each(|line| printer.print(line));
    let followed =
        printed.and_then(|()| if arguments.follow { follow(&mut tail, &mut printer) } else { Ok(()) });
    match followed {
        // whoever read has seen enough
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(exit::OK),
        other => other.with_context(|| path.display().to_string()).map(|()| exit::OK),
    }
}

fn no_log(path: &Path) -> ExitCode {
    anstream::eprintln!(
        "longhaul: there is no log at {}: the service has not run yet. `longhaul install` installs and starts it",
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
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\n');
        let mut out = anstream::stdout().lock();
        if self.json { writeln!(out, "{text}") } else { writeln!(out, "{}", log::line(text, &self.zone)) }
    }
}

fn follow(tail: &mut Tail, printer: &mut Printer) -> io::Result<()> {
    loop {
        match tail.read(&mut |line| printer.print(&line)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            // between two files there may be none
            _ => std::thread::sleep(BETWEEN_LOOKS),
        }
    }
}

/// The end of a file that grows, is cut off, or is moved away for a new one of its name.
struct Tail {
    path: PathBuf,
    open: Option<BufReader<File>>,
    /// What was read of a line that has not ended.
    partial: Vec<u8>,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self { path, open: None, partial: vec![] }
    }

    /// Takes in all that has come since the last time: the rest of the file that is open, and if another has its name
    /// now, that one too.
    fn read(&mut self, take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        self.read_open(take)?;
        if !self.is_current()? {
            // what came between the last look and the move
            self.read_open(take)?;
            self.end_line(take)?;
            self.open = Some(BufReader::new(File::open(&self.path)?));
            self.read_open(take)?;
        }
        Ok(())
    }

    fn read_open(&mut self, take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let Some(file) = &mut self.open else { return Ok(()) };
        let length = file.get_ref().metadata()?.len();
        if file.stream_position()? > length {
            file.seek(SeekFrom::Start(0))?;
            self.partial.clear();
        }
        while file.read_until(b'\n', &mut self.partial)? > 0 {
            if self.partial.ends_with(b"\n") {
                take(std::mem::take(&mut self.partial))?;
            }
        }
        Ok(())
    }

    fn end_line(&mut self, take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        if self.partial.is_empty() { Ok(()) } else { take(std::mem::take(&mut self.partial)) }
    }

    /// Whether the file that is open is the one that has the name now.
    fn is_current(&self) -> io::Result<bool> {
        let Some(file) = &self.open else { return Ok(false) };
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

        /// The lines that have come, joined by blanks.
        fn come(&mut self) -> String {
            let mut lines = vec![];
            let read = self.tail.read(&mut |line| {
                lines.push(String::from_utf8(line).unwrap().trim_end().to_owned());
                Ok(())
            });
            assert!(read.is_ok() || read.is_err_and(|error| error.kind() == ErrorKind::NotFound));
            lines.join(" ")
        }
    }

    #[test]
    fn lines_come_once_and_only_whole() {
        let mut log = Log::new();
        assert_eq!(log.come(), "");
        log.append("a\nb\nc");
        assert_eq!(log.come(), "a b");
        log.append("d\n");
        assert_eq!(log.come(), "cd");
        assert_eq!(log.come(), "");
    }

    #[test]
    fn a_rotation_loses_no_line() {
        let mut log = Log::new();
        log.append("a\n");
        assert_eq!(log.come(), "a");
        log.append("b\n");
        fs::rename(&log.path, log.path.with_extension("1")).unwrap();
        assert_eq!(log.come(), "b", "the end of the old file, while there is no new one");
        log.append("c\n");
        assert_eq!(log.come(), "c");
        fs::rename(&log.path, log.path.with_extension("1")).unwrap();
        log.append("d\ne");
        assert_eq!(log.come(), "d");
    }

    #[test]
    fn a_log_that_is_cut_off_is_read_from_its_begin() {
        let mut log = Log::new();
        log.append("a\nb\n");
        assert_eq!(log.come(), "a b");
        File::options().write(true).open(&log.path).unwrap().set_len(0).unwrap();
        log.append("c\n");
        assert_eq!(log.come(), "c");
    }
}
