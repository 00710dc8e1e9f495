//! Blogbench: 3 writers, 1 rewriter, 5 commenters and 100 readers of blogs, for 30 intervals of 10 seconds.
//!
//! Counts, sizes and orders are those of blogbench's source (1.1), including its bugs: no thread ever pauses,
//! because the names of the think times in the source do not match. Content is incompressible by default. Only
//! one read in sixteen is verified: readers take gigabytes per second from the cache, and verifying all of it
//! would dominate the result.

use std::ffi::CStr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::blogbench_scores::{Counts, figures, table};
use super::preset_run::PresetRun;
use crate::content_mode::ContentMode;
use crate::profile::Program;
use longhaul_corpus::names::to_cstring;
use longhaul_corpus::sectors::Sectors;
use longhaul_measure::error::RunError;
use longhaul_measure::platform::Access;
use longhaul_measure::timed_fs::{Buffer, Folder, TimedFs};
use longhaul_measure::workloads::unlink_leftover;
use longhaul_model::draw::{draw, draw_stream};
use longhaul_model::{DataAge, Figure, VerifiedData};

/// The number of intervals in a run; each gives one line of the table.
const TABLE_INTERVALS: u32 = 30;
/// The size of one write call, in bytes.
const WRITE_BYTES: usize = 8 << 10;
/// The size of one read call, in bytes.
const READ_BYTES: usize = 64 << 10;
/// One read out of this many is verified.
const VERIFY_EVERY: u64 = 16;

/// The number of threads of each role. All but the timekeeper are the 109 threads of the original.
const THREADS: [(ThreadRole, u64); 5] = [
    (ThreadRole::Timekeeper, 1),
    (ThreadRole::Writer, 3),
    (ThreadRole::Rewriter, 1),
    (ThreadRole::Commenter, 5),
    (ThreadRole::Reader, 100),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadRole {
    Timekeeper,
    Writer,
    Rewriter,
    Commenter,
    Reader,
}

/// A kind of file: its name pattern, its minimum size and the range of random bytes on top, in bytes.
struct FileKind {
    index: usize,
    prefix: &'static str,
    suffix: &'static str,
    min_bytes: u64,
    extra_bytes: u64,
}

const ARTICLE: FileKind =
    FileKind { index: 0, prefix: "article-", suffix: ".xml", min_bytes: 1024, extra_bytes: 31_744 };
const PICTURE: FileKind =
    FileKind { index: 1, prefix: "picture-", suffix: ".jpg", min_bytes: 8192, extra_bytes: 57_344 };
const COMMENT: FileKind =
    FileKind { index: 2, prefix: "comment-", suffix: ".xml", min_bytes: 2048, extra_bytes: 8192 };
const KINDS: [&FileKind; 3] = [&ARTICLE, &PICTURE, &COMMENT];

/// The highest number of an article, a picture or a comment in a blog.
const MAX_FILES_PER_KIND: u64 = 100;

/// Returns whether this path, below the folder of presets, belongs to a blog file, such as
/// `blogbench-standard/blogs/blog-7/article-3.xml`.
pub fn owns(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let [folder, "blogs", blog, file] = parts[..] else { return false };
    let number = |text: &str| text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    let file = file.rsplit_once(".tmp").filter(|(_, thread)| number(thread)).map_or(file, |(file, _)| file);
    let is_kind = |kind: &FileKind| {
        file.strip_prefix(kind.prefix).and_then(|rest| rest.strip_suffix(kind.suffix)).is_some_and(number)
    };
    folder.starts_with("blogbench-")
        && blog.strip_prefix("blog-").is_some_and(number)
        && KINDS.into_iter().any(is_kind)
}

fn root_folder(run: &PresetRun<'_>) -> Result<Folder, RunError> {
    run.job.untimed().create_and_open_folder(&run.open_folder()?, c"blogs")
}

/// Removes all blogs that a run left. Does nothing for other presets.
pub fn remove(run: &PresetRun<'_>) -> Result<(), RunError> {
    if !run.profile.phases.iter().any(|phase| phase.program == Some(Program::Blogbench)) {
        return Ok(());
    }
    let (context, home) = (run.job.untimed(), root_folder(run)?);
    // Only names that blogbench creates are removed, so a foreign file makes the folder's removal fail.
    let names = |folder: &Folder, prefix: &str| {
        let is_ours = |name: &CStr| {
            let is_blog = prefix.is_empty() && name.to_bytes().starts_with(b"blog-");
            is_blog || name.to_str().is_ok_and(|name| owns(&format!("blogbench-x/blogs/{prefix}{name}")))
        };
        let names = context.names(folder)?.into_iter().filter(|name| is_ours(name));
        Ok::<Vec<_>, RunError>(names.collect())
    };
    for blog in names(&home, "")? {
        let folder = context.open_folder(&home, &blog)?;
        let files = names(&folder, "blog-0/")?;
        files.iter().try_for_each(|name| unlink_leftover(&context, &folder, name))?;
        context.remove_folder(&home, &blog)?;
    }
    Ok(())
}

/// The state of one run that all threads share.
struct BlogbenchRun<'a> {
    root_folder: &'a Folder,
    content_mode: ContentMode,
    seed: u64,
    interval_seconds: f64,
    counts: Counts,
    is_finished: AtomicBool,
    interval_counts: parking_lot::Mutex<Vec<[u64; 7]>>,
}

