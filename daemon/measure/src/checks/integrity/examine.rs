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
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use longhaul_model::draw::draw;
use longhaul_model::{Mismatch, MismatchReread};
use serde::{Deserialize, Serialize};

/// Number of bytes in one read call.
const READ_BYTES: usize = 1 << 20;
/// Maximum number of bytes of a file that are read at once. Of a larger file, only the part around the damage is
/// examined.
const MAX_WINDOW_BYTES: u64 = 64 << 20;

/// A range of a file in the sandbox of another target that leads to the same folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherSandboxRange {
    /// Name of the sandbox.
    pub sandbox: String,
    /// Path of the file in the sandbox.
    pub file: String,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes. Of a longer range, the first 64 MiB are read.
    pub length: u64,
}

/// Reads a range of a file in another target's sandbox, past this machine's cache. Returns the [`fingerprint`] of its
/// bytes; `None` if the file is missing. Looks for it under each Unicode form of its path: protocols show letters beyond
/// ASCII composed or decomposed.
///
/// # Errors
///
/// If the file cannot be read.
pub fn read_elsewhere(
    context: &TimedFs<'_>,
    target: &Path,
    range: &OtherSandboxRange,
) -> Result<Option<u64>, RunError> {
    for file in unicode_forms(&range.file) {
        let path = Path::new(&range.sandbox).join(file);
        match read_range(context, target, &path, range) {
            Err(error) if RunError::is_not_found(&error) => {}
            other => return other.map(Some),
        }
    }
    Ok(None)
}

/// Returns a path as it is, and where it differs, with its letters composed and decomposed.
fn unicode_forms(path: &str) -> Vec<String> {
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(path).into_owned();
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(path).into_owned();
    let mut forms = vec![path.to_owned()];
    forms.extend([composed, decomposed].into_iter().filter(|form| form != path));
    forms
}

/// Returns the fingerprint of a range of the file at `path` below `target`.
fn read_range(
    context: &TimedFs<'_>,
    target: &Path,
    path: &Path,
    range: &OtherSandboxRange,
) -> Result<u64, RunError> {
    let file = open_below(context, context.open_folder_path(target)?, path)?;
    let length = range.length.min(MAX_WINDOW_BYTES);
    context.evict(&file, range.offset + length);
    let mut buffer = Buffer::new(length as usize);
    let length = context.read_full(&file, &mut buffer, range.offset)?;
    context.close(file)?;
    Ok(fingerprint(&buffer[..length]))
}

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
    let first = first.map(|found| finding_of(file.content, found));
    // A short read has no wrong bytes: only the file itself tells that it ends too early.
    let first = match first.filter(|finding| !finding.ranges.is_empty()) {
        Some(found) => found,
        None => match read_and_compare(context, file, start) {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Ok(vec![missing(file)]),
            Err(error) => return Err(error),
        },
    };
    // From the first byte of the finding on, so that each of its ranges is read again.
    let again = || read_and_compare(context, file, first.offset).ok();
    let again = if first.ranges.is_empty() { None } else { again() };
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
    let opened = open_below(context, file.sandbox.folder()?, file.path)?;
    context.evict(&opened, file.content.length());
    let bytes = read_window(context, &opened, offset)?;
    context.close(opened)?;
    let expected = expected_range(file.content, offset, MAX_WINDOW_BYTES, &bytes);
    let ranges = wrong_ranges(Compared { offset, expected: &expected, found: &bytes }, file.content);
    Ok(ReadFinding { offset, bytes, ranges })
}

/// Opens a file below a folder, without following links.
fn open_below(context: &TimedFs<'_>, mut folder: Folder, path: &Path) -> Result<OpenFile, RunError> {
    let mut names: Vec<CString> = path.components().filter_map(name).collect();
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

/// Returns what was written to a range; fewer bytes if the file ends within it. `found` has the bytes that were read.
fn expected_range(content: &dyn KnownContent, offset: u64, length: u64, found: &[u8]) -> Vec<u8> {
    let length = content.length().saturating_sub(offset).min(length) as usize;
    let mut nearest = found.to_vec();
    nearest.resize(length, 0);
    let mut expected = vec![0; length];
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
    let mut expected = expected_range(file.content, range.offset, range.length, found);
    let expected_fingerprint = Some(fingerprint(&expected));
    expected.truncate(evidence(found).len());
    Mismatch {
        offset: range.offset,
        length: range.length,
        pattern: range.pattern.clone(),
        reread: again.map_or(MismatchReread::Failed, |again| compare_again(found, range, again)),
        fingerprint: fingerprint(found),
        expected_fingerprint,
        expected,
        found: evidence(found).to_vec(),
        ..whole_file(file)
    }
}

fn missing(file: &FileToRead<'_>) -> Mismatch {
    let expected = expected_range(file.content, 0, MAX_WINDOW_BYTES, &[]);
    Mismatch { expected_fingerprint: Some(fingerprint(&expected)), ..whole_file(file) }
}

/// Returns a mismatch for the whole file, without any bytes.
fn whole_file(file: &FileToRead<'_>) -> Mismatch {
    Mismatch {
        written_us: file.content.written(),
        ..Mismatch::new(file.path.display().to_string(), file.content.length(), wall_clock())
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::testing::Site;
    use longhaul_model::{DamagePattern, Timestamp};

    /// A file that consists of this many zeros.
    struct Zeros(u64);

    impl KnownContent for Zeros {
        fn length(&self) -> u64 {
            self.0
        }

        fn expected(&self, _: u64, _: &[u8], out: &mut [u8]) {
            out.fill(0);
        }

        fn origin(&self, _: u64, _: &[u8]) -> Option<DamagePattern> {
            None
        }

        fn written(&self) -> Option<Timestamp> {
            None
        }
    }

    #[test]
    fn damage_at_the_end_of_a_window_is_read_again() {
        let site = Site::new();
        let (sandbox, context) = (site.sandbox(), site.context(0));
        let damaged = std::fs::File::create(sandbox.path().join("file")).unwrap();
        damaged.write_all_at(&[1; 4], MAX_WINDOW_BYTES).unwrap();
        let content = Zeros(MAX_WINDOW_BYTES + 4);
        let file = FileToRead { sandbox: &sandbox, path: Path::new("file"), content: &content };
        let bytes = [[0; 4], [1; 4]].concat();
        let found = FoundBytes { offset: MAX_WINDOW_BYTES - 4, bytes, pattern: None };
        let mismatches = examine_file(&context, &file, Some(&found)).unwrap();
        let found: Vec<_> = mismatches.iter().map(|mismatch| (mismatch.offset, mismatch.reread)).collect();
        assert_eq!(found, [(MAX_WINDOW_BYTES, MismatchReread::SameDamage)]);
    }

    #[test]
    fn file_is_found_under_each_unicode_form_of_its_path() {
        let site = Site::new();
        let context = site.context(0);
        let (composed, decomposed) = ("gr\u{fc}n/\u{e9}.jpg", "gru\u{308}n/e\u{301}.jpg");
        for (there, asked) in [(composed, decomposed), (decomposed, composed), (composed, composed)] {
            let file = site.path().join(there);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, there).unwrap();
            let range =
                OtherSandboxRange { sandbox: ".".to_owned(), file: asked.to_owned(), offset: 0, length: 99 };
            let found = read_elsewhere(&context, site.path(), &range).ok().unwrap();
            assert_eq!(found, Some(fingerprint(there.as_bytes())), "{there} asked for as {asked}");
            std::fs::remove_file(&file).unwrap();
            assert_eq!(read_elsewhere(&context, site.path(), &range).ok().unwrap(), None);
        }
    }
}
