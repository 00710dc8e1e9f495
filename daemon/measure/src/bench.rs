//! Our side of the comparison with find, rsync and fio: the workloads' own code, without arena, session and round.
//!
//! Everything here goes through [`Context`], timed and recorded as in a run, so that what is compared with a peer is
//! what measures a share. `tests/bench/peers.sh` runs both sides in turn on the same data.

use std::ffi::{CStr, CString, OsStr};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;

use crate::context::{Buffer, Context, Folder, OpenFile, StopSwitch, clock_pair_ns, instrument_ns};
use crate::corpus::Content;
use crate::corpus::churn::Source;
use crate::corpus::draw::draw_below;
use crate::corpus::tree::{Chunk, Tree};
use crate::error::RunError;
use crate::platform::{Access, Attributes};
use crate::recorder::Recorder;
use crate::stats::median;
use crate::workloads::folder_index::build::{WIDTH, make_chunk};
use crate::workloads::folder_index::walk::{self, Depth, Scope};
use crate::workloads::incremental_backup::{copy_tree, source};
use crate::workloads::photo_batch::{Album, MEAN_BYTES, make_photos};

/// Bytes of one random read.
pub const RANDOM_BYTES: u64 = 4096;
/// Random reads between two looks at the clock.
const READS_PER_LOOK: u64 = 256;
/// Largest file of a plain tree.
const SMALL_BYTES: u64 = 64;
/// How often the cost of the instrument is measured; the median is told.
const COST_TURNS: usize = 25;
/// The seed of what is made or drawn here.
const SEED: u64 = 0x6265_6e63;

/// What was done, and in which time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// How long it took.
    pub seconds: f64,
    /// Entries, files or calls.
    pub count: u64,
    /// Bytes read or written; for a walk the sizes of the files that it met.
    pub bytes: u64,
}

impl Measured {
    /// Entries, files or calls per second.
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.seconds
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

/// What the door adds to one operation, in nanoseconds: medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ContextCost {
    /// All of it: looking at the stop switch, two clock reads, recording.
    pub operation_ns: f64,
    /// Two bare clock reads, which no timer does without.
    pub clock_pair_ns: f64,
}

/// A recorder that nobody reads and a switch that nobody turns, for as long as a benchmark lasts.
pub struct Bench {
    recorder: Recorder,
    stop: StopSwitch,
}

impl Bench {
    /// A recorder and a switch of its own.
    pub fn new() -> io::Result<Self> {
        Ok(Self { recorder: Recorder::private()?, stop: StopSwitch::default() })
    }

    /// Walks a tree and prints each entry below its root as `find -mindepth 1 -printf '%s %T@ %p\n'` does.
    pub fn walk(&self, path: &Path, out: &mut impl Write) -> Result<Measured, RunError> {
        let context = self.context();
        let root = context.open_folder_path(path)?;
        let mut found = Measured { seconds: 0.0, count: 0, bytes: 0 };
        let mut printed = Ok(());
        walk::walk(&context, &root, Scope::all(Depth::Attributes), |folder, name, attributes| {
            found.count += 1;
            found.bytes += attributes.size;
            if printed.is_ok() {
                printed = print_entry(out, folder, name, attributes);
            }
        })?;
        printed.and_then(|()| out.flush()).map_err(RunError::local("print", path))?;
        Ok(Measured { seconds: context.elapsed(), ..found })
    }

    /// Makes a folder equal to another, as the incremental backup does: scan, copy with sync, delete.
    pub fn copy(&self, from: &Path, to: &Path) -> Result<Measured, RunError> {
        let context = self.context();
        let root = make_root(&context, to)?;
        let copied = copy_tree(&context, from, &root)?;
        Ok(measured(&context, copied.files, copied.bytes))
    }

