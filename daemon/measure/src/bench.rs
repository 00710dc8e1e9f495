//! longhaul's side of the comparison with find, rsync and fio: the code of the workloads, without sandbox, session
//! and round.
//!
//! All operations go through [`TimedFs`] and are timed and recorded as in a run, so that the compared code is the
//! code that measures a share. `tests/bench/peers.sh` runs both sides in turn on the same data.

use std::ffi::{CStr, CString, OsStr};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;

use crate::error::RunError;
use crate::platform::{Access, Attributes};
use crate::recorder::Recorder;
use crate::timed_fs::{Buffer, Folder, OpenFile, StopSwitch, TimedFs, clock_pair_ns, timed_fs_overhead_ns};
use crate::workloads::folder_index::build::{BUILD_THREADS, make_chunk};
use crate::workloads::folder_index::tree_walk::{self, EntryDetail, WalkOptions};
use crate::workloads::incremental_backup::{copy_tree, source};
use crate::workloads::photo_batch::{Album, MEAN_PHOTO_BYTES, make_photos};
use longhaul_corpus::Content;
use longhaul_corpus::churn::SourceTree;
use longhaul_corpus::tree::{Chunk, Tree};
use longhaul_model::draw::draw_below;
use longhaul_model::{FreeSpaceReserve, median};

/// Size of one random read in bytes.
pub const RANDOM_BYTES: u64 = 4096;
/// Number of random reads between two clock readings.
const READS_PER_CLOCK_CHECK: u64 = 256;
/// Size of the largest file of a tree of small files, in bytes.
const SMALL_BYTES: u64 = 64;
/// Number of measurements of the timing overhead, of which the median is used.
const OVERHEAD_REPETITIONS: usize = 25;
/// Seed of all data and random numbers of the benchmarks.
const SEED: u64 = 0x6265_6e63;

/// Result of a benchmark: amount of work and duration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BenchResult {
    /// Duration in seconds.
    pub seconds: f64,
    /// Number of entries, files or calls.
    pub count: u64,
    /// Number of bytes read or written; for a walk, the total size of the files found.
    pub bytes: u64,
}

impl BenchResult {
    /// Returns the number of entries, files or calls per second.
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.seconds
    }

    /// Returns the number of bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

/// Time that [`TimedFs`] adds to one operation. All values are medians in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimedFsOverhead {
    /// Total overhead of an operation: check of the stop switch, two clock reads, recording.
    pub operation_ns: f64,
    /// Overhead of two clock reads alone, which every timing method needs.
    pub clock_pair_ns: f64,
}

/// Context of the benchmarks: a private recorder, and a stop switch that is never used.
pub struct Bench {
    recorder: Recorder,
    stop: StopSwitch,
}

impl Bench {
    /// Creates a context for benchmarks.
    pub fn new() -> io::Result<Self> {
        Ok(Self { recorder: Recorder::private()?, stop: StopSwitch::default() })
    }

    /// Walks a tree and prints each entry below the root, in the format of
    /// `find -mindepth 1 -printf '%s %T@ %p\n'`.
    pub fn walk(&self, path: &Path, out: &mut impl Write) -> Result<BenchResult, RunError> {
        let context = self.timed_fs();
        let root = context.open_folder_path(path)?;
        let mut found = BenchResult { seconds: 0.0, count: 0, bytes: 0 };
        let mut printed = Ok(());
        tree_walk::walk(
            &context,
            &root,
            WalkOptions::whole_tree(EntryDetail::Attributes),
            |folder, name, attributes| {
                found.count += 1;
                found.bytes += attributes.size;
                if printed.is_ok() {
                    printed = print_entry(out, folder, name, attributes);
                }
            },
        )?;
        printed.and_then(|()| out.flush()).map_err(RunError::local("print", path))?;
        Ok(BenchResult { seconds: context.elapsed(), ..found })
    }

    /// Makes a folder equal to another folder in the way of the incremental backup: scan, copy with sync, delete.
    pub fn copy(&self, from: &Path, to: &Path) -> Result<BenchResult, RunError> {
        let context = self.timed_fs();
        let root = make_root(&context, to)?;
        let copied = copy_tree(&context, from, &root)?;
        Ok(bench_result(&context, copied.files, copied.bytes))
    }

    /// Reads blocks of [`RANDOM_BYTES`] at random offsets of a file for `seconds` seconds.
    pub fn random_read(&self, path: &Path, seconds: f64) -> Result<BenchResult, RunError> {
        let (file, size) = self.open(path)?;
        let blocks = (size / RANDOM_BYTES).max(1);
        let mut buffer = Buffer::new(RANDOM_BYTES as usize);
        let context = self.timed_fs();
        let mut count = 0;
        while context.elapsed() < seconds {
            for number in count..count + READS_PER_CLOCK_CHECK {
                let block = draw_below(SEED, 1, number, blocks);
                context.read_at(&file, &mut buffer, block * RANDOM_BYTES)?;
            }
            count += READS_PER_CLOCK_CHECK;
        }
        Ok(bench_result(&context, count, count * RANDOM_BYTES))
    }

