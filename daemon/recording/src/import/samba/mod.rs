//! The log of Samba's module `vfs_full_audit`.
//!
//! Format: samba-team/samba, source3/modules/vfs_full_audit.c, `do_log`: `PREFIX|OPERATION|ok|ARGUMENTS` or
//! `PREFIX|OPERATION|fail (REASON)|ARGUMENTS`, after `smbd_audit: ` in syslog, or on a line of its own below Samba's usual head with
//! time and level. It has no durations; offsets and lengths stand in `strict_lock_check`, just before a read or write.
//!
//! A log of all operations shows how the server works, not what a client asked for: it opens each folder on the way to a file and
//! looks at attributes many times. What a client asks for begins with `create_file`.

mod message;

use std::collections::HashMap;
use std::time::Duration;

use self::message::{Message, Range, checked_range, head_of_samba, message};
use super::Importer;
use super::numbers::syslog_date;
use super::paths::absolute;
use super::whole_files::{MAX_OPEN, open_mode};
use crate::{Access, ActionResult, CallTime, CreateMode, Note, OpenMode, TraceAction, TraceSink};

/// Beginning of each message of the module.
const MARK: &str = "smbd_audit: ";
/// Length that a read or write is taken to have, in bytes, if the log does not have
/// `strict_lock_check`.
const ASSUMED_LENGTH: u64 = 64 << 10;
/// Bits of an access mask that allow to write: `FILE_WRITE_DATA`, `FILE_APPEND_DATA`, `GENERIC_WRITE`, `GENERIC_ALL`.
const WRITE_ACCESS: u64 = 0x2 | 0x4 | 0x4000_0000 | 0x1000_0000;
/// Bits that allow to read: `FILE_READ_DATA`, `GENERIC_READ`, `GENERIC_ALL`.
const READ_ACCESS: u64 = 0x1 | 0x8000_0000 | 0x1000_0000;

/// Reads the log of `vfs_full_audit`.
pub struct SambaAuditImporter {
    /// Path of the share on the server, for names without a folder.
    share: Vec<u8>,
    /// Openings by session and path, the last one at the end.
    open: HashMap<OpenKey, Vec<Opening>>,
    /// Number of all openings in `open`.
    openings: usize,
    /// Range that the server checked for locks: the next transfer.
    ranges: HashMap<OpenKey, Range>,
    sessions: HashMap<String, u64>,
    /// True if the log has `create_file`; then `open` and `openat` are the server's own.
    has_create_file: bool,
    next_handle: u64,
    now: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OpenKey {
    session: u64,
    path: Vec<u8>,
}

/// An opening: of a client, or of the server for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Client(ClientOpening),
    Server,
}

impl Opening {
    /// Returns the number of an opening of a client.
    fn handle(self) -> Option<u64> {
        if let Self::Client(client) = self { Some(client.handle) } else { None }
    }
}

/// Opening of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClientOpening {
    handle: u64,
    is_folder: bool,
}

/// A message with its session and time.
struct Context<'line> {
    message: &'line Message<'line>,
    call_time: CallTime,
    sink: &'line mut dyn TraceSink,
}

impl Context<'_> {
    fn emit(&mut self, action: TraceAction<'_>) {
        self.call_time.emit_result(self.sink, action, self.message.result);
    }
}

impl SambaAuditImporter {
    /// Creates an importer; `share` is the path of the share on the server, for logs whose names have no folder.
    pub fn new(share: &[u8]) -> Self {
        Self {
            share: share.to_vec(),
            open: HashMap::new(),
            openings: 0,
            ranges: HashMap::new(),
            sessions: HashMap::new(),
            has_create_file: false,
            next_handle: 0,
            now: Duration::ZERO,
        }
    }

    fn path(&self, argument: Option<&&str>) -> Option<Vec<u8>> {
        absolute(Some(&self.share), argument?.as_bytes())
    }

