//! Blogbench: 3 writers, 1 rewriter, 5 commenters and 100 readers of blogs, for 30 intervals of 10 seconds.
//!
//! Counts, sizes and orders are those of its source (1.1), also where it does not do what it means to: no thread ever
//! thinks, as the names of its think times do not match. Content is not compressed, and one read in sixteen is verified:
//! readers take gigabytes a second out of the cache, and checking all of it would be what is measured.

use std::ffi::CString;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::{Classic, Manner, names, sets};
use crate::context::{Buffer, Context, Folder};
use crate::corpus::draw::{draw, draws};
use crate::corpus::sectors::Sectors;
use crate::error::RunError;
use crate::model::{Figure, Unit};
use crate::platform::{Access, Wanted};
use crate::profile::Program;
use crate::stats::Steadiness;
use crate::workloads::{Job, unlink_left_over};

const INTERVALS: u32 = 30;
const WRITE_BYTES: usize = 8 << 10;
const READ_BYTES: usize = 64 << 10;
/// One read of so many is verified.
const VERIFIED: u64 = 16;

/// Who there is, and how many.
const WORKERS: [(Role, u64); 5] =
    [(Role::Clock, 1), (Role::Writer, 3), (Role::Rewriter, 1), (Role::Commenter, 5), (Role::Reader, 100)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Clock,
    Writer,
    Rewriter,
    Commenter,
    Reader,
}

/// A kind of file: the begin and end of its name, its least bytes, and the range above them.
struct Kind {
    place: usize,
    begin: &'static str,
    end: &'static str,
    least: u64,
    range: u64,
}

const ARTICLE: Kind = Kind { place: 0, begin: "article-", end: ".xml", least: 1024, range: 31_744 };
const PICTURE: Kind = Kind { place: 1, begin: "picture-", end: ".jpg", least: 8192, range: 57_344 };
const COMMENT: Kind = Kind { place: 2, begin: "comment-", end: ".xml", least: 2048, range: 8192 };
const KINDS: [&Kind; 3] = [&ARTICLE, &PICTURE, &COMMENT];

/// Numbers of articles, pictures and comments of a blog, at most.
const MOST: u64 = 100;

/// What has been done so far.
#[derive(Default)]
struct Counts {
    /// Blogs begun, and blogs that are whole.
    begun: AtomicU64,
    blogs: AtomicU64,
    visits: AtomicU64,
    read: [AtomicU64; 3],
    written: [AtomicU64; 3],
}

impl Counts {
    fn now(&self) -> [u64; 7] {
        let of = |counts: &[AtomicU64; 3], place: usize| counts[place].load(Relaxed);
        let (r, w) = (&self.read, &self.written);
        [self.blogs.load(Relaxed), of(r, 0), of(w, 0), of(r, 1), of(w, 1), of(r, 2), of(w, 2)]
    }
}

/// Whether a path below the folder of classics is that of a file of a blog: `blogbench-standard/blogs/blog-7/article-3.xml`.
pub fn owns(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let [place, "blogs", blog, file] = parts[..] else { return false };
    let number = |text: &str| text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    let file = file.rsplit_once(".tmp").filter(|(_, thread)| number(thread)).map_or(file, |(file, _)| file);
    let is_kind = |kind: &Kind| {
        file.strip_prefix(kind.begin).and_then(|rest| rest.strip_suffix(kind.end)).is_some_and(number)
    };
    place.starts_with("blogbench-")
        && blog.strip_prefix("blog-").is_some_and(number)
        && KINDS.into_iter().any(is_kind)
}

fn home(job: &Job<'_>, classic: &Classic) -> Result<Folder, RunError> {
    job.preparation().make_folder(&sets::home(job, &classic.place(job))?, c"blogs")
}