    /// Writes a new file of `blocks` blocks of `block` bytes sequentially, and syncs it.
    pub fn sequential_write(&self, path: &Path, block: usize, blocks: u64) -> Result<BenchResult, RunError> {
        let (folder, name) = locate(&self.timed_fs(), path)?;
        let mut buffer = Buffer::new(block);
        Content::new(SEED, 2).fill(0, &mut buffer);
        let context = self.timed_fs();
        let file = context.create(&folder, &name)?;
        (0..blocks).try_for_each(|number| context.write_all(&file, &buffer, number * block as u64))?;
        context.sync(&file)?;
        context.close(file)?;
        Ok(bench_result(&context, blocks, blocks * block as u64))
    }

    /// Reads a file sequentially in blocks of `block` bytes, after evicting it from the cache as fio does.
    pub fn sequential_read(&self, path: &Path, block: usize) -> Result<BenchResult, RunError> {
        let (file, size) = self.open(path)?;
        let mut buffer = Buffer::new(block);
        self.timed_fs().evict(&file, size);
        let context = self.timed_fs();
        let mut offset = 0;
        while let length @ 1.. = context.read_full(&file, &mut buffer, offset)? {
            offset += length as u64;
        }
        Ok(bench_result(&context, offset.div_ceil(block as u64), offset))
    }

    /// Creates the first files of a folder-index slice, with a total size of at least `bytes` bytes.
    pub fn corpus_tree(&self, path: &Path, bytes: u64) -> Result<BenchResult, RunError> {
        let tree = Tree { seed: SEED, files: files_holding(bytes) };
        let context = self.timed_fs();
        let root = make_root(&context, path)?;
        let chunks: Vec<Chunk> = tree.chunks(0).collect();
        context.run_parallel(BUILD_THREADS, &chunks, |context, chunk| {
            make_chunk(context, &root, &tree, chunk)
        })?;
        Ok(bench_result(&context, tree.files, (0..tree.files).map(|number| tree.size(number)).sum()))
    }

    /// Creates a photo-batch album of about `bytes` bytes.
    pub fn corpus_photos(&self, path: &Path, bytes: u64) -> Result<BenchResult, RunError> {
        let album = Album::new((bytes / MEAN_PHOTO_BYTES).max(1), 0);
        let context = self.timed_fs();
        let root = make_root(&context, path)?;
        make_photos(&context, &root, &album, 0..album.photos())?;
        Ok(bench_result(&context, album.photos() as u64, album.bytes()))
    }

    /// Creates a tree for walks: names of a folder-index tree, and files of 0 to 64 bytes.
    pub fn tree(&self, path: &Path, files: u64) -> Result<BenchResult, RunError> {
        let tree = Tree { seed: SEED, files };
        let context = self.timed_fs();
        let root = make_root(&context, path)?;
        let chunks: Vec<Chunk> = tree.chunks(0).collect();
        context.run_parallel(BUILD_THREADS, &chunks, |context, chunk| {
            make_small_files(context, &root, &tree, chunk)
        })?;
        Ok(bench_result(&context, files, (0..files).map(small_size).sum()))
    }

    /// Creates the source tree of a backup. A different seed gives the same names with different sizes and
    /// contents.
    pub fn source(&self, path: &Path, files: u64, seed: u64) -> Result<BenchResult, RunError> {
        let context = self.timed_fs();
        let source = SourceTree { seed, files };
        source::apply_generation(&source, 0, path, FreeSpaceReserve::default())?;
        Ok(bench_result(&context, files, source.files_at(0).iter().map(|file| file.size).sum()))
    }

    /// Returns file operations whose clock starts now.
    fn timed_fs(&self) -> TimedFs<'_> {
        TimedFs::new(&self.recorder, 0, &self.stop)
    }

    /// Opens a file for reading, and returns it with its size in bytes.
    fn open(&self, path: &Path) -> Result<(OpenFile, u64), RunError> {
        let context = self.timed_fs();
        let (folder, name) = locate(&context, path)?;
        let size = context.getattr(&folder, &name)?.size;
        Ok((context.open(&folder, &name, Access::Read)?, size))
    }
}

/// Measures the time that [`TimedFs`] adds to one operation.
pub fn timed_fs_overhead() -> io::Result<TimedFsOverhead> {
    let operations: Vec<f64> =
        (0..OVERHEAD_REPETITIONS).map(|_| timed_fs_overhead_ns()).collect::<io::Result<_>>()?;
    let pairs: Vec<f64> = (0..OVERHEAD_REPETITIONS).map(|_| clock_pair_ns()).collect();
    let median_ns = |numbers: &[f64]| median(numbers).unwrap_or(f64::NAN);
    Ok(TimedFsOverhead { operation_ns: median_ns(&operations), clock_pair_ns: median_ns(&pairs) })
}

