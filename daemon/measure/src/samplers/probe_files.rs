//! The two files of the latency probe, in its own folder of the sandbox.
//!
//! The read file (`read`) is read at offsets that were not read since the file was last evicted. The write file
//! (`write`) is overwritten. No file is open between two slots, because an open file would prevent the share from
//! being unmounted: the file of a slot is opened shortly before the slot, and closed after it.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::RunError;
use crate::platform::{Access, monotonic_ns, page_bytes};
use crate::sandbox::{PROBE_FOLDER as FOLDER, Sandbox, SandboxLocation};
use crate::timed_fs::{Folder, LINK_CHECK_FILES, OpenFile, TimedFs};
use longhaul_corpus::Content;
use longhaul_model::draw::{draw, shuffled_index};
use longhaul_model::{ProbeKind, ProbePlan};

/// Size of one read or write request in bytes.
pub const REQUEST_BYTES: usize = 4096;
/// Number of bytes by which the read file grows at a time.
const GROWTH_BYTES: u64 = 256 << 10;
/// Size of one write while the read file grows, in bytes.
const WRITE_CHUNK_BYTES: usize = 8 << 10;
/// Interval in nanoseconds at which the server is asked whether the write file has further hard links.
const LINK_CHECK_INTERVAL_NS: u64 = 60 * 1_000_000_000;
/// The file that the probe reads.
const READ_FILE: ProbeFile = ProbeFile { name: c"read", content: 1 };
/// The file that the probe writes.
const WRITE_FILE: ProbeFile = ProbeFile { name: c"write", content: 2 };
/// Random stream for the order of read offsets.
const PASS_STREAM: u64 = 0x7061_7373;

/// A file of the probe: its name and the number of its content.
#[derive(Clone, Copy)]
struct ProbeFile {
    name: &'static CStr,
    content: u64,
}

/// Returns whether a file in a sandbox belongs to the latency probe. `path` is relative to `folder`, which is a
/// folder in the sandbox.
pub fn owns(folder: &str, path: &Path) -> bool {
    let is = |name: &CStr| path.as_os_str().as_encoded_bytes() == name.to_bytes();
    let names = [READ_FILE.name, WRITE_FILE.name].into_iter().chain(LINK_CHECK_FILES);
    folder == FOLDER && names.into_iter().any(is)
}

/// Pass over the read file, in which each block is read once, in random order.
#[derive(Debug, Clone, Copy)]
struct ReadPass {
    seed: u64,
    length: u64,
    next: u64,
}

/// Prepared request of a slot, with its open file.
pub struct PreparedProbe {
    kind: ProbeKind,
    folder: Folder,
    file: OpenFile,
    offset: u64,
    bytes: Box<[u8; REQUEST_BYTES]>,
}

/// Location and settings of the probe's files.
pub struct ProbeSite<'a> {
    /// Location of the sandbox.
    pub location: SandboxLocation<'a>,
    /// Device number of the file system that the sandbox must be on; `None` if unknown. A different number means
    /// that another file system is mounted at the target's path.
    pub device: Option<u64>,
    /// Settings of the probe.
    pub plan: &'a ProbePlan,
    /// Random number that makes the order of reads and the written content differ from those of the last worker,
    /// which may still be in the server's cache.
    pub salt: u64,
}

/// Result of growing the read file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrowthOutcome {
    /// The read file has grown by one step.
    Grown,
    /// The read file did not grow, because too little space would remain free. Contains a message for the user.
    NoSpace(String),
}

const FOLDER_NAME: &CStr = c"probe";

/// Files of the latency probe in a sandbox.
pub struct ProbeFiles {
    target: PathBuf,
    sandbox: CString,
    device: u64,
    seed: u64,
    plan: ProbePlan,
    /// Distance of two read offsets in bytes: at least a memory page, because the system caches whole pages.
    stride: u64,
    built_bytes: u64,
    pass: Option<ReadPass>,
    salt: u64,
    writes: u64,
    /// True if the link counts of the file system are reliable. If not, a file is created again before it is
    /// written.
    has_reliable_link_counts: bool,
    /// Time of the last link check of the write file, in nanoseconds of the monotonic clock; `None` before the
    /// first one.
    links_checked_ns: Option<u64>,
    /// Warning for the user that another tool has linked a file of the probe.
    warning: Option<String>,
}

