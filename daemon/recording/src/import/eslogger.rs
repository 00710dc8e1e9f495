//! The JSON of `eslogger` on macOS: one event of Endpoint Security a line.
//!
//! Members as in Apple's <EndpointSecurity/ESMessage.h>: `es_event_open_t` and others, printed with their own names. There are no
//! offsets, lengths or durations: a file that is opened for reading counts as read whole, one that is closed modified as
//! written whole.

use std::collections::HashMap;

use serde_json::Value;

use super::Importer;
use super::numbers::date;
use super::paths::outside_data_volume;
use super::whole_files::{MAX_OPEN, WholeFile, open_mode};
use crate::trace::Direction;
use crate::{Access, CallTime, CreateMode, FoundFile, Note, OpenMode, TraceAction, TraceSink};

/// Bits of `st_mode` that are the sort of a file, and the sorts.
const SORT: u64 = 0o170_000;
const FOLDER: u64 = 0o040_000;
const LINK: u64 = 0o120_000;
const REGULAR: u64 = 0o100_000;

/// Reads the JSON of `eslogger`.
#[derive(Default)]
pub struct EsloggerImporter {
    open: HashMap<OpenKey, Vec<OpenFile>>,
    /// Number of all files in `open`.
    open_files: usize,
    next_handle: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OpenKey {
    process: u64,
    path: Vec<u8>,
}

struct OpenFile {
    handle: u64,
    access: Access,
    size: Option<u64>,
    /// No event has said yet that the process that created the file opened it.
    is_only_created: bool,
}

impl Importer for EsloggerImporter {
    fn line(&mut self, line: &[u8], sink: &mut dyn TraceSink) {
        if line.is_empty() {
            return;
        }
        let parsed = serde_json::from_slice::<Value>(line).ok();
        let call_time = parsed.as_ref().and_then(call_time);
        let event = parsed.as_ref().and_then(|message| message["event"].as_object()?.iter().next());
        let (Some(message), Some(call_time), Some((name, event))) = (&parsed, call_time, event) else {
            return sink.note(Note::Damaged);
        };
        let process = message["process"]["audit_token"]["pid"].as_u64().unwrap_or(0);
        let mut context = Context { call_time, process, event, sink };
        self.event(name, &mut context);
    }
}

fn call_time(message: &Value) -> Option<CallTime> {
    let began = date(message["time"].as_str()?)?;
    let process = &message["process"]["audit_token"]["pid"];
    let thread = message["thread"]["thread_id"].as_u64().or_else(|| process.as_u64())?;
    Some(CallTime::beginning(thread, began))
}

/// An event in its message.
struct Context<'line> {
    call_time: CallTime,
    process: u64,
    event: &'line Value,
    sink: &'line mut dyn TraceSink,
}

impl Context<'_> {
    fn emit(&mut self, action: TraceAction<'_>) {
        self.call_time.emit(self.sink, action);
    }

    fn on(&mut self, member: &str, action: impl for<'path> Fn(&'path [u8]) -> TraceAction<'path>) {
        match path(&self.event[member]) {
            Some(path) => self.emit(action(path.as_bytes())),
            None => self.sink.note(Note::UnknownHandle),
        }
    }

    fn unknown(&mut self, name: &'static str, member: &str) {
        let path = path(&self.event[member]);
        self.sink.note(Note::UnknownCall { name, path: path.as_deref().map(str::as_bytes) });
    }
}

/// Returns the path of a file; none if it was cut.
fn path(file: &Value) -> Option<String> {
    let is_whole = file["path_truncated"].as_bool() != Some(true);
    let path = outside_data_volume(file["path"].as_str().filter(|_| is_whole)?.as_bytes());
    Some(String::from_utf8_lossy(path).into_owned())
}

/// Returns the path of a destination: an existing file, or a new name in a folder.
fn destination(value: &Value) -> Option<String> {
    path(&value["existing_file"]).or_else(|| {
        let new = &value["new_path"];
        Some(format!("{}/{}", path(&new["dir"])?, new["filename"].as_str()?))
    })
}

fn found(file: &Value) -> Option<FoundFile> {
    match file["stat"]["st_mode"].as_u64()? & SORT {
        FOLDER => Some(FoundFile::Folder),
        LINK => Some(FoundFile::Link),
        REGULAR => file["stat"]["st_size"].as_u64().map(FoundFile::File),
        _ => None,
    }
}

