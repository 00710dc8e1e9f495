//! What the probe asks about: two files in a folder of the arena that is its own.
//!
//! The pool is read at places that were not read since it was last evicted; the small file is written over. Between two
//! slots nothing is held open, as an open file keeps a share from being unmounted; so what a slot needs is opened a
//! moment before it, and closed after it.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::arena::{Arena, Claim, POOL as FOLDER};
use crate::context::{Context, Folder, LINK_CHECK, OpenFile};
use crate::corpus::Content;
use crate::corpus::draw::{draw, shuffled_place};
use crate::error::RunError;
use crate::model::{ProbeKind, ProbePlan};
use crate::platform::{Access, monotonic_ns, page_bytes};

/// Bytes that are read or written at once.
pub const ASKED_BYTES: usize = 4096;
/// Bytes by which the pool grows.
const PIECE_BYTES: u64 = 256 << 10;
/// Bytes of it that are written at once.
const WRITTEN_BYTES: usize = 8 << 10;
/// How often the server is asked whether the small file has a second name, in nanoseconds.
const ASKED_EVERY_NS: u64 = 60 * 1_000_000_000;
/// The pool, and what is in it.
const POOL: (&CStr, u64) = (c"pool", 1);
/// The small file, and what is in it.
const SMALL: (&CStr, u64) = (c"small", 2);
/// The stream of the seed that orders of places are drawn from.
const PASSES: u64 = 0x7061_7373;

/// Whether a file of an arena, given by its folder and its path in it, is one of the probe's.
pub fn owns(folder: &str, path: &Path) -> bool {
    let is = |name: &CStr| path.as_os_str().as_encoded_bytes() == name.to_bytes();
    let names = [POOL.0, SMALL.0].into_iter().chain(LINK_CHECK);
    folder == FOLDER && names.into_iter().any(is)
}

/// The places of the pool, each to be read once, in a drawn order.
#[derive(Debug, Clone, Copy)]
struct Pass {
    seed: u64,
    places: u64,
    next: u64,
}

/// What was looked at before a slot, ready to be asked.
pub struct Visit {
    kind: ProbeKind,
    folder: Folder,
    file: OpenFile,
    offset: u64,
    bytes: Box<[u8; ASKED_BYTES]>,
}

/// Where a pool is, and how it is used.
pub struct Site<'a> {
    /// Whose arena.
    pub claim: Claim<'a>,
    /// The file system that it has to lie on, if that is known: what is mounted there later is something else.
    pub device: Option<u64>,
    /// What is asked of it.
    pub plan: &'a ProbePlan,
    /// Makes orders and writes differ from those of the last worker, which a server may still remember.
    pub salt: u64,
}

/// Whether a pool has grown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grown {
    /// By a piece.
    Yes,
    /// It would take what has to stay free: for a person.
    Short(String),
}

const FOLDER_NAME: &CStr = c"probe";

/// The probe's folder in an arena.
pub struct Pool {
    target: PathBuf,
    arena: CString,
    device: u64,
    seed: u64,
    plan: ProbePlan,
    /// From place to place: a page, as the system caches no less.
    stride: u64,
    built: u64,
    pass: Option<Pass>,
    salt: u64,
    writes: u64,
    /// Whether link counts can be trusted here: where not, what is written in place is made anew before.
    reports_links: bool,
    /// When the server was last asked about the small file, on the monotonic clock.
    asked_ns: Option<u64>,
    /// What is to be told: that another tool has linked a file of the probe.
    note: Option<String>,
}

impl Pool {
    /// Finds the probe's folder in the arena, and makes it where it is missing; `None` if there is no arena.
    pub fn open(site: &Site<'_>, context: &Context<'_>) -> Result<Option<Self>, RunError> {
        let Some(arena) = Arena::look(&site.claim, context)? else { return Ok(None) };
        let device = arena.device()?;
        if site.device.is_some_and(|known| known != device) {
            return Err(elsewhere(site.claim.target_path));
        }
        let folder = context.make_folder(&arena, FOLDER_NAME)?;
        for (name, _) in [POOL, SMALL] {
            if context.lookup(&folder, name)?.is_none() {
                context.close(context.create(&folder, name)?)?;
            }
        }
        let size = context.getattr(&folder, POOL.0)?.size;
        let name = site.claim.folder_name();
        let mut pool = Self {
            target: site.claim.target_path.to_owned(),
            device,
            // The content follows from whose arena it is, so that it is known whatever the plan says.
            seed: name.bytes().fold(0, |seed, byte| draw(seed, 1, byte.into())),
            arena: CString::new(name).expect("names of machines and targets have no NUL"),
            plan: site.plan.clone(),
            stride: (ASKED_BYTES as u64).max(page_bytes()),
            // The last piece may be torn: it is written again.
            built: (size / PIECE_BYTES).saturating_sub(1) * PIECE_BYTES,
            pass: None,
            salt: site.salt,
            writes: site.salt,
            reports_links: context.reports_links(&folder)?,
            asked_ns: None,
            note: None,
        };
        if !pool.reports_links && !pool.is_complete() {
            pool.begin_anew(&folder, context)?;
        }
        Ok(Some(pool))
    }