/// Removes what a run left; nothing for a classic that writes no blogs.
pub fn remove(job: &Job<'_>, classic: &Classic) -> Result<(), RunError> {
    if !classic.profile.phases.iter().any(|phase| phase.program == Some(Program::Blogbench)) {
        return Ok(());
    }
    let (context, home) = (job.preparation(), home(job, classic)?);
    let names = |folder: &Folder, begin: &str| {
        let mut names: Vec<CString> = vec![];
        let listed = context.open_folder(folder, c".")?;
        context.list(&listed, Wanted::Names, &mut Default::default(), |entry| {
            let is_ours =
                entry.name.to_str().is_ok_and(|name| owns(&format!("blogbench-x/blogs/{begin}{name}")));
            let is_blog = begin.is_empty() && entry.name.to_bytes().starts_with(b"blog-");
            names.extend((is_ours || is_blog).then(|| entry.name.to_owned()));
            Ok::<_, RunError>(())
        })?;
        Ok::<_, RunError>(names)
    };
    for blog in names(&home, "")? {
        let folder = context.open_folder(&home, &blog)?;
        let files = names(&folder, "blog-0/")?;
        files.iter().try_for_each(|name| unlink_left_over(&context, &folder, name))?;
        context.remove_folder(&home, &blog)?;
    }
    Ok(())
}

/// One run of it.
struct Bench<'a> {
    home: &'a Folder,
    manner: Manner,
    seed: u64,
    interval: f64,
    counts: Counts,
    over: AtomicBool,
    lines: std::sync::Mutex<Vec<[u64; 7]>>,
}

/// Runs it to its end, and gives both scores.
pub fn run(
    job: &Job<'_>,
    classic: &Classic,
    context: &Context<'_>,
    (seed, seconds): (u64, f64),
) -> Result<Vec<Figure>, RunError> {
    let home = home(job, classic)?;
    let bench = Bench {
        home: &home,
        manner: classic.manner,
        seed,
        interval: seconds / f64::from(INTERVALS),
        counts: Counts::default(),
        over: AtomicBool::new(false),
        lines: std::sync::Mutex::default(),
    };
    let crew: Vec<(Role, u64)> =
        WORKERS.iter().flat_map(|(role, count)| (0..*count).map(move |_| *role)).zip(0..).collect();
    context.spread(crew.len(), &crew, |context, (role, thread)| {
        let result = Visitor::new(&bench, context, *thread).work(*role);
        result.inspect_err(|_| bench.over.store(true, Relaxed))
    })?;
    let lines = bench.lines.lock().expect("nobody panics with it").clone();
    job.session.fact("table", table(&lines));
    Ok(figures(&bench.counts, &lines, context.elapsed()))
}

/// The table that blogbench prints: blogs so far, and what was read and written in each interval.
fn table(lines: &[[u64; 7]]) -> String {
    let head =
        "  Nb blogs   R articles    W articles    R pictures    W pictures    R comments    W comments"
            .to_owned();
    let line = |[blogs, rest @ ..]: &[u64; 7]| {
        let columns = rest.iter().zip([13, 14, 14, 14, 14, 14]);
        columns.fold(format!("{blogs:>10}"), |line, (count, width)| format!("{line}{count:>width$}"))
    };
    std::iter::once(head).chain(lines.iter().map(line)).collect::<Vec<_>>().join("\n")
}

fn figures(counts: &Counts, lines: &[[u64; 7]], seconds: f64) -> Vec<Figure> {
    let [blogs, articles_read, articles, _, pictures, _, comments] = counts.now();
    let count = |name, value: u64| Figure::new(name, Unit::Count, value as f64);
    let files = articles + pictures + comments;
    let mut figures = vec![
        count("blogs", blogs),
        count("visits", counts.visits.load(Relaxed)),
        count("articles-read", articles_read),
        count("articles-written", articles),
        count("pictures-written", pictures),
        count("comments-written", comments),
        Figure::new("files-written", Unit::PerSecond, files as f64 / seconds),
        Figure::new("seconds", Unit::Seconds, seconds),
    ];
    let written: Vec<f64> = lines.iter().map(|line| (line[2] + line[4] + line[6]) as f64).collect();
    if let Some(steadiness) = Steadiness::of_rates(&written) {
        figures.push(Figure::new("spread", Unit::Share, steadiness.spread));
        figures.push(Figure::new("drift", Unit::Share, steadiness.drift.abs()));
    }
    figures
}

