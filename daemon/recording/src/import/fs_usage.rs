//! The text of `fs_usage -w -f filesys` on macOS.
//!
//! Format: Apple, apple-oss-distributions/system_cmds, tag system_cmds-1026.100.5, fs_usage/fs_usage.c, lines 533 to 674 (names)
//! and 1665 to 2965 (`format_print`). A line is shown when its call ends; it has the command and the thread, not the process,
//! and for `rename` and `link` the first path only.

use std::collections::HashMap;
use std::time::Duration;

use super::Importer;
use super::numbers::{DayClock, number, seconds};
use super::order::EventOrder;
use super::paths::{absolute, outside_data_volume};
use super::whole_files::MAX_OPEN;
use crate::{Access, ActionResult, CallTime, CreateMode, Note, OpenMode, TraceAction, TraceSink};

/// Length in bytes from which a relative path is taken for the end of a longer one. Of a long path the kernel keeps the end alone
/// (apple-oss-distributions/xnu, bsd/vfs/vfs_lookup.c, `kdebug_lookup`); on macOS 15.3.1 and 26.5.2 that were 144 to 156 bytes
/// (yottayoshida/sideeye, spike/fsusage/RESULTS.md).
const MIN_CUT_BYTES: usize = 120;

/// Largest number of events that wait for one that began earlier.
const MAX_WAITING: usize = 1024;

/// Reads the text of `fs_usage -w -f filesys`.
#[derive(Default)]
pub struct FsUsageImporter {
    /// Descriptors by command, because the text does not show processes.
    files: HashMap<Descriptor, OpenFile>,
    folders: HashMap<Vec<u8>, Vec<u8>>,
    /// Descriptor that each thread opened last: `getattrlistbulk` is shown without one.
    last_opened: HashMap<u64, u64>,
    next_handle: u64,
    order: EventOrder<Duration, MAX_WAITING>,
    clock: DayClock,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Descriptor {
    command: Vec<u8>,
    number: u64,
}

struct OpenFile {
    handle: u64,
    path: Vec<u8>,
    position: Option<u64>,
}

/// The parts of a line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line<'line> {
    ended: Duration,
    took: Duration,
    name: &'line [u8],
    descriptor: Option<u64>,
    second_descriptor: Option<u64>,
    error: Option<u64>,
    bytes: Option<u64>,
    offset: Option<u64>,
    mode: &'line [u8],
    word: &'line [u8],
    /// Descriptor of the folder of a call such as `openat`; the number of `AT_FDCWD` is negative and gives none.
    folder: Option<u64>,
    path: &'line [u8],
    command: &'line [u8],
    thread: u64,
}

fn parse(text: &[u8]) -> Option<Line<'_>> {
    let (time, rest) = split_word(text)?;
    let (name, rest) = split_word(rest.trim_ascii_start())?;
    let (details, took, program) = split_duration(rest)?;
    let program = program.strip_prefix(b"W ").unwrap_or(program).trim_ascii();
    let point = program.iter().rposition(|byte| *byte == b'.')?;
    let line = Line {
        ended: seconds(time)?,
        took,
        name,
        command: &program[..point],
        thread: number(&program[point + 1..])?,
        ..Line::default()
    };
    Some(with_details(line, details))
}

fn split_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    Some((&text[..end], &text[end..]))
}

/// Splits at the duration, the last word of the form `0.000123`.
fn split_duration(text: &[u8]) -> Option<(&[u8], Duration, &[u8])> {
    let mut end = text.len();
    while let Some(space) = text[..end].iter().rposition(|byte| *byte == b' ') {
        let word = &text[space + 1..end];
        let is_duration = word.len() > 7 && word[word.len() - 7] == b'.';
        if is_duration
            && end < text.len()
            && let Some(took) = seconds(word)
        {
            return Some((&text[..space], took, text[end..].trim_ascii()));
        }
        end = space;
    }
    None
}

/// Returns true for the descriptor of a call that failed on a closed one: Apple prints a signed number, `F=%-3d[%3d]` (`format_print`).
fn is_negative_descriptor(word: &[u8]) -> bool {
    word.strip_prefix(b"F=-").and_then(number).is_some()
}