impl ProbeFiles {
    /// Opens the probe's folder in the sandbox, and creates it if it does not exist. Returns `None` if there is no
    /// sandbox.
    pub fn open(site: &ProbeSite<'_>, context: &TimedFs<'_>) -> Result<Option<Self>, RunError> {
        let Some(sandbox) = Sandbox::find(&site.location, context)? else { return Ok(None) };
        let device = sandbox.device()?;
        if site.device.is_some_and(|known| known != device) {
            return Err(file_system_changed(site.location.target_path));
        }
        let folder = context.create_and_open_folder(&sandbox, FOLDER_NAME)?;
        for ProbeFile { name, .. } in [READ_FILE, WRITE_FILE] {
            if context.lookup(&folder, name)?.is_none() {
                context.close(context.create(&folder, name)?)?;
            }
        }
        let size = context.getattr(&folder, READ_FILE.name)?.size;
        let name = site.location.folder_name();
        let mut files = Self {
            target: site.location.target_path.to_owned(),
            device,
            // The content is derived from the name of the sandbox, so that it does not depend on the plan.
            seed: name.bytes().fold(0, |seed, byte| draw(seed, 1, byte.into())),
            sandbox: CString::new(name).expect("names of machines and targets have no NUL"),
            plan: site.plan.clone(),
            stride: (REQUEST_BYTES as u64).max(page_bytes()),
            // The last growth step may be incomplete after a crash, so it is written again.
            built_bytes: (size / GROWTH_BYTES).saturating_sub(1) * GROWTH_BYTES,
            pass: None,
            salt: site.salt,
            writes: site.salt,
            has_reliable_link_counts: context.has_reliable_link_counts(&folder)?,
            links_checked_ns: None,
            warning: None,
        };
        if !files.has_reliable_link_counts && !files.is_complete() {
            files.recreate_read_file(&folder, context)?;
        }
        Ok(Some(files))
    }

    /// Returns the pending warning for the user, if any, and clears it.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// Replaces the read file with a new, empty file. An existing file is not written to if it may have another
    /// hard link, because a backup may share it.
    fn recreate_read_file(&mut self, folder: &Folder, context: &TimedFs<'_>) -> Result<(), RunError> {
        context.close(recreate_file(folder, READ_FILE.name, context)?)?;
        (self.built_bytes, self.pass) = (0, None);
        Ok(())
    }

    /// Returns whether a file of the probe may be written in place. If another tool has linked the file, stores a
    /// warning.
    fn may_write(&mut self, folder: &Folder, name: &CStr, context: &TimedFs<'_>) -> Result<bool, RunError> {
        let reason = context.in_place_refusal(folder, name)?;
        if let Some(reason) = &reason {
            let path = folder.join(name);
            self.warning = Some(RunError::NotExclusive { path, reason: reason.clone() }.failure().message);
        }
        Ok(reason.is_none())
    }

    /// Opens the write file for writing in place, or creates a new one if the old one may not be overwritten.
    fn open_write_file(&mut self, folder: &Folder, context: &TimedFs<'_>) -> Result<OpenFile, RunError> {
        // The server is asked for the link count only once a minute, because a request for each write would add
        // load to a busy share. The attributes that opening returns are checked every time.
        let now_ns = monotonic_ns();
        let is_due =
            self.links_checked_ns.is_none_or(|checked_ns| now_ns - checked_ns >= LINK_CHECK_INTERVAL_NS);
        if self.has_reliable_link_counts && is_due {
            self.links_checked_ns = Some(now_ns);
        }
        if self.has_reliable_link_counts && (!is_due || self.may_write(folder, WRITE_FILE.name, context)?) {
            match context.open_in_place(folder, WRITE_FILE.name, None) {
                Err(error @ RunError::NotExclusive { .. }) => self.warning = Some(error.failure().message),
                opened => return opened,
            }
        }
        let file = recreate_file(folder, WRITE_FILE.name, context)?;
        // The new file is filled and synced, so that the measured write overwrites existing bytes as in all other
        // slots.
        context.write_all(&file, &[0; REQUEST_BYTES], 0)?;
        context.sync(&file)?;
        Ok(file)
    }