fn bench_result(context: &TimedFs<'_>, count: u64, bytes: u64) -> BenchResult {
    BenchResult { seconds: context.elapsed(), count, bytes }
}

/// Prints size, modification time (with ten decimals, as find prints it) and path of an entry.
fn print_entry(
    out: &mut impl Write,
    folder: &Folder,
    name: &CStr,
    attributes: &Attributes,
) -> io::Result<()> {
    let seconds = attributes.modified_ns.div_euclid(1_000_000_000);
    let nanoseconds = attributes.modified_ns.rem_euclid(1_000_000_000);
    write!(out, "{} {seconds}.{nanoseconds:09}0 ", attributes.size)?;
    let folder = folder.path().as_os_str().as_bytes();
    [folder, b"/", name.to_bytes(), b"\n"].into_iter().try_for_each(|part| out.write_all(part))
}

/// Opens a folder outside a sandbox, and creates it if it does not exist.
fn make_root(context: &TimedFs<'_>, path: &Path) -> Result<Folder, RunError> {
    std::fs::create_dir_all(path).map_err(RunError::local("mkdir", path))?;
    context.open_folder_path(path)
}

/// Opens the parent folder of a path, and returns it with the last component of the path.
fn locate(context: &TimedFs<'_>, path: &Path) -> Result<(Folder, CString), RunError> {
    let name = path.file_name().unwrap_or(OsStr::new("."));
    let name =
        CString::new(name.as_bytes()).map_err(io::Error::from).map_err(RunError::local("open", path))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((context.open_folder_path(folder)?, name))
}

/// Returns the number of files of a tree whose total size is at least `bytes` bytes.
fn files_holding(bytes: u64) -> u64 {
    let tree = Tree { seed: SEED, files: u64::MAX };
    let mut total = 0;
    (0..tree.files)
        .find(|number| {
            total += tree.size(*number);
            total >= bytes
        })
        .map_or(tree.files, |last| last + 1)
}

fn small_size(number: u64) -> u64 {
    number % (SMALL_BYTES + 1)
}

fn make_small_files(
    context: &TimedFs<'_>,
    root: &Folder,
    tree: &Tree,
    chunk: &Chunk,
) -> Result<(), RunError> {
    let created = tree_walk::make_path(context, root, &chunk.folder)?;
    let folder = created.as_ref().unwrap_or(root);
    (chunk.first..chunk.end).try_for_each(|number| {
        let file = context.create(folder, &tree.name(number))?;
        context.write_all(&file, &[b'-'; SMALL_BYTES as usize][..small_size(number) as usize], 0)?;
        context.close(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_prints_entries_in_the_format_of_find() {
        let bench = Bench::new().unwrap();
        let home = tempfile::tempdir().unwrap();
        let made = bench.tree(home.path(), 1500).unwrap();
        let mut listing = vec![];
        let found = bench.walk(home.path(), &mut listing).unwrap();
        assert!(found.count > made.count, "folders are counted as well");
        let text = String::from_utf8(listing).unwrap();
        let name = Tree { seed: SEED, files: 1500 }.name(64);
        let path = home.path().join("Inbox").join(name.to_str().unwrap());
        let facts = std::fs::metadata(&path).unwrap();
        let time = facts.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let line = format!("64 {}.{:09}0 {}", time.as_secs(), time.subsec_nanos(), path.display());
        assert!(text.lines().any(|found| found == line), "{line}");
        assert_eq!(text.lines().count() as u64, found.count);
    }

    #[test]
    fn second_copy_of_an_unchanged_source_copies_nothing() {
        let bench = Bench::new().unwrap();
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        let made = bench.source(&from, 60, 1).unwrap();
        let copied = bench.copy(&from, &to).unwrap();
        assert_eq!((copied.count, copied.bytes), (made.count, made.bytes));
        assert_eq!(bench.copy(&from, &to).unwrap().count, 0);
        bench.source(&from, 60, 2).unwrap();
        assert_eq!(bench.copy(&from, &to).unwrap().count, 60, "another seed changes every file");
    }

    #[test]
    fn written_file_is_read_completely() {
        let bench = Bench::new().unwrap();
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        assert_eq!(bench.sequential_write(&path, 8192, 5).unwrap().bytes, 40_960);
        let read = bench.sequential_read(&path, 16_384).unwrap();
        assert_eq!((read.count, read.bytes), (3, 40_960));
        assert!(bench.random_read(&path, 0.001).unwrap().count >= READS_PER_CLOCK_CHECK);
    }

    #[test]
    fn corpus_has_at_least_the_requested_bytes() {
        let bench = Bench::new().unwrap();
        let home = tempfile::tempdir().unwrap();
        assert!(bench.corpus_tree(&home.path().join("tree"), 100_000).unwrap().bytes >= 100_000);
        assert_eq!(bench.corpus_photos(&home.path().join("photos"), 1).unwrap().count, 1);
    }
}