fn with_details<'line>(mut line: Line<'line>, details: &'line [u8]) -> Line<'line> {
    let mut rest = details.trim_ascii();
    loop {
        let end_of_word = rest.iter().position(|byte| matches!(byte, b' ' | b'[')).unwrap_or(rest.len());
        let word = &rest[..end_of_word];
        let enclosed = |close: u8| rest.iter().position(|byte| *byte == close);
        if let Some(value) = word.strip_prefix(b"F=").and_then(number) {
            let place =
                if line.descriptor.is_none() { &mut line.descriptor } else { &mut line.second_descriptor };
            *place = Some(value);
            rest = &rest[end_of_word..];
        } else if is_negative_descriptor(word) {
            rest = &rest[end_of_word..];
        } else if let Some(value) = word.strip_prefix(b"B=").and_then(number) {
            line.bytes = Some(value);
            rest = &rest[end_of_word..];
        } else if let Some(value) = word.strip_prefix(b"O=").and_then(number) {
            line.offset = Some(value);
            rest = &rest[end_of_word..];
        } else if rest.starts_with(b"[")
            && let Some(end) = enclosed(b']')
        {
            let value = number(rest[1..end].trim_ascii());
            if rest.get(end + 1) == Some(&b'/') {
                line.folder = value;
                line.path = &rest[end + 2..];
                return line;
            }
            line.error = value;
            rest = &rest[end + 1..];
        } else if rest.starts_with(b"(")
            && let Some(end) = enclosed(b')')
        {
            line.mode = &rest[1..end];
            rest = &rest[end + 1..];
        } else if rest.starts_with(b"<")
            && let Some(end) = enclosed(b'>')
        {
            line.word = &rest[1..end];
            rest = &rest[end + 1..];
        } else {
            line.path = rest;
            return line;
        }
        rest = rest.trim_ascii_start();
    }
}

impl Line<'_> {
    fn result(&self) -> ActionResult {
        match self.error {
            None => ActionResult::Done,
            Some(2) => ActionResult::NotFound,
            Some(17) => ActionResult::Exists,
            Some(_) => ActionResult::Failed,
        }
    }

    fn open_mode(&self) -> OpenMode {
        let has = |letter: u8| self.mode.contains(&letter);
        let access = match () {
            () if has(b'R') && has(b'W') => Access::ReadWrite,
            () if has(b'W') => Access::Write,
            () => Access::Read,
        };
        let create = match () {
            () if has(b'C') && has(b'E') => CreateMode::Exclusive,
            () if has(b'C') => CreateMode::IfAbsent,
            () => CreateMode::Never,
        };
        OpenMode { access, create, truncate: has(b'T'), folder: false }
    }

    /// Returns the path; `None` if its beginning is missing. Of a path whose middle was not found, it is the part up to there:
    /// the kernel fills what follows with `>` (apple-oss-distributions/xnu, bsd/vfs/vfs_lookup.c, `kdebug_lookup`).
    fn whole_path(&self) -> Option<&[u8]> {
        let is_fill = |byte: &u8| self.error.is_some() && *byte == b'>';
        let end = self.path.iter().rposition(|byte| !is_fill(byte)).map_or(0, |last| last + 1);
        let path = &self.path[..end];
        if !path.starts_with(b"/") && path.len() >= MIN_CUT_BYTES {
            return None;
        }
        Some(outside_data_volume(path))
    }

    fn descriptor(&self, number: u64) -> Descriptor {
        Descriptor { command: self.command.to_vec(), number }
    }
}

/// A line with the sink for its events.
struct Context<'line, 'order> {
    line: &'line Line<'line>,
    began: Duration,
    sink: &'order mut dyn TraceSink,
}

impl Context<'_, '_> {
    fn emit(&mut self, action: TraceAction<'_>) {
        let took = Some(self.line.took);
        let time = CallTime { took, ..CallTime::beginning(self.line.thread, self.began) };
        // The trace shows no descriptor of a folder.
        time.emit_result(self.sink, action, self.line.result());
    }
}

impl Importer for FsUsageImporter {
    fn line(&mut self, line: &[u8], sink: &mut dyn TraceSink) {
        if line.is_empty() {
            return;
        }
        let Some(line) = parse(line) else { return sink.note(Note::Damaged) };
        let began = self.clock.at(line.ended).saturating_sub(line.took);
        let mut order = std::mem::take(&mut self.order);
        // The trace shows only ends of calls: one that is still unknown may have begun before all that wait.
        order.begin(Duration::ZERO);
        self.call(&mut Context { line: &line, began, sink: &mut order.at(began, sink) });
        self.order = order;
    }

    fn end(&mut self, sink: &mut dyn TraceSink) {
        self.order.finish(sink);
    }
}