    /// Returns the device number of the file system that contains the files.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Opens the file for a request of this kind. Returns `None` for a read if the current pass has no unread
    /// block.
    pub fn prepare(
        &mut self,
        kind: ProbeKind,
        context: &TimedFs<'_>,
    ) -> Result<Option<PreparedProbe>, RunError> {
        let offset = match kind {
            ProbeKind::Read => match self.next_read_index() {
                Some(index) => index * self.stride,
                None => return Ok(None),
            },
            ProbeKind::Getattr => 0,
            ProbeKind::WriteSync => self.next_write(),
        };
        let folder = self.folder(context)?;
        let file = match kind {
            ProbeKind::Getattr | ProbeKind::Read => context.open(&folder, READ_FILE.name, Access::Read)?,
            ProbeKind::WriteSync => self.open_write_file(&folder, context)?,
        };
        let mut bytes = Box::new([0; REQUEST_BYTES]);
        match kind {
            ProbeKind::Getattr => {}
            ProbeKind::Read => context.disable_read_ahead(&file),
            ProbeKind::WriteSync => self.content(WRITE_FILE).fill(offset, &mut bytes[..]),
        }
        Ok(Some(PreparedProbe { kind, folder, file, offset, bytes }))
    }

    /// Verifies the bytes that a read request returned.
    ///
    /// # Errors
    ///
    /// [`RunError::Damaged`] if they differ from what was written.
    pub fn verify(&self, request: &PreparedProbe) -> Result<(), RunError> {
        let difference = match request.kind {
            ProbeKind::Read => self.content(READ_FILE).first_difference(request.offset, &request.bytes[..]),
            ProbeKind::Getattr | ProbeKind::WriteSync => None,
        };
        match difference {
            None => Ok(()),
            Some(offset) => {
                let detail = format!("byte {offset} differs from what was written");
                Err(RunError::damaged(request.file.path(), detail))
            }
        }
    }

    /// Returns whether the read file has its full size, or is not used.
    pub fn is_complete(&self) -> bool {
        self.built_bytes >= self.plan.read_file_bytes || !self.plan.kinds.contains(&ProbeKind::Read)
    }

    /// Grows the read file by one step, unless too little space would remain free.
    pub fn grow(&mut self, context: &TimedFs<'_>) -> Result<GrowthOutcome, RunError> {
        let folder = self.folder(context)?;
        let space = context.space(&folder)?;
        let min_free = self.plan.reserve.bytes_of(space.total_bytes);
        if space.free_bytes < min_free.saturating_add(GROWTH_BYTES) {
            return Ok(GrowthOutcome::NoSpace(no_space_message(&self.target, space.free_bytes, min_free)));
        }
        if self.has_reliable_link_counts && !self.may_write(&folder, READ_FILE.name, context)? {
            self.recreate_read_file(&folder, context)?;
        }
        let file = context.open_in_place(&folder, READ_FILE.name, None)?;
        let end = (self.built_bytes + GROWTH_BYTES).min(self.plan.read_file_bytes);
        let written = self.write(&file, self.built_bytes..end, context).and_then(|()| context.sync(&file));
        context.close(file)?;
        written?;
        self.built_bytes = end;
        Ok(GrowthOutcome::Grown)
    }

    /// Writes a range of the read file.
    fn write(&self, file: &OpenFile, part: Range<u64>, context: &TimedFs<'_>) -> Result<(), RunError> {
        let content = self.content(READ_FILE);
        // Written in small chunks, so that an idle worker needs no large buffer.
        let mut bytes = [0; WRITE_CHUNK_BYTES];
        for offset in part.clone().step_by(WRITE_CHUNK_BYTES) {
            let bytes = &mut bytes[..WRITE_CHUNK_BYTES.min((part.end - offset) as usize)];
            content.fill(offset, bytes);
            context.write_all(file, bytes, offset)?;
        }
        Ok(())
    }