    fn event(&mut self, context: &mut Context<'_>) {
        use TraceAction as A;
        let arguments = &context.message.arguments;
        let first = self.path(arguments.first());
        match context.message.operation {
            "create_file" => self.create_file(context),
            "open" | "openat" => self.open_file(context),
            "strict_lock_check" => self.keep_range(context),
            "close" => self.close(context),
            "pread" | "read" | "pread_send" | "sendfile" => self.transfer(context, Access::Read),
            "pwrite" | "write" | "pwrite_send" | "recvfile" => self.transfer(context, Access::Write),
            "fsync" | "fsync_send" => self.on_handle(context, |handle| A::Sync { handle }),
            "lock" | "brl_lock_windows" | "brl_unlock_windows" => {
                self.on_handle(context, |handle| A::Lock { handle });
            }
            "opendir" | "fdopendir" => self.list(context),
            "chmod" | "fchmod" | "chown" | "fchown" | "lchown" | "ntimes" | "fntimes" | "utime"
            | "chflags" | "fchflags" => on(context, first, |path| A::SetAttributes { path }),
            "setxattr" | "fsetxattr" | "removexattr" | "fremovexattr" if !self.has_create_file => {
                on(context, first, |path| A::WriteExtendedAttribute { path, length: 0 });
            }
            "mkdir" | "mkdirat" => on(context, first, |path| A::CreateFolder { path }),
            "rmdir" => on(context, first, |path| A::RemoveFolder { path }),
            "unlink" | "unlinkat" => self.remove(context),
            "readlink" | "readlinkat" => on(context, first, |path| A::ReadLink { path }),
            "disk_free" => on(context, first, |path| A::FreeSpace { path }),
            "symlink" | "symlinkat" => {
                let link = self.path(arguments.get(1));
                on(context, link, |path| A::SymbolicLink { path });
            }
            "rename" | "renameat" | "link" | "linkat" => self.two_paths(context),
            "ftruncate" => unknown(context, "ftruncate", first),
            "fallocate" => unknown(context, "fallocate", first),
            "offload_write_send" | "copy_chunk_send" => unknown(context, "offload_write", first),
            // Attributes that the server looks at for itself and for a client alike, its other own work, and ends of operations that are counted at their beginning.
            _ => {}
        }
    }

    fn two_paths(&mut self, context: &mut Context<'_>) {
        // A name may hold the separator; then it is unknown where the first path ends.
        let arguments = &context.message.arguments;
        let paths = (self.path(arguments.first()), self.path(arguments.get(1)), arguments.len());
        let (Some(from), Some(to), 2) = paths else { return context.sink.note(Note::Damaged) };
        let (from, to) = (from.as_slice(), to.as_slice());
        if context.message.operation.starts_with("rename") {
            context.emit(TraceAction::Rename { from, to });
            // The file is closed under its new name, and so is one that had it before.
            let session = context.call_time.thread;
            let key = |path: &[u8]| OpenKey { session, path: path.to_vec() };
            if context.message.result == ActionResult::Done
                && let Some(open) = self.open.remove(&key(from))
            {
                self.open.entry(key(to)).or_default().extend(open);
            }
        } else {
            context.emit(TraceAction::HardLink { from, to });
        }
    }

    /// Handles `create_file|ok|0x12019f|file|open_if|/path`.
    fn create_file(&mut self, context: &mut Context<'_>) {
        let [mask, sort, disposition, path @ ..] = context.message.arguments.as_slice() else {
            return context.sink.note(Note::Damaged);
        };
        let mask = super::numbers::number(mask.as_bytes()).unwrap_or(0);
        let access = match (mask & READ_ACCESS != 0, mask & WRITE_ACCESS != 0) {
            (true, true) => Access::ReadWrite,
            (false, true) => Access::Write,
            _ => Access::Read,
        };
        let create = match *disposition {
            "create" => CreateMode::Exclusive,
            "open_if" | "overwrite_if" | "supersede" => CreateMode::IfAbsent,
            _ => CreateMode::Never,
        };
        let truncate = matches!(*disposition, "overwrite" | "overwrite_if" | "supersede");
        let folder = *sort == "dir";
        if !std::mem::replace(&mut self.has_create_file, true) {
            self.close_openings_of_server(context);
        }
        let path = path.join("|");
        if folder && create != CreateMode::Never && context.message.result == ActionResult::Done {
            // The server logs how it makes the folder: `mkdirat`.
            return;
        }
        self.opened(context, &path, OpenMode { access, create, truncate, folder });
    }

    /// Closes what was opened before the log showed that `openat` is the server's own.
    fn close_openings_of_server(&mut self, context: &mut Context<'_>) {
        let openings = self.open.values_mut().flatten();
        let openings = openings.map(|opening| std::mem::replace(opening, Opening::Server));
        let handles = openings.filter_map(Opening::handle).collect();
        context.call_time.close_all(context.sink, handles);
    }

    /// Keeps an opening. If there are too many, all others are closed.
    fn keep(&mut self, context: &mut Context<'_>, key: OpenKey, opening: Opening) {
        if self.openings >= MAX_OPEN {
            let openings = std::mem::take(&mut self.open).into_values().flatten();
            context.call_time.close_all(context.sink, openings.filter_map(Opening::handle).collect());
            self.ranges.clear();
            self.openings = 0;
        }
        self.openings += 1;
        self.open.entry(key).or_default().push(opening);
    }