    /// Reads pieces of [`RANDOM_BYTES`] at drawn places of a file for this long.
    pub fn random_read(&self, path: &Path, seconds: f64) -> Result<Measured, RunError> {
        let (file, size) = self.open(path)?;
        let pieces = (size / RANDOM_BYTES).max(1);
        let mut buffer = Buffer::new(RANDOM_BYTES as usize);
        let context = self.context();
        let mut count = 0;
        while context.elapsed() < seconds {
            for turn in count..count + READS_PER_LOOK {
                let piece = draw_below(SEED, 1, turn, pieces);
                context.read_at(&file, &mut buffer, piece * RANDOM_BYTES)?;
            }
            count += READS_PER_LOOK;
        }
        Ok(measured(&context, count, count * RANDOM_BYTES))
    }

    /// Writes a new file of this many whole blocks from its begin to its end, and syncs it.
    pub fn sequential_write(&self, path: &Path, block: usize, blocks: u64) -> Result<Measured, RunError> {
        let (folder, name) = locate(&self.context(), path)?;
        let mut buffer = Buffer::new(block);
        Content::new(SEED, 2).fill(0, &mut buffer);
        let context = self.context();
        let file = context.create(&folder, &name)?;
        (0..blocks).try_for_each(|turn| context.write_all(&file, &buffer, turn * block as u64))?;
        context.sync(&file)?;
        context.close(file)?;
        Ok(measured(&context, blocks, blocks * block as u64))
    }

    /// Reads a file from its begin to its end, after asking for it to be dropped from the cache as fio does.
    pub fn sequential_read(&self, path: &Path, block: usize) -> Result<Measured, RunError> {
        let (file, size) = self.open(path)?;
        let mut buffer = Buffer::new(block);
        self.context().evict(&file, size);
        let context = self.context();
        let mut offset = 0;
        while let length @ 1.. = context.read_full(&file, &mut buffer, offset)? {
            offset += length as u64;
        }
        Ok(measured(&context, offset.div_ceil(block as u64), offset))
    }

    /// Makes the beginning of a folder-index slice: at least this many bytes.
    pub fn corpus_tree(&self, path: &Path, bytes: u64) -> Result<Measured, RunError> {
        let tree = Tree { seed: SEED, files: files_holding(bytes) };
        let context = self.context();
        let root = make_root(&context, path)?;
        let pieces: Vec<Chunk> = tree.chunks(0).collect();
        context.spread(WIDTH, &pieces, |context, chunk| make_chunk(context, &root, &tree, chunk))?;
        Ok(measured(&context, tree.files, (0..tree.files).map(|number| tree.size(number)).sum()))
    }

    /// Makes a photo-batch album of about this many bytes.
    pub fn corpus_photos(&self, path: &Path, bytes: u64) -> Result<Measured, RunError> {
        let album = Album::new((bytes / MEAN_BYTES).max(1), 0);
        let context = self.context();
        let root = make_root(&context, path)?;
        make_photos(&context, &root, &album, 0..album.photos())?;
        Ok(measured(&context, album.photos() as u64, album.bytes()))
    }

    /// Makes a tree with the names of a folder-index tree and files of 0 to 64 bytes, to be walked.
    pub fn tree(&self, path: &Path, files: u64) -> Result<Measured, RunError> {
        let tree = Tree { seed: SEED, files };
        let context = self.context();
        let root = make_root(&context, path)?;
        let pieces: Vec<Chunk> = tree.chunks(0).collect();
        context.spread(WIDTH, &pieces, |context, chunk| make_small_files(context, &root, (&tree, chunk)))?;
        Ok(measured(&context, files, (0..files).map(small_size).sum()))
    }

    /// Makes the source tree of a backup; another seed gives the same names with other sizes and bytes.
    pub fn source(&self, path: &Path, files: u64, seed: u64) -> Result<Measured, RunError> {
        let context = self.context();
        let source = Source { seed, files };
        source::bring_to(&source, 0, path)?;
        Ok(measured(&context, files, source.at(0).iter().map(|file| file.size).sum()))
    }