    /// What a person should know, once.
    pub fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    /// Makes the pool a new, empty file: it is not written to where it may be somebody's backup too.
    fn begin_anew(&mut self, folder: &Folder, context: &Context<'_>) -> Result<(), RunError> {
        context.close(anew(folder, POOL.0, context)?)?;
        (self.built, self.pass) = (0, None);
        Ok(())
    }

    /// Whether a file of the probe may be written in place; if not because a tool has linked it, that is noted.
    fn may_write(&mut self, folder: &Folder, name: &CStr, context: &Context<'_>) -> Result<bool, RunError> {
        let reason = context.why_not_in_place(folder, name)?;
        if let Some(reason) = &reason {
            let path = folder.join(name);
            self.note = Some(RunError::NotOurs { path, reason: reason.clone() }.failure().message);
        }
        Ok(reason.is_none())
    }

    /// The small file, open: a new one where the old one may not be written in place. The server is asked about it once a
    /// minute, as a question for each write would keep a busy share busier; what opening tells is looked at each time.
    fn small(&mut self, folder: &Folder, context: &Context<'_>) -> Result<OpenFile, RunError> {
        let now_ns = monotonic_ns();
        let is_due = self.asked_ns.is_none_or(|asked_ns| now_ns - asked_ns >= ASKED_EVERY_NS);
        if self.reports_links && is_due {
            self.asked_ns = Some(now_ns);
        }
        if self.reports_links && (!is_due || self.may_write(folder, SMALL.0, context)?) {
            match context.open_in_place(folder, SMALL.0, None) {
                Err(error @ RunError::NotOurs { .. }) => self.note = Some(error.failure().message),
                opened => return opened,
            }
        }
        let file = anew(folder, SMALL.0, context)?;
        // So that what is measured is a write over bytes that are there, as in the other slots.
        context.write_all(&file, &[0; ASKED_BYTES], 0)?;
        context.sync(&file)?;
        Ok(file)
    }

    /// The file system that it lies on.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Opens what a slot of this kind needs; `None` if the pool has no place to read yet.
    pub fn visit(&mut self, kind: ProbeKind, context: &Context<'_>) -> Result<Option<Visit>, RunError> {
        let offset = match kind {
            ProbeKind::Read => match self.next_place() {
                Some(place) => place * self.stride,
                None => return Ok(None),
            },
            ProbeKind::Getattr => 0,
            ProbeKind::WriteSync => self.next_write(),
        };
        let folder = self.folder(context)?;
        let file = match kind {
            ProbeKind::Getattr | ProbeKind::Read => context.open(&folder, POOL.0, Access::Read)?,
            ProbeKind::WriteSync => self.small(&folder, context)?,
        };
        let mut bytes = Box::new([0; ASKED_BYTES]);
        match kind {
            ProbeKind::Getattr => {}
            ProbeKind::Read => context.without_read_ahead(&file),
            ProbeKind::WriteSync => self.content(SMALL).fill(offset, &mut bytes[..]),
        }
        Ok(Some(Visit { kind, folder, file, offset, bytes }))
    }

    /// Checks what a visit read.
    pub fn check(&self, visit: &Visit) -> Result<(), RunError> {
        let differs = match visit.kind {
            ProbeKind::Read => self.content(POOL).first_difference(visit.offset, &visit.bytes[..]),
            ProbeKind::Getattr | ProbeKind::WriteSync => None,
        };
        match differs {
            None => Ok(()),
            Some(place) => {
                Err(RunError::damaged(visit.file.path(), format!("byte {place} is not what was written")))
            }
        }
    }

    /// Whether the pool is as large as it has to be.
    pub fn is_complete(&self) -> bool {
        self.built >= self.plan.pool_bytes || !self.plan.kinds.contains(&ProbeKind::Read)
    }