    /// Handles `open|ok|r|/path`.
    fn open_file(&mut self, context: &mut Context<'_>) {
        let [access, path @ ..] = context.message.arguments.as_slice() else {
            return context.sink.note(Note::Damaged);
        };
        let path = path.join("|");
        if self.has_create_file {
            return self.opened_by_server(context, &path);
        }
        // The log does not show whether a file was created: one that nothing read before it was written is taken as new.
        let mode = match *access {
            "w" => OpenMode { create: CreateMode::IfAbsent, ..open_mode(Access::ReadWrite) },
            _ => open_mode(Access::Read),
        };
        self.opened(context, &path, mode);
    }

    fn opened_by_server(&mut self, context: &mut Context<'_>, path: &str) {
        let done = context.message.result == ActionResult::Done;
        if let Some(key) = self.key_of(context, path).filter(|_| done) {
            self.keep(context, key, Opening::Server);
        }
    }

    fn opened(&mut self, context: &mut Context<'_>, path: &str, mode: OpenMode) {
        let Some(key) = self.key_of(context, path) else { return };
        self.next_handle += 1;
        let handle = (context.message.result == ActionResult::Done).then_some(self.next_handle);
        context.emit(TraceAction::Open { path: &key.path, mode, handle });
        if let Some(handle) = handle {
            // The server has opened the file for this client just before.
            if self.open.get(&key).and_then(|openings| openings.last()) == Some(&Opening::Server) {
                self.take_opening(&key);
            }
            let opening = ClientOpening { handle, is_folder: mode.folder };
            self.keep(context, key, Opening::Client(opening));
        }
    }

    fn key_of(&self, context: &Context<'_>, path: &str) -> Option<OpenKey> {
        Some(OpenKey { session: context.call_time.thread, path: self.path(Some(&path))? })
    }

    fn key(&self, context: &Context<'_>) -> Option<OpenKey> {
        self.key_of(context, &context.message.arguments.join("|"))
    }

    fn close(&mut self, context: &mut Context<'_>) {
        let Some(key) = self.key(context) else { return };
        let opening = self.take_opening(&key);
        if let Some(Opening::Client(ClientOpening { handle, .. })) = opening {
            context.emit(TraceAction::Close { handle });
        }
    }

    fn take_opening(&mut self, key: &OpenKey) -> Option<Opening> {
        let openings = self.open.get_mut(key)?;
        let opening = openings.pop();
        self.openings -= usize::from(opening.is_some());
        if openings.is_empty() {
            self.open.remove(key);
            self.ranges.remove(key);
        }
        opening
    }

    /// Returns the last opening of a client; the server's own are not those that are read and written.
    fn client(&self, key: &OpenKey) -> Option<ClientOpening> {
        let client =
            |opening: &Opening| if let Opening::Client(client) = opening { Some(*client) } else { None };
        self.open.get(key)?.iter().rev().find_map(client)
    }

    fn remove(&mut self, context: &mut Context<'_>) {
        let Some(key) = self.key(context) else { return };
        let path = key.path.as_slice();
        let is_folder = self.client(&key).is_some_and(|client| client.is_folder);
        context.emit(if is_folder {
            TraceAction::RemoveFolder { path }
        } else {
            TraceAction::Remove { path }
        });
    }

    fn on_handle(&mut self, context: &mut Context<'_>, action: fn(u64) -> TraceAction<'static>) {
        match self.key(context).and_then(|key| self.client(&key)) {
            Some(client) => context.emit(action(client.handle)),
            None => context.sink.note(Note::UnknownHandle),
        }
    }

    fn keep_range(&mut self, context: &Context<'_>) {
        let argument = context.message.arguments.join("|");
        let Some(checked) = checked_range(&argument) else { return };
        if let Some(key) = self.key_of(context, checked.path).filter(|key| self.open.contains_key(key)) {
            self.ranges.insert(key, checked.range);
        }
    }

    fn transfer(&mut self, context: &mut Context<'_>, access: Access) {
        let key = self.key(context);
        let client = key.as_ref().and_then(|key| self.client(key));
        let (Some(key), Some(ClientOpening { handle, .. })) = (key, client) else {
            return context.sink.note(Note::UnknownHandle);
        };
        let range = self.ranges.remove(&key);
        let offset = range.map(|range| range.offset);
        let length = range.map_or(ASSUMED_LENGTH, |range| range.length);
        context.emit(match access {
            Access::Read => TraceAction::Read { handle, offset, length, read: length },
            _ => TraceAction::Write { handle, offset, length },
        });
    }

    fn list(&mut self, context: &mut Context<'_>) {
        let Some(key) = self.key(context) else { return };
        match self.open.get(&key).and_then(|openings| openings.last()) {
            Some(Opening::Client(client)) => {
                context.emit(TraceAction::List { handle: client.handle, entries: None });
            }
            // The server looks for a name in other spelling; `closedir`, which ends it, has no path.
            Some(Opening::Server) => drop(self.take_opening(&key)),
            None => self.list_at_once(context, &key.path),
        }
    }

