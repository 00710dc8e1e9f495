//! Importers: the lines of a trace become events.
//!
//! Each importer takes one line at a time and keeps only what it needs to understand the next ones: open descriptors, current
//! folders, calls that have begun. docs/recordings/sources.md says what each kind of trace lacks.

use std::io::{self, BufRead, Read as _};

mod detection;
mod eslogger;
mod fs_usage;
mod nas_log;
mod numbers;
mod order;
mod paths;
mod samba;
mod strace;
mod whole_files;

pub use detection::{detect, importer};
pub use eslogger::EsloggerImporter;
pub use fs_usage::FsUsageImporter;
pub use nas_log::NasLogImporter;
pub use order::EventOrder;
pub use samba::SambaAuditImporter;
pub use strace::StraceImporter;

use crate::{Note, TraceSink};

/// Longest line that is read. Longer ones are damaged.
const MAX_LINE: u64 = 1 << 17;

/// Reads one kind of trace, line by line.
pub trait Importer {
    /// Takes a line without its end.
    fn line(&mut self, line: &[u8], sink: &mut dyn TraceSink);

    /// Takes note that the trace ends here.
    fn end(&mut self, _: &mut dyn TraceSink) {}
}

/// Reads a whole trace.
///
/// # Errors
///
/// If `trace` cannot be read. What is damaged in it is counted and is no error.
pub fn import(
    importer: &mut dyn Importer,
    trace: &mut dyn BufRead,
    sink: &mut dyn TraceSink,
) -> io::Result<()> {
    let mut line = vec![];
    loop {
        line.clear();
        let length = (&mut *trace).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if length == 0 {
            importer.end(sink);
            return Ok(());
        }
        sink.note(Note::Line);
        if length as u64 == MAX_LINE && line.last() != Some(&b'\n') {
            skip_line(trace)?;
            sink.note(Note::Damaged);
            continue;
        }
        importer.line(line.trim_ascii_end(), sink);
    }
}

/// Skips the rest of a line that is too long.
fn skip_line(trace: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = trace.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (skipped, is_end) = (end.map_or(buffer.len(), |end| end + 1), end.is_some() || buffer.is_empty());
        trace.consume(skipped);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