/// Runs all threads for `seconds` seconds and returns the figures of the phase, including both scores.
///
/// Also stores the table of intervals as a fact of the run.
pub fn run(
    run: &PresetRun<'_>,
    context: &TimedFs<'_>,
    seed: u64,
    seconds: f64,
) -> Result<Vec<Figure>, RunError> {
    let home = root_folder(run)?;
    let bench = BlogbenchRun {
        root_folder: &home,
        content_mode: run.content_mode,
        seed,
        interval_seconds: seconds / f64::from(TABLE_INTERVALS),
        counts: Counts::default(),
        is_finished: AtomicBool::new(false),
        interval_counts: parking_lot::Mutex::default(),
    };
    let threads: Vec<(ThreadRole, u64)> =
        THREADS.iter().flat_map(|(role, count)| (0..*count).map(move |_| *role)).zip(0..).collect();
    context.run_parallel(threads.len(), &threads, |context, (role, thread)| {
        let result = BlogThread::new(&bench, context, *thread).run(*role);
        result.inspect_err(|_| bench.is_finished.store(true, Relaxed))
    })?;
    let lines = bench.interval_counts.lock().clone();
    run.job.session.add_fact("table", table(&lines));
    Ok(figures(&bench.counts, &lines, context.elapsed()))
}

/// One thread of the run.
struct BlogThread<'a> {
    bench: &'a BlogbenchRun<'a>,
    context: &'a TimedFs<'a>,
    thread: u64,
    draws: Box<dyn Iterator<Item = u64>>,
    buffer: Buffer,
    reads: u64,
}

impl<'a> BlogThread<'a> {
    fn new(bench: &'a BlogbenchRun<'a>, context: &'a TimedFs<'a>, thread: u64) -> Self {
        let draws = Box::new(draw_stream(bench.seed, thread));
        Self { bench, context, thread, draws, buffer: Buffer::new(READ_BYTES), reads: 0 }
    }

    fn run(&mut self, role: ThreadRole) -> Result<(), RunError> {
        if role == ThreadRole::Timekeeper {
            return self.record_intervals();
        }
        while !self.bench.is_finished.load(Relaxed) {
            match role {
                ThreadRole::Timekeeper => return Ok(()),
                ThreadRole::Writer => self.write_blog()?,
                ThreadRole::Rewriter => self.rewrite()?,
                ThreadRole::Commenter => self.comment()?,
                ThreadRole::Reader => self.visit()?,
            }
        }
        Ok(())
    }