/// One of the threads.
struct Visitor<'a> {
    bench: &'a Bench<'a>,
    context: &'a Context<'a>,
    thread: u64,
    draws: Box<dyn Iterator<Item = u64>>,
    buffer: Buffer,
    reads: u64,
}

impl<'a> Visitor<'a> {
    fn new(bench: &'a Bench<'a>, context: &'a Context<'a>, thread: u64) -> Self {
        let draws = Box::new(draws(bench.seed, thread));
        Self { bench, context, thread, draws, buffer: Buffer::new(READ_BYTES), reads: 0 }
    }

    fn work(&mut self, role: Role) -> Result<(), RunError> {
        if role == Role::Clock {
            return self.keep_time();
        }
        while !self.bench.over.load(Relaxed) {
            match role {
                Role::Clock => return Ok(()),
                Role::Writer => self.write_blog()?,
                Role::Rewriter => self.rewrite()?,
                Role::Commenter => self.comment()?,
                Role::Reader => self.visit()?,
            }
        }
        Ok(())
    }

    /// Notes a line after each interval, and ends everything after the last.
    fn keep_time(&mut self) -> Result<(), RunError> {
        let mut before = [0; 7];
        for interval in 1..=INTERVALS {
            let result = self.context.wait_until(f64::from(interval) * self.bench.interval);
            if result.is_err() || self.bench.over.load(Relaxed) {
                return result;
            }
            let now = self.bench.counts.now();
            let mut line: [u64; 7] = std::array::from_fn(|column| now[column] - before[column]);
            line[0] = now[0];
            before = now;
            self.bench.lines.lock().expect("nobody panics with it").push(line);
        }
        self.bench.over.store(true, Relaxed);
        Ok(())
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.draws.next().unwrap_or_default() % bound
    }

    /// Any blog that has been begun; waits a second where there is none but the first, as the original does.
    fn any_blog(&mut self) -> Result<Option<u64>, RunError> {
        let begun = self.bench.counts.begun.load(Relaxed);
        let blog = if begun == 0 { 0 } else { self.below(begun) };
        if blog > 0 {
            return Ok(Some(blog));
        }
        let wait = (self.bench.interval / 10.0).min(1.0);
        self.context.wait_until(self.context.elapsed() + wait)?;
        Ok(None)
    }

    fn write_blog(&mut self) -> Result<(), RunError> {
        let blog = self.bench.counts.begun.fetch_add(1, Relaxed);
        drop(self.context.make_folder(self.bench.home, &names::text(format!("blog-{blog}")))?);
        for kind in [&ARTICLE, &PICTURE] {
            for number in (1..=1 + self.below(MOST)).rev() {
                if self.bench.over.load(Relaxed) {
                    return Ok(());
                }
                self.write(blog, kind, number)?;
            }
        }
        self.bench.counts.blogs.fetch_add(1, Relaxed);
        Ok(())
    }

    fn rewrite(&mut self) -> Result<(), RunError> {
        let Some(blog) = self.any_blog()? else { return Ok(()) };
        if self.below(2) == 0 {
            let number = 1 + self.below(MOST);
            self.write(blog, &PICTURE, number)?;
        }
        let number = 1 + self.below(MOST);
        self.write(blog, &ARTICLE, number)
    }

    fn comment(&mut self) -> Result<(), RunError> {
        let Some(blog) = self.any_blog()? else { return Ok(()) };
        for number in (1..=1 + self.below(MOST)).rev() {
            if self.bench.over.load(Relaxed) {
                return Ok(());
            }
            self.write(blog, &COMMENT, number)?;
        }
        Ok(())
    }