    fn list_at_once(&mut self, context: &mut Context<'_>, path: &[u8]) {
        self.next_handle += 1;
        let handle = self.next_handle;
        let done = context.message.result == ActionResult::Done;
        let mode = OpenMode { folder: true, ..open_mode(Access::Read) };
        context.emit(TraceAction::Open { path, mode, handle: done.then_some(handle) });
        if done {
            context.emit(TraceAction::List { handle, entries: None });
            context.emit(TraceAction::Close { handle });
        }
    }
}

fn on(
    context: &mut Context<'_>,
    path: Option<Vec<u8>>,
    action: impl for<'path> Fn(&'path [u8]) -> TraceAction<'path>,
) {
    match path {
        Some(path) => context.emit(action(&path)),
        None => context.sink.note(Note::Damaged),
    }
}

fn unknown(context: &mut Context<'_>, name: &'static str, path: Option<Vec<u8>>) {
    context.sink.note(Note::UnknownCall { name, path: path.as_deref() });
}

impl Importer for SambaAuditImporter {
    fn line(&mut self, line: &[u8], sink: &mut dyn TraceSink) {
        let text = String::from_utf8_lossy(line);
        if let Some(time) = head_of_samba(&text) {
            self.now = time;
            return;
        }
        // A file of Samba itself has no syslog before the messages.
        let start = text.find(MARK).map_or(0, |start| start + MARK.len());
        let (header, body) = text.split_at(start);
        if let Some(time) = syslog_date(header) {
            self.now = time;
        }
        let Some(message) = message(body.trim_start()) else {
            // The log of a server has lines of other programs.
            if !header.is_empty() {
                sink.note(Note::Damaged);
            }
            return;
        };
        let number = self.sessions.len() as u64;
        let thread = *self.sessions.entry(message.prefix.to_owned()).or_insert(number);
        let call_time = CallTime::beginning(thread, self.now);
        self.event(&mut Context { message: &message, call_time, sink });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::import;
    use crate::import::testing::Written;

    #[test]
    fn session_becomes_events() {
        let mut written = Written::default();
        let session: &[u8] = include_bytes!("../../../tests/fixtures/samba-full-audit.log");
        import(&mut SambaAuditImporter::new(b"/srv/docs"), &mut &*session, &mut written).unwrap();
        let expected: Vec<&str> =
            include_str!("../../../tests/fixtures/samba-full-audit.events").lines().collect();
        assert_eq!(written.events, expected);
        assert_eq!(written.notes, ["unknown ftruncate /srv/docs/report.docx", "Damaged", "Damaged"]);
    }

    // Samba 4.17.12, `full_audit:success = all`, while smbclient did: cd docs, ls, get photo.jpg (300,000 bytes), put new.txt
    // (6 bytes), rename, mkdir, rmdir, allinfo notes.txt, del newer.txt, get missing.txt. Users, addresses and the path of the
    // share are replaced.
    #[test]
    fn log_of_all_operations_gives_what_the_client_did() {
        let mut written = Written::default();
        let log: &[u8] = include_bytes!("../../../tests/fixtures/samba-4.17-all.log");
        import(&mut SambaAuditImporter::new(b"/srv/share"), &mut &*log, &mut written).unwrap();
        let expected: Vec<&str> =
            include_str!("../../../tests/fixtures/samba-4.17-all.events").lines().collect();
        assert_eq!(written.events, expected);
        assert_eq!(written.notes, [""; 0]);
    }

    #[test]
    fn openings_without_an_end_are_closed_when_there_are_too_many() {
        let opening = "bob|docs|create_file|ok|0x1|file|open|a.txt\n";
        let mut written = Written::default();
        let log = opening.repeat(MAX_OPEN + 1);
        import(&mut SambaAuditImporter::new(b"/srv/docs"), &mut log.as_bytes(), &mut written).unwrap();
        assert_eq!(written.events.iter().filter(|event| event.starts_with("Close")).count(), MAX_OPEN);
    }

    #[test]
    fn log_without_create_file_is_read_by_its_openings() {
        let mut written = Written::default();
        let log = b"Jan 15 14:23:45 nas smbd_audit: bob|10.0.0.9|docs|open|ok|r|a.txt\nJan 15 14:23:46 nas smbd_audit: bob|10.0.0.9|docs|close|ok|a.txt";
        import(&mut SambaAuditImporter::new(b"/srv/docs"), &mut &log[..], &mut written).unwrap();
        assert!(written.events[0].starts_with("/srv/docs/a.txt Open"), "{:?}", written.events);
        assert_eq!(written.events[1], "Close { handle: 1 } Done");
    }
}
