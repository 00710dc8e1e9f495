//! Time Machine's own speed test (Monterey and later): "Wrote 1 50 MB file at ...", "Concurrently wrote 500 4 KB
//! files at ..." (eclecticlight.co, 2022-01-09).

use std::ffi::{CStr, CString};

use crate::context::{Buffer, Context, Folder, PhaseSpec, Session};
use crate::corpus::Content;
use crate::error::RunError;
use crate::model::{Figure, Unit};
use crate::workloads::{Job, create_anew, unlink_left_over};

/// Its folder.
pub const FOLDER: &str = "speed";

const LARGE_BYTES: u64 = 50_000_000;
const LARGE_NAME: &CStr = c"large";
const BLOCK_BYTES: usize = 1 << 20;
const SMALL_FILES: u64 = 500;
const SMALL_BYTES: usize = 4096;
/// How many small files are written at the same time.
const WIDTH: usize = 8;
const SEED: u64 = 0x746d_7370;

/// Whether a file in its folder is one of its own.
pub fn owns(name: &str) -> bool {
    let number = name.strip_prefix("small-").and_then(|digits| digits.parse().ok());
    name == "large"
        || number
            .is_some_and(|number| number < SMALL_FILES && small_name(number).to_bytes() == name.as_bytes())
}

fn small_name(number: u64) -> CString {
    CString::new(format!("small-{number:03}")).expect("digits hold no NUL")
}

/// The test on one target.
pub struct SpeedTest {
    folder: Folder,
    /// Differs from round to round, so that no server can have seen the content before.
    seed: u64,
}

impl SpeedTest {
    /// Makes its folder.
    pub fn open(job: &Job<'_>) -> Result<Self, RunError> {
        job.require_space(LARGE_BYTES + SMALL_FILES * SMALL_BYTES as u64)?;
        let context = job.preparation();
        let home = context.make_folder(&job.arena.folder()?, c"time-machine")?;
        let name = CString::new(FOLDER).expect("no NUL");
        Ok(Self { folder: context.make_folder(&home, &name)?, seed: SEED ^ job.seed })
    }

    /// Both parts.
    pub fn phases(&self, session: &Session<'_>) -> Result<(), RunError> {
        session.phase(PhaseSpec::uncached("speed-large"), |context| self.write_large(context))?;
        session.fact("small-files", "not synced, as in the original test");
        session.phase(PhaseSpec::uncached("speed-small"), |context| self.write_small(context))
    }

    fn write_large(&self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let content = Content::new(self.seed, u64::MAX);
        let mut block = Buffer::new(BLOCK_BYTES);
        let file = create_anew(context, &self.folder, LARGE_NAME)?;
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

    fn write_small(&self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let numbers: Vec<u64> = (0..SMALL_FILES).collect();
        context.spread(WIDTH, &numbers, |context, number| {
            let mut bytes = [0u8; SMALL_BYTES];
            Content::new(self.seed, *number).fill(0, &mut bytes);
            let file = create_anew(context, &self.folder, &small_name(*number))?;
            context.write_all(&file, &bytes, 0)?;
            context.close(file)
        })?;
        let seconds = context.elapsed();
        let mut figures = throughput("small", SMALL_FILES * SMALL_BYTES as u64, seconds);
        figures.push(Figure::new("small-files", Unit::PerSecond, SMALL_FILES as f64 / seconds));
        Ok(figures)
    }

    /// Removes what it made: every name, as a listing may be older than the files. Over SMB 3 Linux 6.1 goes on showing what
    /// it listed under a lease on the folder, whatever it has made there since (seen with Samba 4.22).
    pub fn remove(&self, context: &Context<'_>) -> Result<(), RunError> {
        let mut names = (0..SMALL_FILES).map(small_name).chain([LARGE_NAME.to_owned()]);
        names.try_for_each(|name| unlink_left_over(context, &self.folder, &name))
    }
}

fn throughput(name: &str, bytes: u64, seconds: f64) -> Vec<Figure> {
    vec![
        Figure::new(name, Unit::Seconds, seconds),
        Figure::new(&format!("{name}-throughput"), Unit::BytesPerSecond, bytes as f64 / seconds),
    ]
}