impl EsloggerImporter {
    fn event(&mut self, name: &str, context: &mut Context<'_>) {
        use TraceAction as A;
        match name {
            "open" => self.open(context),
            "close" => self.close(context),
            "create" => self.create(context),
            "rename" => {
                self.forget_created(context, "source");
                rename(context);
            }
            "link" => hard_link(context),
            "unlink" => {
                self.forget_created(context, "target");
                remove(context);
            }
            "truncate" => context.on("target", |path| A::SetLength { path, length: 0 }),
            "stat" => {
                let found = found(&context.event["target"]);
                context.on("target", |path| A::Attributes { path, found });
            }
            "access" => context.on("target", |path| A::Attributes { path, found: None }),
            "readdir" => self.list(context),
            "readlink" => context.on("source", |path| A::ReadLink { path }),
            "setmode" | "setowner" | "setflags" | "utimes" | "setattrlist" | "setacl" => {
                context.on("target", |path| A::SetAttributes { path });
            }
            "getextattr" | "listextattr" => context.on("target", |path| A::ReadExtendedAttribute { path }),
            "setextattr" | "deleteextattr" => {
                context.on("target", |path| A::WriteExtendedAttribute { path, length: 0 });
            }
            "mmap" => context.unknown("mmap", "source"),
            "clone" => context.unknown("clone", "source"),
            "copyfile" => context.unknown("copyfile", "source"),
            "exchangedata" => context.unknown("exchangedata", "file1"),
            "searchfs" => context.unknown("searchfs", "target"),
            // A write is counted when the file is closed; lookups, processes and all else ask a share for nothing of their own.
            _ => {}
        }
    }

    fn open(&mut self, context: &mut Context<'_>) {
        const READ: u64 = 1;
        const WRITE: u64 = 2;
        // `O_TRUNC` of Apple's <sys/fcntl.h>, which the kernel keeps beside its own two.
        const TRUNCATE: u64 = 0x400;
        let file = &context.event["file"];
        let Some(path) = path(file) else { return context.sink.note(Note::UnknownHandle) };
        let flags = context.event["fflag"].as_u64().unwrap_or(READ);
        let access = match flags & (READ | WRITE) {
            WRITE => Access::Write,
            READ => Access::Read,
            _ => Access::ReadWrite,
        };
        let key = OpenKey { process: context.process, path: path.into_bytes() };
        // The opening of a file that was created is for writing; one for reading is another one.
        if let Some(file) = self.only_created(&key).filter(|_| access != Access::Read) {
            (file.access, file.is_only_created) = (access, false);
            return;
        }
        let found = found(file);
        let truncate = access != Access::Read && flags & TRUNCATE != 0;
        let mode = OpenMode { truncate, folder: found == Some(FoundFile::Folder), ..open_mode(access) };
        let size = if let Some(FoundFile::File(size)) = found { Some(size) } else { None };
        self.add_open(context, key, mode, size);
    }

    fn only_created(&mut self, key: &OpenKey) -> Option<&mut OpenFile> {
        self.open.get_mut(key)?.iter_mut().find(|file| file.is_only_created)
    }

    /// Takes the next creation under the name of this file for that of another one.
    fn forget_created(&mut self, context: &Context<'_>, member: &str) {
        let Some(path) = path(&context.event[member]) else { return };
        let key = OpenKey { process: context.process, path: path.into_bytes() };
        self.open.get_mut(&key).into_iter().flatten().for_each(|file| file.is_only_created = false);
    }

    fn add_open(&mut self, context: &mut Context<'_>, key: OpenKey, mode: OpenMode, size: Option<u64>) {
        if self.open_files >= MAX_OPEN {
            self.open_files = 0;
            let open = std::mem::take(&mut self.open);
            let handles = open.into_values().flatten().map(|file| file.handle).collect();
            context.call_time.close_all(context.sink, handles);
        }
        self.next_handle += 1;
        let handle = self.next_handle;
        context.emit(TraceAction::Open { path: &key.path, mode, handle: Some(handle) });
        let is_only_created = mode.create == CreateMode::Exclusive;
        let file = OpenFile { handle, access: mode.access, size, is_only_created };
        self.open.entry(key).or_default().push(file);
        self.open_files += 1;
    }

    fn close(&mut self, context: &mut Context<'_>) {
        let target = &context.event["target"];
        let Some(path) = path(target) else { return context.sink.note(Note::UnknownHandle) };
        let key = OpenKey { process: context.process, path: path.into_bytes() };
        let Some(file) = self.take_open(&key) else { return context.sink.note(Note::UnknownHandle) };
        let handle = file.handle;
        let size = if let Some(FoundFile::File(size)) = found(target) { Some(size) } else { file.size };
        let is_modified = context.event["modified"].as_bool() == Some(true);
        let direction = if is_modified { Direction::Write } else { Direction::Read };
        if (is_modified || file.access == Access::Read)
            && let Some(size) = size
        {
            context.call_time.transfer(context.sink, WholeFile { handle, direction, size });
        }
        context.emit(TraceAction::Close { handle });
    }

    fn take_open(&mut self, key: &OpenKey) -> Option<OpenFile> {
        let files = self.open.get_mut(key)?;
        let file = files.pop();
        self.open_files -= usize::from(file.is_some());
        if files.is_empty() {
            self.open.remove(key);
        }
        file
    }