impl FsUsageImporter {
    fn call(&mut self, context: &mut Context<'_, '_>) {
        match context.line.name {
            b"open" | b"openat" | b"open_extended" | b"open_dprotected" | b"guarded_open_np"
            | b"guarded_open_dpro" => {
                self.open(context);
            }
            b"close" | b"guarded_close_np" => self.close(context),
            b"read" | b"readv" | b"pread" | b"preadv" => self.transfer(context, Access::Read),
            b"write" | b"writev" | b"pwrite" | b"pwritev" | b"guarded_write_np" | b"guarded_pwrite_np"
            | b"guarded_writev_np" => self.transfer(context, Access::Write),
            b"lseek" => self.seek(context),
            b"dup" | b"dup2" => self.duplicate(context),
            b"fstat" | b"fstat64" | b"fstat_extended" | b"fstat64_extended" | b"fgetattrlist" => {
                self.on_handle(context, |handle| TraceAction::HandleAttributes { handle, found: None });
            }
            b"getdirentries" | b"getdirentries64" | b"getdirentriesattr" => {
                self.on_handle(context, |handle| TraceAction::List { handle, entries: None });
            }
            b"getattrlistbulk" => self.list_last_opened(context),
            b"fsync" | b"fdatasync" => self.on_handle(context, |handle| TraceAction::Sync { handle }),
            b"flock" => self.on_handle(context, |handle| TraceAction::Lock { handle }),
            b"fcntl" => self.control(context),
            b"chdir" | b"fchdir" => self.change_folder(context),
            _ => self.path_call(context),
        }
    }

    fn path_call(&mut self, context: &mut Context<'_, '_>) {
        use TraceAction as A;
        let offset = context.line.offset.unwrap_or(0);
        match context.line.name {
            b"stat" | b"stat64" | b"lstat" | b"lstat64" | b"stat_extended" | b"stat_extended64"
            | b"lstat_extended" | b"lstat_extended64" | b"access" | b"access_extended" | b"getattrlist"
            | b"getattrlistat" | b"fstatat" | b"fstatat64" | b"pathconf" => {
                self.on_path(context, |path| A::Attributes { path, found: None })
            }
            b"chmod" | b"chmod_extended" | b"chmodat" | b"chown" | b"lchown" | b"chownat" | b"chflags"
            | b"utimes" | b"setattrlist" | b"fchmod" | b"fchmod_extended" | b"fchown" | b"fchflags"
            | b"futimes" | b"fsetattrlist" => {
                self.on_path(context, |path| A::SetAttributes { path });
            }
            b"getxattr" | b"listxattr" | b"fgetxattr" | b"flistxattr" => {
                self.on_path(context, |path| A::ReadExtendedAttribute { path });
            }
            b"setxattr" | b"removexattr" | b"fsetxattr" | b"fremovexattr" => {
                self.on_path(context, |path| A::WriteExtendedAttribute { path, length: 0 });
            }
            b"truncate" | b"ftruncate" => self.on_path(context, |path| A::SetLength { path, length: offset }),
            b"unlink" | b"unlinkat" | b"delete-Carbon" => self.on_path(context, |path| A::Remove { path }),
            b"rmdir" => self.on_path(context, |path| A::RemoveFolder { path }),
            b"mkdir" | b"mkdirat" | b"mkdir_extended" => {
                self.on_path(context, |path| A::CreateFolder { path })
            }
            b"symlink" | b"symlinkat" => self.on_path(context, |path| A::SymbolicLink { path }),
            b"readlink" | b"readlinkat" => self.on_path(context, |path| A::ReadLink { path }),
            b"statfs" | b"statfs64" | b"fstatfs" | b"fstatfs64" => {
                self.on_path(context, |path| A::FreeSpace { path })
            }
            b"rename" | b"renameat" | b"renamex_np" | b"renameatx_np" => self.unknown(context, "rename"),
            b"link" | b"linkat" => self.unknown(context, "link"),
            b"mmap" => self.unknown(context, "mmap"),
            b"copyfile" | b"clonefileat" | b"fclonefileat" => self.unknown(context, "copyfile"),
            b"exchangedata" => self.unknown(context, "exchangedata"),
            b"searchfs" => self.unknown(context, "searchfs"),
            b"aio_read" | b"aio_write" | b"lio_listio" => self.unknown(context, "aio"),
            // Page-ins, disk accesses, sockets and all that is no call on a file.
            _ => {}
        }
    }

    /// Returns the path of a line: its own, or that of its descriptor.
    fn path(&self, line: &Line<'_>) -> Option<Vec<u8>> {
        if line.path.is_empty() {
            return self.files.get(&line.descriptor(line.descriptor?)).map(|file| file.path.clone());
        }
        let of_folder = line.folder.and_then(|number| self.files.get(&line.descriptor(number)));
        let folder = of_folder.map(|file| &file.path).or_else(|| self.folders.get(line.command));
        absolute(folder.map(Vec::as_slice), line.whole_path()?)
    }

