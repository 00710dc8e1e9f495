//! Reads a file twice, past this machine's cache, and describes what is wrong with it.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::known_content::KnownContent;
use super::pattern::{Compared, WrongRange, wrong_ranges};
use crate::error::{FoundBytes, RunError};
use crate::platform::{Access, wall_clock};
use crate::sandbox::Sandbox;
use crate::timed_fs::{Buffer, Folder, OpenFile, TimedFs};
use longhaul_model::draw::draw;
use longhaul_model::{DamagePattern, Mismatch, MismatchReread};

/// Number of bytes in one read call.
const READ_BYTES: usize = 1 << 20;
/// Maximum number of bytes of a file that are read at once. Of a larger file, only the part around the damage is
/// examined.
const MAX_WINDOW_BYTES: u64 = 64 << 20;

/// A file in a sandbox, with what was written to it.
pub struct FileToRead<'a> {
    /// The sandbox.
    pub sandbox: &'a Sandbox,
    /// Path of the file in the sandbox.
    pub path: &'a Path,
    /// Content that was written.
    pub content: &'a dyn KnownContent,
}

/// Bytes of a file that were read, with the wrong ranges among them.
pub struct ReadFinding {
    /// Offset of the first byte.
    pub offset: u64,
    /// Bytes that were read.
    pub bytes: Vec<u8>,
    /// Wrong ranges.
    pub ranges: Vec<WrongRange>,
}

/// Describes the damage of a file: that in the bytes which were read first, or else that of the file now. Returns nothing
/// if the file is whole and was not read before.
///
/// # Errors
///
/// If the file cannot be read, and no bytes of it were read before.
pub fn examine_file(
    context: &TimedFs<'_>,
    file: &FileToRead<'_>,
    first: Option<&FoundBytes>,
) -> Result<Vec<Mismatch>, RunError> {
    let start = first.map_or(0, |found| found.offset) / MAX_WINDOW_BYTES * MAX_WINDOW_BYTES;
    let now = || read_and_compare(context, file, start);
    let first = first.map(|found| finding_of(file.content, found));
    // A short read has no wrong bytes: only the file itself tells that it ends too early.
    let first = match first.filter(|finding| !finding.ranges.is_empty()) {
        Some(found) => found,
        None => match now() {
            Ok(found) => found,
            Err(error) if error.is_missing() => return Ok(vec![missing(file)]),
            Err(error) => return Err(error),
        },
    };
    let again = if first.ranges.is_empty() { None } else { now().ok() };
    let describe = |range: &WrongRange| describe(file, &first, range, again.as_ref());
    Ok(first.ranges.iter().map(describe).collect())
}

/// Returns the finding in bytes that a workload read.
fn finding_of(content: &dyn KnownContent, found: &FoundBytes) -> ReadFinding {
    let FoundBytes { offset, bytes, pattern } = found;
    let ranges = match pattern {
        Some(pattern) => {
            vec![WrongRange { offset: *offset, length: bytes.len() as u64, pattern: pattern.clone() }]
        }
        None => {
            let left = content.length().saturating_sub(*offset);
            let found = &bytes[..bytes.len().min(left as usize)];
            let mut expected = vec![0; found.len()];
            content.expected(*offset, found, &mut expected);
            wrong_ranges(Compared { offset: *offset, expected: &expected, found }, content)
        }
    };
    ReadFinding { offset: *offset, bytes: bytes.clone(), ranges }
}

/// Reads up to 64 MiB of a file from an offset on, past this machine's cache, and compares them.
///
/// # Errors
///
/// If the file cannot be read.
pub fn read_and_compare(
    context: &TimedFs<'_>,
    file: &FileToRead<'_>,
    offset: u64,
) -> Result<ReadFinding, RunError> {
    let opened = open(context, file)?;
    context.evict(&opened, file.content.length());
    let bytes = read_window(context, &opened, offset)?;
    context.close(opened)?;
    let expected = expected_window(file.content, offset, &bytes);
    let ranges = wrong_ranges(Compared { offset, expected: &expected, found: &bytes }, file.content);
    Ok(ReadFinding { offset, bytes, ranges })
}