    /// Evicts the read file and starts a new pass over its existing blocks, if the last pass is complete.
    pub fn start_pass_if_done(&mut self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let is_done = self.pass.is_none_or(|pass| pass.next >= pass.length);
        match is_done && self.built_bytes > 0 && self.plan.kinds.contains(&ProbeKind::Read) {
            true => self.start_pass(context),
            false => Ok(()),
        }
    }

    fn start_pass(&mut self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let folder = self.folder(context)?;
        context.evict_by_name(&folder, READ_FILE.name, self.built_bytes)?;
        self.salt = self.salt.wrapping_add(1);
        let seed = draw(self.plan.seed, PASS_STREAM, self.salt);
        self.pass = Some(ReadPass { seed, length: self.built_bytes / self.stride, next: 0 });
        Ok(())
    }

    fn next_read_index(&mut self) -> Option<u64> {
        let pass = self.pass.as_mut().filter(|pass| pass.next < pass.length)?;
        pass.next += 1;
        Some(shuffled_index(pass.seed, PASS_STREAM, pass.length, pass.next - 1))
    }

    /// Returns the content offset of the next write. Every write has different content, so that no server can skip
    /// a write of identical bytes.
    fn next_write(&mut self) -> u64 {
        self.writes = self.writes.wrapping_add(1);
        (self.writes % (1 << 40)) * REQUEST_BYTES as u64
    }

    fn content(&self, file: ProbeFile) -> Content {
        Content::new(self.seed, file.content)
    }

    /// Opens the probe's folder, starting at the target's path.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] if another file system is mounted at the target's path now.
    fn folder(&self, context: &TimedFs<'_>) -> Result<Folder, RunError> {
        let target = context.open_folder_path(&self.target)?;
        let sandbox = context.open_folder(&target, &self.sandbox)?;
        if sandbox.device()? != self.device {
            return Err(file_system_changed(&self.target));
        }
        context.open_folder(&sandbox, FOLDER_NAME)
    }
}

/// Removes a file and creates a new one with the same name. Further hard links of the old file keep its content.
fn recreate_file(folder: &Folder, name: &CStr, context: &TimedFs<'_>) -> Result<OpenFile, RunError> {
    context.unlink(folder, name)?;
    context.create(folder, name)
}

/// Returns the error for a target whose path now belongs to a different file system than before.
pub fn file_system_changed(target: &Path) -> RunError {
    RunError::refused(
        target,
        "a different file system than the measured one is mounted there now",
        "Mount the share again; the latency probe continues with the next worker",
    )
}

fn no_space_message(target: &Path, free: u64, min_free: u64) -> String {
    format!(
        "{}: {:.1} MB are free and {:.1} MB have to stay free, so the latency probe cannot enlarge its file. Free space on \
         the target; until then the probe reads the existing part of the file",
        target.display(),
        free as f64 / 1e6,
        min_free as f64 / 1e6
    )
}

impl PreparedProbe {
    /// Makes the measured call.
    pub fn execute(&mut self, context: &TimedFs<'_>) -> Result<(), RunError> {
        match self.kind {
            ProbeKind::Getattr => context.getattr(&self.folder, READ_FILE.name).map(drop),
            ProbeKind::Read => match context.read_full(&self.file, &mut self.bytes[..], self.offset)? {
                REQUEST_BYTES => Ok(()),
                _ => Err(RunError::damaged(
                    self.file.path(),
                    "it is shorter than when it was created".to_owned(),
                )),
            },
            ProbeKind::WriteSync => {
                context.write_all(&self.file, &self.bytes[..], 0)?;
                context.sync(&self.file).map(drop)
            }
        }
    }

    /// Closes the file of the request.
    pub fn close(self, context: &TimedFs<'_>) -> Result<(), RunError> {
        context.close(self.file)
    }
}

#[cfg(test)]
mod tests;