    /// Adds a line to the table after each interval, and stops all threads after the last one.
    fn record_intervals(&mut self) -> Result<(), RunError> {
        let mut before = [0; 7];
        for interval in 1..=TABLE_INTERVALS {
            let result = self.context.wait_until(f64::from(interval) * self.bench.interval_seconds);
            if result.is_err() || self.bench.is_finished.load(Relaxed) {
                return result;
            }
            let now = self.bench.counts.snapshot();
            let mut line: [u64; 7] = std::array::from_fn(|column| now[column] - before[column]);
            line[0] = now[0];
            before = now;
            self.bench.interval_counts.lock().push(line);
        }
        self.bench.is_finished.store(true, Relaxed);
        Ok(())
    }

    fn draw_below(&mut self, bound: u64) -> u64 {
        self.draws.next().unwrap_or_default() % bound
    }

    /// Returns a random blog that was started.
    ///
    /// Like the original, never returns blog 0: waits up to a second and returns `None` instead.
    fn random_blog(&mut self) -> Result<Option<u64>, RunError> {
        let started = self.bench.counts.blogs_started.load(Relaxed);
        let blog = if started == 0 { 0 } else { self.draw_below(started) };
        if blog > 0 {
            return Ok(Some(blog));
        }
        let wait = (self.bench.interval_seconds / 10.0).min(1.0);
        self.context.wait_until(self.context.elapsed() + wait)?;
        Ok(None)
    }

    fn write_blog(&mut self) -> Result<(), RunError> {
        let blog = self.bench.counts.blogs_started.fetch_add(1, Relaxed);
        let name = to_cstring(format!("blog-{blog}"));
        drop(self.context.create_and_open_folder(self.bench.root_folder, &name)?);
        for kind in [&ARTICLE, &PICTURE] {
            for number in (1..=1 + self.draw_below(MAX_FILES_PER_KIND)).rev() {
                if self.bench.is_finished.load(Relaxed) {
                    return Ok(());
                }
                self.write(blog, kind, number)?;
            }
        }
        self.bench.counts.blogs_finished.fetch_add(1, Relaxed);
        Ok(())
    }

    fn rewrite(&mut self) -> Result<(), RunError> {
        let Some(blog) = self.random_blog()? else { return Ok(()) };
        if self.draw_below(2) == 0 {
            let number = 1 + self.draw_below(MAX_FILES_PER_KIND);
            self.write(blog, &PICTURE, number)?;
        }
        let number = 1 + self.draw_below(MAX_FILES_PER_KIND);
        self.write(blog, &ARTICLE, number)
    }

    fn comment(&mut self) -> Result<(), RunError> {
        let Some(blog) = self.random_blog()? else { return Ok(()) };
        for number in (1..=1 + self.draw_below(MAX_FILES_PER_KIND)).rev() {
            if self.bench.is_finished.load(Relaxed) {
                return Ok(());
            }
            self.write(blog, &COMMENT, number)?;
        }
        Ok(())
    }