    /// Lets the pool grow by a piece, unless that would take what has to stay free.
    pub fn grow(&mut self, context: &Context<'_>) -> Result<Grown, RunError> {
        let folder = self.folder(context)?;
        let space = context.space(&folder)?;
        let floor = (space.total_bytes as f64 * self.plan.free_floor) as u64;
        if space.free_bytes < floor.saturating_add(PIECE_BYTES) {
            return Ok(Grown::Short(short(&self.target, space.free_bytes, floor)));
        }
        if self.reports_links && !self.may_write(&folder, POOL.0, context)? {
            self.begin_anew(&folder, context)?;
        }
        let file = context.open_in_place(&folder, POOL.0, None)?;
        let end = (self.built + PIECE_BYTES).min(self.plan.pool_bytes);
        let written = self.write(&file, self.built..end, context).and_then(|()| context.sync(&file));
        context.close(file)?;
        written?;
        self.built = end;
        Ok(Grown::Yes)
    }

    /// Writes a part of the pool, in small parts: a worker that waits keeps no large buffer.
    fn write(&self, file: &OpenFile, part: Range<u64>, context: &Context<'_>) -> Result<(), RunError> {
        let content = self.content(POOL);
        let mut bytes = [0; WRITTEN_BYTES];
        for offset in part.clone().step_by(WRITTEN_BYTES) {
            let bytes = &mut bytes[..WRITTEN_BYTES.min((part.end - offset) as usize)];
            content.fill(offset, bytes);
            context.write_all(file, bytes, offset)?;
        }
        Ok(())
    }

    /// Begins a new pass over what is built if the last one is over.
    pub fn renew(&mut self, context: &Context<'_>) -> Result<(), RunError> {
        let is_over = self.pass.is_none_or(|pass| pass.next >= pass.places);
        match is_over && self.built > 0 && self.plan.kinds.contains(&ProbeKind::Read) {
            true => self.begin_pass(context),
            false => Ok(()),
        }
    }

    fn begin_pass(&mut self, context: &Context<'_>) -> Result<(), RunError> {
        let folder = self.folder(context)?;
        context.evict_named(&folder, POOL.0, self.built)?;
        self.salt = self.salt.wrapping_add(1);
        let seed = draw(self.plan.seed, PASSES, self.salt);
        self.pass = Some(Pass { seed, places: self.built / self.stride, next: 0 });
        Ok(())
    }

    fn next_place(&mut self) -> Option<u64> {
        let pass = self.pass.as_mut().filter(|pass| pass.next < pass.places)?;
        pass.next += 1;
        Some(shuffled_place(pass.seed, PASSES, pass.places, pass.next - 1))
    }

    /// Every write has content of its own, so that nothing can be saved on it.
    fn next_write(&mut self) -> u64 {
        self.writes = self.writes.wrapping_add(1);
        (self.writes % (1 << 40)) * ASKED_BYTES as u64
    }

    fn content(&self, (_, file): (&CStr, u64)) -> Content {
        Content::new(self.seed, file)
    }

    /// Opens the probe's folder from the target on. Where another file system is there now, it is left alone.
    fn folder(&self, context: &Context<'_>) -> Result<Folder, RunError> {
        let target = context.open_folder_path(&self.target)?;
        let arena = context.open_folder(&target, &self.arena)?;
        if arena.device()? != self.device {
            return Err(elsewhere(&self.target));
        }
        context.open_folder(&arena, FOLDER_NAME)
    }
}

/// Makes a file in the place of another, which keeps its content under whatever other name leads to it.
fn anew(folder: &Folder, name: &CStr, context: &Context<'_>) -> Result<OpenFile, RunError> {
    context.unlink(folder, name)?;
    context.create(folder, name)
}

/// What it means that another file system is where the target was.
pub fn elsewhere(target: &Path) -> RunError {
    RunError::refused(
        target,
        "another file system is there now than the one that was measured",
        "Mount the share again; the probe goes on with the next worker",
    )
}

fn short(target: &Path, free: u64, floor: u64) -> String {
    format!(
        "{}: {:.1} MB are free and {:.1} MB have to stay free, so the probe's file cannot grow. Free space on the target; \
         until then the probe reads what is there of it",
        target.display(),
        free as f64 / 1e6,
        floor as f64 / 1e6
    )
}

impl Visit {
    /// Makes the call that is measured.
    pub fn ask(&mut self, context: &Context<'_>) -> Result<(), RunError> {
        match self.kind {
            ProbeKind::Getattr => context.getattr(&self.folder, POOL.0).map(drop),
            ProbeKind::Read => match context.read_full(&self.file, &mut self.bytes[..], self.offset)? {
                ASKED_BYTES => Ok(()),
                _ => Err(RunError::damaged(self.file.path(), "it is shorter than it was made".to_owned())),
            },
            ProbeKind::WriteSync => {
                context.write_all(&self.file, &self.bytes[..], 0)?;
                context.sync(&self.file).map(drop)
            }
        }
    }

    /// Lets go of what was opened.
    pub fn close(self, context: &Context<'_>) -> Result<(), RunError> {
        context.close(self.file)
    }
}

#[cfg(test)]
mod tests;