    fn visit(&mut self) -> Result<(), RunError> {
        let Some(blog) = self.any_blog()? else { return Ok(()) };
        if self.below(2) == 0 {
            let mut number = 1;
            while !self.bench.over.load(Relaxed) && self.read(blog, &COMMENT, number)? {
                number += 1;
            }
        }
        let mut number = 1;
        while !self.bench.over.load(Relaxed) {
            self.read(blog, &PICTURE, number)?;
            if !self.read(blog, &ARTICLE, number)? {
                break;
            }
            number += 1;
        }
        self.bench.counts.visits.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Writes a file under another name, then renames it. A blog whose folder is only just being made is passed over.
    fn write(&mut self, blog: u64, kind: &Kind, number: u64) -> Result<(), RunError> {
        let (bytes, turn) = (kind.least + self.below(kind.range), self.draws.next().unwrap_or_default());
        let name = format!("blog-{blog}/{}{number}{}", kind.begin, kind.end);
        let partial = names::text(format!("{name}.tmp{}", self.thread));
        let file = match self.context.create(self.bench.home, &partial) {
            Err(error) if is_missing(&error) => return Ok(()),
            other => other?,
        };
        let sectors = self.sectors(blog, kind, number);
        let mut offset = 0;
        while offset < bytes {
            let length = WRITE_BYTES.min((bytes - offset) as usize);
            match self.bench.manner {
                Manner::Honest => sectors.fill(turn, offset, &mut self.buffer[..length]),
                Manner::AsOriginal => self.buffer[..length].fill(0),
            }
            self.context.write_all(&file, &self.buffer[..length], offset)?;
            offset += length as u64;
        }
        self.context.close(file)?;
        self.context.rename((self.bench.home, &partial), (self.bench.home, &names::text(name)))?;
        self.bench.counts.written[kind.place].fetch_add(1, Relaxed);
        Ok(())
    }

    /// Reads a file; `false` if there is none.
    fn read(&mut self, blog: u64, kind: &Kind, number: u64) -> Result<bool, RunError> {
        let name = names::text(format!("blog-{blog}/{}{number}{}", kind.begin, kind.end));
        let file = match self.context.open(self.bench.home, &name, Access::Read) {
            Err(error) if is_missing(&error) => return Ok(false),
            other => other?,
        };
        let mut offset = 0;
        loop {
            let length = self.context.read_at(&file, &mut self.buffer, offset)?;
            if length == 0 {
                break;
            }
            self.reads += 1;
            if self.bench.manner == Manner::Honest && self.reads.is_multiple_of(VERIFIED) {
                let sectors = self.sectors(blog, kind, number);
                if let Some(place) = sectors.first_difference(u64::MAX, offset, &self.buffer[..length]) {
                    return Err(RunError::damaged(
                        file.path(),
                        format!("byte {place} is not what was written"),
                    ));
                }
            }
            offset += length as u64;
        }
        self.context.close(file)?;
        self.bench.counts.read[kind.place].fetch_add(1, Relaxed);
        Ok(true)
    }

    /// What is in a file, whichever thread wrote it and when.
    fn sectors(&self, blog: u64, kind: &Kind, number: u64) -> Sectors {
        Sectors { seed: 0x626c_6f67, file: draw(blog, kind.place as u64, number) }
    }
}

fn is_missing(error: &RunError) -> bool {
    matches!(error, RunError::Operation { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_threads_as_in_the_original() {
        let threads: u64 =
            WORKERS.iter().filter(|(role, _)| *role != Role::Clock).map(|(_, count)| count).sum();
        assert_eq!(threads, 109);
        assert!(threads + 1 < crate::recorder::LANES as u64);
    }

    #[test]
    fn only_files_of_blogs_are_owned() {
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

    #[test]
    fn the_table_is_printed_as_the_source_shows_it() {
        let first =
            "       173      1151009          9724        714923          8232        591264         24967";
        assert_eq!(
            table(&[[173, 1_151_009, 9724, 714_923, 8232, 591_264, 24_967]]).lines().nth(1),
            Some(first)
        );
        assert_eq!(table(&[]).len(), first.len());
    }
}