    fn open(&mut self, context: &mut Context<'_, '_>) {
        let line = context.line;
        let Some(path) = self.path(line).filter(|_| !line.path.is_empty()) else {
            return context.sink.note(Note::UnknownHandle);
        };
        let opened = line.descriptor.filter(|_| line.error.is_none());
        let handle = opened.map(|_| {
            self.next_handle += 1;
            self.next_handle
        });
        context.emit(TraceAction::Open { path: &path, mode: line.open_mode(), handle });
        let (Some(number), Some(handle)) = (opened, handle) else { return };
        self.last_opened.insert(line.thread, number);
        let position = (!line.mode.contains(&b'A')).then_some(0);
        if self.files.len() >= MAX_OPEN {
            let handles = self.files.drain().map(|(_, file)| file.handle).collect();
            CallTime::beginning(line.thread, context.began).close_all(context.sink, handles);
        }
        let replaced = self.files.insert(line.descriptor(number), OpenFile { handle, path, position });
        if let Some(replaced) = replaced {
            context.emit(TraceAction::Close { handle: replaced.handle });
        }
    }

    fn close(&mut self, context: &mut Context<'_, '_>) {
        let Some(number) = context.line.descriptor else { return };
        if let Some(file) = self.files.remove(&context.line.descriptor(number)) {
            context.emit(TraceAction::Close { handle: file.handle });
        }
    }

    fn file(&mut self, context: &mut Context<'_, '_>) -> Option<&mut OpenFile> {
        let file = self.files.get_mut(&context.line.descriptor(context.line.descriptor?));
        if file.is_none() {
            context.sink.note(Note::UnknownHandle);
        }
        file
    }

    fn on_handle(&mut self, context: &mut Context<'_, '_>, action: fn(u64) -> TraceAction<'static>) {
        if let Some(handle) = self.file(context).map(|file| file.handle) {
            context.emit(action(handle));
        }
    }

    fn on_path(
        &self,
        context: &mut Context<'_, '_>,
        action: impl for<'path> Fn(&'path [u8]) -> TraceAction<'path>,
    ) {
        match self.path(context.line) {
            Some(path) => context.emit(action(&path)),
            None => context.sink.note(Note::UnknownHandle),
        }
    }

    fn unknown(&self, context: &mut Context<'_, '_>, name: &'static str) {
        let path = self.path(context.line);
        context.sink.note(Note::UnknownCall { name, path: path.as_deref() });
    }

    fn transfer(&mut self, context: &mut Context<'_, '_>, access: Access) {
        let bytes = context.line.bytes.unwrap_or(0);
        let given = context.line.offset;
        let Some(file) = self.file(context) else { return };
        let (handle, offset) = (file.handle, given.or(file.position));
        if given.is_none() {
            file.position = file.position.map(|position| position.saturating_add(bytes));
        }
        context.emit(match access {
            Access::Read => TraceAction::Read { handle, offset, length: bytes, read: bytes },
            _ => TraceAction::Write { handle, offset, length: bytes },
        });
    }

    fn seek(&mut self, context: &mut Context<'_, '_>) {
        let (offset, failed) = (context.line.offset, context.line.error.is_some());
        if let Some(file) = self.file(context).filter(|_| !failed) {
            file.position = offset;
        }
    }

    /// Follows a duplicate as the same opening; the first of both that is closed ends it, as the text shows no more.
    fn duplicate(&mut self, context: &mut Context<'_, '_>) {
        let line = context.line;
        let (Some(old), Some(new)) = (line.descriptor, line.second_descriptor) else { return };
        if let Some(file) = self.files.remove(&line.descriptor(old)) {
            self.files.insert(line.descriptor(new), file);
        }
    }

    fn list_last_opened(&mut self, context: &mut Context<'_, '_>) {
        let number = self.last_opened.get(&context.line.thread);
        let file = number.and_then(|number| self.files.get(&context.line.descriptor(*number)));
        match file.map(|file| file.handle) {
            Some(handle) => context.emit(TraceAction::List { handle, entries: None }),
            None => context.sink.note(Note::UnknownHandle),
        }
    }

    fn control(&mut self, context: &mut Context<'_, '_>) {
        match context.line.word {
            b"FULLFSYNC" | b"BARRIERFSYNC" => self.on_handle(context, |handle| TraceAction::Sync { handle }),
            b"SETLK" | b"SETLKW" | b"OFD_SETLK" | b"OFD_SETLKW" => {
                self.on_handle(context, |handle| TraceAction::Lock { handle });
            }
            _ => {}
        }
    }

    fn change_folder(&mut self, context: &mut Context<'_, '_>) {
        if context.line.error.is_none()
            && let Some(path) = self.path(context.line)
        {
            self.folders.insert(context.line.command.to_vec(), path);
        }
    }
}

#[cfg(test)]
mod tests;