    fn visit(&mut self) -> Result<(), RunError> {
        let Some(blog) = self.random_blog()? else { return Ok(()) };
        if self.draw_below(2) == 0 {
            let mut number = 1;
            while !self.bench.is_finished.load(Relaxed) && self.read(blog, &COMMENT, number)? {
                number += 1;
            }
        }
        let mut number = 1;
        while !self.bench.is_finished.load(Relaxed) {
            self.read(blog, &PICTURE, number)?;
            if !self.read(blog, &ARTICLE, number)? {
                break;
            }
            number += 1;
        }
        self.bench.counts.visits.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Writes a file under a temporary name and renames it to its final name.
    ///
    /// Skips a blog whose folder does not exist yet: another thread may have drawn its number just before the
    /// folder is created.
    fn write(&mut self, blog: u64, kind: &FileKind, number: u64) -> Result<(), RunError> {
        let (bytes, turn) =
            (kind.min_bytes + self.draw_below(kind.extra_bytes), self.draws.next().unwrap_or_default());
        let name = format!("blog-{blog}/{}{number}{}", kind.prefix, kind.suffix);
        let partial = to_cstring(format!("{name}.tmp{}", self.thread));
        let file = match self.context.create(self.bench.root_folder, &partial) {
            Err(error) if error.is_not_found() => return Ok(()),
            other => other?,
        };
        let sectors = self.sectors(blog, kind, number);
        let mut offset = 0;
        while offset < bytes {
            let length = WRITE_BYTES.min((bytes - offset) as usize);
            match self.bench.content_mode {
                ContentMode::Incompressible => sectors.fill(turn, offset, &mut self.buffer[..length]),
                ContentMode::AsOriginal => self.buffer[..length].fill(0),
            }
            self.context.write_all(&file, &self.buffer[..length], offset)?;
            offset += length as u64;
        }
        self.context.close(file)?;
        self.context.rename(self.bench.root_folder, &partial, &to_cstring(name))?;
        self.bench.counts.files_written[kind.index].fetch_add(1, Relaxed);
        Ok(())
    }

    /// Reads a whole file. Returns `false` if the file does not exist.
    fn read(&mut self, blog: u64, kind: &FileKind, number: u64) -> Result<bool, RunError> {
        let name = to_cstring(format!("blog-{blog}/{}{number}{}", kind.prefix, kind.suffix));
        let file = match self.context.open(self.bench.root_folder, &name, Access::Read) {
            Err(error) if error.is_not_found() => return Ok(false),
            other => other?,
        };
        let mut offset = 0;
        loop {
            let length = self.context.read_at(&file, &mut self.buffer, offset)?;
            if length == 0 {
                break;
            }
            self.reads += 1;
            if self.bench.content_mode == ContentMode::Incompressible
                && self.reads.is_multiple_of(VERIFY_EVERY)
            {
                let sectors = self.sectors(blog, kind, number);
                // `u64::MAX` accepts every version, because other threads may have replaced the file.
                if let Some(position) = sectors.first_difference(u64::MAX, offset, &self.buffer[..length]) {
                    let detail = format!("byte {position} differs from what was written");
                    let damaged = RunError::damaged(file.path(), detail);
                    return Err(damaged.with_found(offset, &self.buffer[..length]));
                }
                let bytes = length as u64;
                self.context.add_verified(VerifiedData { age: DataAge::Hours, bytes, files: 0 });
            }
            offset += length as u64;
        }
        self.context.close(file)?;
        self.bench.counts.files_read[kind.index].fetch_add(1, Relaxed);
        Ok(true)
    }

    /// Returns the expected content of a file. It does not depend on the thread that wrote the file or on the
    /// time.
    fn sectors(&self, blog: u64, kind: &FileKind, number: u64) -> Sectors {
        Sectors { seed: 0x626c_6f67, file: draw(blog, kind.index as u64, number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_count_matches_the_original() {
        let threads: u64 =
            THREADS.iter().filter(|(role, _)| *role != ThreadRole::Timekeeper).map(|(_, count)| count).sum();
        assert_eq!(threads, 109);
        assert!(threads + 1 < longhaul_measure::recorder::THREAD_SLOTS as u64);
    }

    #[test]
    fn only_blog_files_are_owned() {
        assert!(owns("blogbench-quick/blogs/blog-7/article-3.xml"));
        assert!(owns("blogbench-standard-zeros/blogs/blog-0/picture-100.jpg.tmp42"));
        for other in [
            "blogbench-quick/blogs/blog-7/diary.txt",
            "blogbench-quick/blogs/blog-x/article-3.xml",
            "blogbench-quick/blogs/blog-7/article-03.xml",
            "dd/blogs/blog-7/article-3.xml",
        ] {
            assert!(!owns(other), "{other}");
        }
    }
}
