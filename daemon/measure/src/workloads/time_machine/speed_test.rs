//! The speed test that Time Machine runs before a backup (macOS Monterey and later).
//!
//! Its log messages are "Wrote 1 50 MB file at ..." and "Concurrently wrote 500 4 KB files at ..."
//! (eclecticlight.co, 2022-01-09).

use std::ffi::{CStr, CString};

use crate::error::RunError;
use crate::timed_fs::{Buffer, Folder, PhaseSpec, Session, TimedFs};
use crate::workloads::{Job, create_or_replace, unlink_leftover};
use longhaul_corpus::Content;
use longhaul_corpus::names::to_cstring;
use longhaul_model::{Figure, Unit};

/// The name of the speed test's folder.
pub const FOLDER: &str = "speed";

/// Size of all files of the speed test in bytes.
pub const BYTES: u64 = LARGE_BYTES + SMALL_FILES * SMALL_BYTES as u64;

const LARGE_BYTES: u64 = 50_000_000;
const LARGE_NAME: &CStr = c"large";
const BLOCK_BYTES: usize = 1 << 20;
const SMALL_FILES: u64 = 500;
const SMALL_BYTES: usize = 4096;
/// The number of threads that write small files.
const WRITE_THREADS: usize = 8;
const SEED: u64 = 0x746d_7370;

/// Returns whether the speed test creates a file with this name.
pub fn owns(name: &str) -> bool {
    let number = name.strip_prefix("small-").and_then(|digits| digits.parse().ok());
    name == "large"
        || number
            .is_some_and(|number| number < SMALL_FILES && small_name(number).to_bytes() == name.as_bytes())
}

fn small_name(number: u64) -> CString {
    to_cstring(format!("small-{number:03}"))
}

/// The speed test on one target.
pub struct SpeedTest {
    folder: Folder,
    /// Seed for the content. It differs from round to round, but not between the targets of a round: a NAS that deduplicates may
    /// have the same content already from the target before.
    seed: u64,
}

impl SpeedTest {
    /// Opens the folder of the speed test; creates a missing folder.
    pub fn open(job: &Job<'_>) -> Result<Self, RunError> {
        let context = job.untimed();
        let home = context.create_and_open_folder(&job.sandbox.folder()?, c"time-machine")?;
        let name = to_cstring(FOLDER.to_owned());
        Ok(Self { folder: context.create_and_open_folder(&home, &name)?, seed: SEED ^ job.seed })
    }

    /// Runs both phases: one large file, then many small files.
    pub fn run_phases(&self, session: &Session<'_>) -> Result<(), RunError> {
        session.phase(PhaseSpec::uncached("speed-large"), |context| self.write_large(context))?;
        session.add_fact("small-files", "not synced, as in the original test");
        session.phase(PhaseSpec::uncached("speed-small"), |context| self.write_small(context))
    }

    fn write_large(&self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let content = Content::new(self.seed, u64::MAX);
        let mut block = Buffer::new(BLOCK_BYTES);
        let file = create_or_replace(context, &self.folder, LARGE_NAME)?;
        let mut offset = 0;
        while offset < LARGE_BYTES {
            let length = BLOCK_BYTES.min((LARGE_BYTES - offset) as usize);
            content.fill(offset, &mut block[..length]);
            context.write_all(&file, &block[..length], offset)?;
            offset += length as u64;
        }
        context.full_sync(&file)?;
        context.close(file)?;
        Ok(throughput("large", LARGE_BYTES, context.elapsed()))
    }

    fn write_small(&self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let numbers: Vec<u64> = (0..SMALL_FILES).collect();
        context.run_parallel(WRITE_THREADS, &numbers, |context, number| {
            let mut bytes = [0u8; SMALL_BYTES];
            Content::new(self.seed, *number).fill(0, &mut bytes);
            let file = create_or_replace(context, &self.folder, &small_name(*number))?;
            context.write_all(&file, &bytes, 0)?;
            context.close(file)
        })?;
        let seconds = context.elapsed();
        let mut figures = throughput("small", SMALL_FILES * SMALL_BYTES as u64, seconds);
        figures.push(Figure::new("small-files", Unit::PerSecond, SMALL_FILES as f64 / seconds));
        Ok(figures)
    }

    /// Removes all files of the speed test by name.
    ///
    /// The folder is not listed, because a listing may be outdated: over SMB 3, Linux 6.1 keeps showing the
    /// listing that it cached under a lease on the folder, even after it created files there (seen with Samba
    /// 4.22).
    pub fn remove(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let mut names = (0..SMALL_FILES).map(small_name).chain([LARGE_NAME.to_owned()]);
        names.try_for_each(|name| unlink_leftover(context, &self.folder, &name))
    }
}

fn throughput(name: &str, bytes: u64, seconds: f64) -> Vec<Figure> {
    vec![
        Figure::new(name, Unit::Seconds, seconds),
        Figure::new(&format!("{name}-throughput"), Unit::BytesPerSecond, bytes as f64 / seconds),
    ]
}