    /// A door whose clock starts now.
    fn context(&self) -> Context<'_> {
        Context::new(&self.recorder, 0, &self.stop)
    }

    /// Opens a file to be read, and says how large it is.
    fn open(&self, path: &Path) -> Result<(OpenFile, u64), RunError> {
        let context = self.context();
        let (folder, name) = locate(&context, path)?;
        let size = context.getattr(&folder, &name)?.size;
        Ok((context.open(&folder, &name, Access::Read)?, size))
    }
}

/// Measures what [`Context`] adds to one operation.
pub fn context_cost() -> io::Result<ContextCost> {
    let operations: Vec<f64> = (0..COST_TURNS).map(|_| instrument_ns()).collect::<io::Result<_>>()?;
    let pairs: Vec<f64> = (0..COST_TURNS).map(|_| clock_pair_ns()).collect();
    let middle = |numbers: &[f64]| median(numbers).unwrap_or(f64::NAN);
    Ok(ContextCost { operation_ns: middle(&operations), clock_pair_ns: middle(&pairs) })
}

fn measured(context: &Context<'_>, count: u64, bytes: u64) -> Measured {
    Measured { seconds: context.elapsed(), count, bytes }
}

/// Size, modification time with the ten decimals that find gives it, and path.
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

/// Opens a folder outside an arena, and makes it if it is not there.
fn make_root(context: &Context<'_>, path: &Path) -> Result<Folder, RunError> {
    std::fs::create_dir_all(path).map_err(RunError::local("mkdir", path))?;
    context.open_folder_path(path)
}

/// The folder of a path, opened, and the name in it.
fn locate(context: &Context<'_>, path: &Path) -> Result<(Folder, CString), RunError> {
    let name = path.file_name().unwrap_or(OsStr::new("."));
    let name =
        CString::new(name.as_bytes()).map_err(io::Error::from).map_err(RunError::local("open", path))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((context.open_folder_path(folder)?, name))
}

/// How many files of a tree it takes to hold this many bytes.
fn files_holding(bytes: u64) -> u64 {
    let tree = Tree { seed: SEED, files: u64::MAX };
    let mut held = 0;
    (0..tree.files)
        .find(|number| {
            held += tree.size(*number);
            held >= bytes
        })
        .map_or(tree.files, |last| last + 1)
}

fn small_size(number: u64) -> u64 {
    number % (SMALL_BYTES + 1)
}

fn make_small_files(
    context: &Context<'_>,
    root: &Folder,
    (tree, chunk): (&Tree, &Chunk),
) -> Result<(), RunError> {
    let made = walk::make(context, root, &chunk.folder)?;
    let folder = made.as_ref().unwrap_or(root);
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
    fn a_walk_prints_what_find_prints() {
        let bench = Bench::new().unwrap();
        let home = tempfile::tempdir().unwrap();
        let made = bench.tree(home.path(), 1500).unwrap();
        let mut listing = vec![];
        let found = bench.walk(home.path(), &mut listing).unwrap();
        assert!(found.count > made.count, "folders too");
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
    fn a_copy_equals_its_source_and_a_second_one_copies_nothing() {
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
    fn what_was_written_is_read_in_whole() {
        let bench = Bench::new().unwrap();
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        assert_eq!(bench.sequential_write(&path, 8192, 5).unwrap().bytes, 40_960);
        let read = bench.sequential_read(&path, 16_384).unwrap();
        assert_eq!((read.count, read.bytes), (3, 40_960));
        assert!(bench.random_read(&path, 0.001).unwrap().count >= READS_PER_LOOK);
    }

    #[test]
    fn a_corpus_holds_the_bytes_it_was_asked_for() {
        let bench = Bench::new().unwrap();
        let home = tempfile::tempdir().unwrap();
        assert!(bench.corpus_tree(&home.path().join("tree"), 100_000).unwrap().bytes >= 100_000);
        assert_eq!(bench.corpus_photos(&home.path().join("photos"), 1).unwrap().count, 1);
    }
}