    fn list(&mut self, context: &mut Context<'_>) {
        let Some(path) = path(&context.event["target"]) else {
            return context.sink.note(Note::UnknownHandle);
        };
        let key = OpenKey { process: context.process, path: path.into_bytes() };
        match self.open.get(&key).and_then(|files| files.last()).map(|file| file.handle) {
            Some(handle) => context.emit(TraceAction::List { handle, entries: None }),
            None => context.sink.note(Note::UnknownHandle),
        }
    }

    fn create(&mut self, context: &mut Context<'_>) {
        let destination_of = &context.event["destination"];
        let Some(path) = destination(destination_of) else { return context.sink.note(Note::UnknownHandle) };
        let mode = destination_of["new_path"]["mode"].as_u64();
        let mode = mode.or_else(|| destination_of["existing_file"]["stat"]["st_mode"].as_u64());
        match mode.map(|mode| mode & SORT) {
            Some(FOLDER) => context.emit(TraceAction::CreateFolder { path: path.as_bytes() }),
            Some(LINK) => context.emit(TraceAction::SymbolicLink { path: path.as_bytes() }),
            // A new file reports `create` and no `open` (buildprof, an open-source recorder, says so); in xnu's `vn_open_auth` a created
            // file is not checked with `mac_vnode_check_open`. A retried call reports it twice.
            None | Some(0 | REGULAR) => {
                let key = OpenKey { process: context.process, path: path.into_bytes() };
                let mode = OpenMode { create: CreateMode::Exclusive, ..open_mode(Access::Write) };
                if self.only_created(&key).is_none() {
                    self.add_open(context, key, mode, None);
                }
            }
            Some(_) => {}
        }
    }
}

fn rename(context: &mut Context<'_>) {
    let (from, to) = (path(&context.event["source"]), destination(&context.event["destination"]));
    let (Some(from), Some(to)) = (from, to) else { return context.sink.note(Note::UnknownHandle) };
    context.emit(TraceAction::Rename { from: from.as_bytes(), to: to.as_bytes() });
}

fn hard_link(context: &mut Context<'_>) {
    let event = context.event;
    let (from, folder) = (path(&event["source"]), path(&event["target_dir"]));
    let (Some(from), Some(folder), Some(name)) = (from, folder, event["target_filename"].as_str()) else {
        return context.sink.note(Note::UnknownHandle);
    };
    let to = format!("{folder}/{name}");
    context.emit(TraceAction::HardLink { from: from.as_bytes(), to: to.as_bytes() });
}

fn remove(context: &mut Context<'_>) {
    let is_folder = found(&context.event["target"]) == Some(FoundFile::Folder);
    if is_folder {
        context.on("target", |path| TraceAction::RemoveFolder { path });
    } else {
        context.on("target", |path| TraceAction::Remove { path });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::import;
    use crate::import::testing::Written;

    /// Messages with the members of eslogger that matter here, and some of those that do not.
    const SESSION: &[u8] = include_bytes!("../../tests/fixtures/eslogger.jsonl");

    /// Events of Apple's <EndpointSecurity/ESTypes.h> (`ES_EVENT_TYPE_NOTIFY_*`) about files, by their names in `eslogger`.
    const FILE_EVENTS: &str = "access chdir chroot clone close copyfile create deleteextattr dup exchangedata fcntl \
        file_provider_materialize file_provider_update fsgetpath getattrlist getextattr link listextattr lookup mmap mount open readdir \
        readlink remount rename searchfs setacl setattrlist setextattr setflags setmode setowner stat truncate uipc_bind uipc_connect \
        unlink unmount utimes write";

    /// Returns true if the importer does something with an event: one without its members is noted, unless it is ignored.
    fn is_handled(event: &str) -> bool {
        let line = format!(
            r#"{{"time":"2026-01-02T03:04:05.678901234Z","process":{{"audit_token":{{"pid":7}}}},"event":{{"{event}":{{}}}}}}"#
        );
        let mut written = Written::default();
        import(&mut EsloggerImporter::default(), &mut line.as_bytes(), &mut written).unwrap();
        assert!(!written.notes.contains(&"Damaged".to_owned()), "{event}");
        !written.notes.is_empty()
    }

    #[test]
    fn documented_command_asks_for_the_handled_events() {
        let text = include_str!("../../../../docs/recordings/sources.md");
        let command = text.split("`sudo eslogger ").nth(1).unwrap().split(" > FILE`").next().unwrap();
        let mut documented: Vec<&str> = command.split_whitespace().collect();
        documented.sort_unstable();
        let handled: Vec<&str> = FILE_EVENTS.split_whitespace().filter(|event| is_handled(event)).collect();
        assert_eq!(documented, handled);
    }

    #[test]
    fn session_becomes_events() {
        let mut written = Written::default();
        import(&mut EsloggerImporter::default(), &mut &*SESSION, &mut written).unwrap();
        let expected: Vec<&str> = include_str!("../../tests/fixtures/eslogger.events").lines().collect();
        assert_eq!(written.events, expected);
        assert_eq!(
            written.notes,
            ["unknown clone /Volumes/nas/a.jpg", "UnknownHandle", "UnknownHandle", "Damaged"]
        );
    }
}