fn open(context: &TimedFs<'_>, file: &FileToRead<'_>) -> Result<OpenFile, RunError> {
    let mut folder: Folder = file.sandbox.folder()?;
    let mut names: Vec<CString> = file.path.components().filter_map(name).collect();
    let last = names.pop().unwrap_or_default();
    for name in &names {
        folder = context.open_folder(&folder, name)?;
    }
    context.open(&folder, &last, Access::Read)
}

fn name(component: Component<'_>) -> Option<CString> {
    let Component::Normal(name) = component else { return None };
    CString::new(OsStr::as_bytes(name)).ok()
}

fn read_window(context: &TimedFs<'_>, file: &OpenFile, offset: u64) -> Result<Vec<u8>, RunError> {
    let (mut bytes, mut buffer) = (vec![], Buffer::new(READ_BYTES));
    while (bytes.len() as u64) < MAX_WINDOW_BYTES {
        let length = context.read_full(file, &mut buffer, offset + bytes.len() as u64)?;
        bytes.extend_from_slice(&buffer[..length]);
        if length < READ_BYTES {
            break;
        }
    }
    Ok(bytes)
}

/// Returns what was written from an offset on, up to the end of the file or of the window.
fn expected_window(content: &dyn KnownContent, offset: u64, found: &[u8]) -> Vec<u8> {
    let length = content.length().saturating_sub(offset).min(MAX_WINDOW_BYTES) as usize;
    let mut expected = vec![0; length];
    let mut nearest = found.to_vec();
    nearest.resize(length, 0);
    content.expected(offset, &nearest, &mut expected);
    expected
}

fn describe(
    file: &FileToRead<'_>,
    first: &ReadFinding,
    range: &WrongRange,
    again: Option<&ReadFinding>,
) -> Mismatch {
    let found = bytes_of(first, range);
    let mut expected = vec![0; evidence(found).len()];
    file.content.expected(range.offset, evidence(found), &mut expected);
    Mismatch {
        offset: range.offset,
        length: range.length,
        pattern: range.pattern.clone(),
        reread: again.map_or(MismatchReread::Failed, |again| compare_again(found, range, again)),
        fingerprint: fingerprint(found),
        expected,
        found: evidence(found).to_vec(),
        ..missing(file)
    }
}

/// Returns a mismatch for the whole file, without any bytes.
fn missing(file: &FileToRead<'_>) -> Mismatch {
    Mismatch {
        file: file.path.display().to_string(),
        offset: 0,
        length: file.content.length(),
        pattern: DamagePattern::Missing,
        found_us: wall_clock(),
        written_us: file.content.written(),
        last_good_us: None,
        phase: None,
        cache: None,
        reread: MismatchReread::SameDamage,
        fingerprint: 0,
        expected: vec![],
        found: vec![],
    }
}

fn compare_again(found: &[u8], range: &WrongRange, again: &ReadFinding) -> MismatchReread {
    let overlaps = |other: &WrongRange| {
        other.offset < range.offset + range.length && range.offset < other.offset + other.length
    };
    match again.ranges.iter().any(overlaps) {
        false => MismatchReread::Correct,
        true if bytes_of(again, range) == found => MismatchReread::SameDamage,
        true => MismatchReread::OtherDamage,
    }
}

/// Returns the bytes of a range that were read; fewer if the file ends within it.
fn bytes_of<'a>(finding: &'a ReadFinding, range: &WrongRange) -> &'a [u8] {
    let start = (range.offset.saturating_sub(finding.offset) as usize).min(finding.bytes.len());
    let end = (start + range.length as usize).min(finding.bytes.len());
    &finding.bytes[start..end]
}

fn evidence(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(Mismatch::MAX_EVIDENCE_BYTES)]
}

/// Returns a digest of bytes, by which the same damage is recognized again.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let word = |part: &[u8]| part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    bytes.chunks(8).fold(bytes.len() as u64, |digest, part| draw(digest, part.len() as u64, word(part)))
}
