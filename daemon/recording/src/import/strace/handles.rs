//! Calls on descriptors: openings, transfers, duplicates, the end of processes' files.

use std::cell::RefCell;
use std::rc::Rc;

use super::context::{Context, annotated_path, field, found, has, result, returned};
use super::processes::{Descriptor, OpenFile};
use super::syntax::{self, Answer, Call};
use crate::import::paths::absolute;
use crate::trace::Direction;
use crate::{Access, ActionResult, CreateMode, OpenMode, TraceAction};

/// An opening: the folder of a relative path, the path, the flags.
struct Opening<'call> {
    at: Option<&'call [u8]>,
    path: Option<&'call &'call [u8]>,
    flags: &'call [u8],
}

pub(super) fn open(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let flags = call.arguments.get(1).copied().unwrap_or_default();
    open_with(context, call, Opening { at: None, path: call.arguments.first(), flags });
}

pub(super) fn open_at(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let flags = call.arguments.get(2).copied().unwrap_or_default();
    let at = call.arguments.first().copied();
    open_with(context, call, Opening { at, path: call.arguments.get(1), flags });
}

pub(super) fn create(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let flags = b"O_WRONLY|O_CREAT|O_TRUNC";
    open_with(context, call, Opening { at: None, path: call.arguments.first(), flags });
}

fn open_with(context: &mut Context<'_, '_>, call: &Call<'_>, opening: Opening<'_>) {
    let Some(result) = result(call) else { return };
    let flags = Some(&opening.flags);
    let given = context.path(opening.at, opening.path);
    context.depth_in_open_folder = context.depth_below(opening.at, opening.path);
    // The kernel knows the path best: it has followed the links in it.
    let returned = if let Answer::Number(returned) = call.answer { Some(returned) } else { None };
    let known = returned.and_then(|returned| annotated_path(returned.annotation));
    let Some(path) = known.or(given) else { return context.unresolved() };
    let is_unnamed = has(flags, "O_TMPFILE");
    let mut handle = returned.filter(|_| !is_unnamed).map(|_| context.new_handle());
    if is_unnamed {
        context.unknown("open_tmpfile", Some(&path));
    } else if has(flags, "O_PATH") && handle.is_none() {
        // A question what there is, as `mv` asks before it renames.
        context.emit(TraceAction::Attributes { path: &path, found: None }, result);
    } else {
        context.emit(TraceAction::Open { path: &path, mode: mode(flags), handle }, result);
    }
    let Some(returned) = returned else { return };
    let appends = has(flags, "O_APPEND");
    let is_path_only = has(flags, "O_PATH");
    let position = (!appends).then_some(0);
    let file = OpenFile { handle: handle.take(), path, position, appends, is_path_only };
    let closes_on_exec = has(flags, "O_CLOEXEC");
    let descriptor = Descriptor { file: Rc::new(RefCell::new(file)), closes_on_exec };
    let ended = context.thread.set(returned.number, descriptor);
    context.emit_closed(ended);
}

fn mode(flags: Option<&&[u8]>) -> OpenMode {
    let access = match () {
        () if has(flags, "O_PATH") => Access::PathOnly,
        () if has(flags, "O_RDWR") => Access::ReadWrite,
        () if has(flags, "O_WRONLY") => Access::Write,
        () => Access::Read,
    };
    let create = match () {
        () if has(flags, "O_CREAT") && has(flags, "O_EXCL") => CreateMode::Exclusive,
        () if has(flags, "O_CREAT") => CreateMode::IfAbsent,
        () => CreateMode::Never,
    };
    OpenMode { access, create, truncate: has(flags, "O_TRUNC"), folder: has(flags, "O_DIRECTORY") }
}

pub(super) fn close(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let Some(result) = result(call) else { return };
    let Some(descriptor) = call.arguments.first().and_then(|text| syntax::descriptor(text)) else { return };
    if let Some(handle) = context.thread.close(descriptor.number) {
        context.emit(TraceAction::Close { handle }, result);
    }
}

pub(super) fn close_range(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let limit = |index: usize| call.arguments.get(index).and_then(|text| syntax::number(text));
    let (Some(first), last) = (limit(0), limit(1).unwrap_or(u64::MAX)) else { return };
    if result(call) != Some(ActionResult::Done) || has(call.arguments.get(2), "CLOSE_RANGE_CLOEXEC") {
        return;
    }
    let closed = context.thread.close_if(|number, _| (first..=last).contains(&number));
    context.emit_closed(closed);
}

pub(super) fn execute(context: &mut Context<'_, '_>, call: &Call<'_>) {
    if result(call) != Some(ActionResult::Done) {
        return;
    }
    if let Some(path) = context.path(None, call.arguments.first()) {
        // The kernel reads the program; the trace does not show which bytes.
        context.unknown("execve", Some(&path));
    }
    let closed = context.thread.close_if(|_, descriptor| descriptor.closes_on_exec);
    context.emit_closed(closed);
}

pub(super) fn read(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let length = argument_number(call, 2).unwrap_or_else(|| returned(call));
    transfer(context, call, Transfer { direction: Direction::Read, length, offset: None });
}

pub(super) fn read_at(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let length = argument_number(call, 2).unwrap_or_else(|| returned(call));
    transfer(
        context,
        call,
        Transfer { direction: Direction::Read, length, offset: argument_number(call, 3) },
    );
}

pub(super) fn read_vector(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let offset = argument_number(call, 3);
    transfer(context, call, Transfer { direction: Direction::Read, length: vector_length(call), offset });
}

pub(super) fn write(context: &mut Context<'_, '_>, call: &Call<'_>) {
    transfer(context, call, Transfer { direction: Direction::Write, length: returned(call), offset: None });
}

pub(super) fn write_at(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let offset = argument_number(call, 3);
    transfer(context, call, Transfer { direction: Direction::Write, length: returned(call), offset });
}

struct Transfer {
    direction: Direction,
    length: u64,
    offset: Option<u64>,
}

fn transfer(context: &mut Context<'_, '_>, call: &Call<'_>, transfer: Transfer) {
    let Some(result) = result(call) else { return };
    let Some(opened) = context.opened(call.arguments.first(), Access::ReadWrite) else { return };
    let moved = returned(call);
    let mut file = opened.file.borrow_mut();
    let offset = transfer.offset.or(file.position);
    if transfer.offset.is_none() {
        file.position = file.position.map(|position| position.saturating_add(moved));
    }
    drop(file);
    let (handle, length) = (opened.handle, transfer.length);
    let action = match transfer.direction {
        Direction::Read => TraceAction::Read { handle, offset, length, read: moved },
        Direction::Write => TraceAction::Write { handle, offset, length },
    };
    context.emit(action, result);
}

fn argument_number(call: &Call<'_>, index: usize) -> Option<u64> {
    syntax::number(call.arguments.get(index)?)
}

/// Returns the sum of the lengths in `[{iov_base="...", iov_len=5}, ...]`.
fn vector_length(call: &Call<'_>) -> u64 {
    const KEY: &str = "iov_len=";
    let mut rest = call.arguments.get(1).copied().unwrap_or_default();
    let mut sum = 0u64;
    while let Some(length) = field(rest, KEY) {
        sum = sum.saturating_add(length);
        let start = rest.windows(KEY.len()).position(|part| part == KEY.as_bytes()).unwrap_or(0);
        rest = &rest[start + KEY.len()..];
    }
    sum.max(returned(call))
}

pub(super) fn send_file(context: &mut Context<'_, '_>, call: &Call<'_>) {
    copy(context, call, Ends { input: 1, output: 0, input_offset: 2, output_offset: None });
}

pub(super) fn splice(context: &mut Context<'_, '_>, call: &Call<'_>) {
    copy(context, call, Ends { input: 0, output: 2, input_offset: 1, output_offset: Some(3) });
}

/// Numbers of the arguments of a call that moves bytes between descriptors.
struct Ends {
    input: usize,
    output: usize,
    input_offset: usize,
    output_offset: Option<usize>,
}

/// Bytes that the kernel moves from one descriptor to another are read from the one and written to the other, if they are
/// files.
fn copy(context: &mut Context<'_, '_>, call: &Call<'_>, ends: Ends) {
    let moved = returned(call);
    if result(call) != Some(ActionResult::Done) {
        return;
    }
    let offset = |index: usize| given_offset(call, index);
    let input = context.opened(call.arguments.get(ends.input), Access::Read);
    let output = context.opened(call.arguments.get(ends.output), Access::Write);
    if let Some(opened) = input {
        let offset = advance(&opened.file, offset(ends.input_offset), moved);
        let action = TraceAction::Read { handle: opened.handle, offset, length: moved, read: moved };
        context.emit(action, ActionResult::Done);
    }
    if let Some(opened) = output {
        let offset = advance(&opened.file, ends.output_offset.and_then(offset), moved);
        context.emit(TraceAction::Write { handle: opened.handle, offset, length: moved }, ActionResult::Done);
    }
}

/// Without an opened file at one end, that end is no file of the trace.
pub(super) fn copy_range(context: &mut Context<'_, '_>, call: &Call<'_>) {
    if result(call) != Some(ActionResult::Done) {
        return;
    }
    let ends = Ends { input: 0, output: 2, input_offset: 1, output_offset: Some(3) };
    let from = context.opened(call.arguments.get(ends.input), Access::Read);
    let to = context.opened(call.arguments.get(ends.output), Access::Write);
    let (Some(from), Some(to)) = (from, to) else { return copy(context, call, ends) };
    let length = returned(call);
    let action = TraceAction::Copy {
        from: from.handle,
        to: to.handle,
        read_at: advance(&from.file, given_offset(call, 1), length),
        write_at: advance(&to.file, given_offset(call, 3), length),
        length,
    };
    context.emit(action, ActionResult::Done);
}

/// Reports that a file system refused to share the blocks of a file: a copy of no bytes that failed.
pub(super) fn refused_clone(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let to = context.opened(call.arguments.first(), Access::Write);
    let from = context.opened(call.arguments.get(2), Access::Read);
    let (Some(from), Some(to)) = (from, to) else { return };
    let (read_at, write_at) = (Some(0), Some(0));
    let action = TraceAction::Copy { from: from.handle, to: to.handle, read_at, write_at, length: 0 };
    context.emit(action, ActionResult::Failed);
}

/// Returns an offset that a call gets by its address, which strace shows as `[5]`, or as `[5] => [9]`.
fn given_offset(call: &Call<'_>, index: usize) -> Option<u64> {
    let text = call.arguments.get(index)?.strip_prefix(b"[")?;
    syntax::number(text.split(|byte| !byte.is_ascii_digit()).next()?)
}

fn advance(file: &RefCell<OpenFile>, given: Option<u64>, moved: u64) -> Option<u64> {
    let mut file = file.borrow_mut();
    let offset = given.or(file.position);
    if given.is_none() {
        file.position = file.position.map(|position| position.saturating_add(moved));
    }
    offset
}

pub(super) fn seek(context: &mut Context<'_, '_>, call: &Call<'_>) {
    if result(call) != Some(ActionResult::Done) {
        return;
    }
    if let Some(opened) = context.opened(call.arguments.first(), Access::ReadWrite) {
        let mut file = opened.file.borrow_mut();
        file.position = (!file.appends).then_some(returned(call));
    }
}

pub(super) fn list(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let Some(result) = result(call) else { return };
    let Some(opened) = context.opened(call.arguments.first(), Access::Read) else { return };
    // strace counts `.` and `..`, which are in the first batch: `0x55caea883210 /* 3 entries */`.
    let comment = call.arguments.get(1).and_then(|text| text.split(|byte| *byte == b'*').nth(1));
    let count =
        comment.and_then(|text| syntax::number(text.trim_ascii().split(|byte| *byte == b' ').next()?));
    let mut file = opened.file.borrow_mut();
    let is_first = file.position == Some(0);
    file.position = file.position.max(Some(1));
    drop(file);
    let entries = count.map(|count| if is_first { count.saturating_sub(2) } else { count });
    context.emit(TraceAction::List { handle: opened.handle, entries }, result);
}

pub(super) fn sync(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let Some(result) = result(call) else { return };
    if let Some(opened) = context.opened(call.arguments.first(), Access::ReadWrite) {
        context.emit(TraceAction::Sync { handle: opened.handle }, result);
    }
}

pub(super) fn lock(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let Some(result) = result(call) else { return };
    if let Some(opened) = context.opened(call.arguments.first(), Access::ReadWrite) {
        context.emit(TraceAction::Lock { handle: opened.handle }, result);
    }
}

pub(super) fn attributes(context: &mut Context<'_, '_>, call: &Call<'_>) {
    handle_attributes(context, call, 1);
}

/// Handles `fstat`, and the calls that mean a descriptor by an empty path; the attributes are in argument `structure`.
pub(super) fn handle_attributes(context: &mut Context<'_, '_>, call: &Call<'_>, structure: usize) {
    let Some(result) = result(call) else { return };
    let found = found(call.arguments.get(structure));
    let argument = call.arguments.first();
    let known = argument.and_then(|text| context.thread.file(syntax::descriptor(text)?.number));
    if known.is_some_and(|file| file.borrow().handle.is_none())
        || argument.is_some_and(|text| text.starts_with(b"AT_"))
    {
        // The current folder, or no file at all.
        if let Some(path) = argument.and_then(|text| context.at_path(text)) {
            context.emit(TraceAction::Attributes { path: &path, found }, result);
        }
        return;
    }
    if let Some(opened) = context.opened(argument, Access::Read) {
        context.emit(TraceAction::HandleAttributes { handle: opened.handle, found }, result);
    }
}

pub(super) fn control(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let command = call.arguments.get(1).copied().unwrap_or_default();
    match command {
        b"F_DUPFD" | b"F_DUPFD_CLOEXEC" => duplicate(context, call),
        b"F_SETLK" | b"F_SETLKW" | b"F_OFD_SETLK" | b"F_OFD_SETLKW" => lock(context, call),
        b"F_SETFD" => set_closes_on_exec(context, call),
        _ => {}
    }
}

fn set_closes_on_exec(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let Some(descriptor) = call.arguments.first().and_then(|text| syntax::descriptor(text)) else { return };
    if let Some(entry) = context.thread.descriptors.borrow_mut().get_mut(descriptor.number) {
        entry.closes_on_exec = has(call.arguments.get(2), "FD_CLOEXEC");
    }
}

pub(super) fn duplicate(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let Answer::Number(returned) = call.answer else { return };
    let Some(old) = call.arguments.first().and_then(|text| syntax::descriptor(text)) else { return };
    if old.number == returned.number {
        return;
    }
    let closes_on_exec =
        call.arguments.iter().any(|text| has(Some(text), "O_CLOEXEC") || has(Some(text), "F_DUPFD_CLOEXEC"));
    let ended = match context.thread.file(old.number) {
        Some(file) => context.thread.set(returned.number, Descriptor { file, closes_on_exec }),
        None => context.thread.close(returned.number),
    };
    context.emit_closed(ended);
}

/// Handles calls that return descriptors of what is no file: sockets, pipes, events.
pub(super) fn no_file(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let Answer::Number(returned) = call.answer else { return };
    // `pipe2([3, 4], O_CLOEXEC) = 0`, `socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4]) = 0`. Brackets in other calls are lengths and
    // signals: `accept(4, {...}, [16]) = 6`, `signalfd4(-1, [INT], 8, 0) = 5`.
    let has_pair = matches!(call.name, b"pipe" | b"pipe2" | b"socketpair");
    let mut arguments = call.arguments.iter().filter(|_| has_pair);
    let pair = arguments.find_map(|text| text.strip_prefix(b"[")?.strip_suffix(b"]"));
    let pair = pair.map(|text| {
        let parts = text.split(|byte| *byte == b',').filter_map(|part| syntax::descriptor(part.trim_ascii()));
        parts.map(|descriptor| descriptor.number).take(2).collect::<Vec<_>>()
    });
    for number in pair.unwrap_or_else(|| vec![returned.number]) {
        let file =
            OpenFile { handle: None, path: vec![], position: None, appends: false, is_path_only: false };
        let file = Rc::new(RefCell::new(file));
        let ended = context.thread.set(number, Descriptor { file, closes_on_exec: false });
        context.emit_closed(ended);
    }
}

pub(super) fn change_folder(context: &mut Context<'_, '_>, call: &Call<'_>) {
    if result(call) == Some(ActionResult::Done) {
        let path = context.path(None, call.arguments.first());
        *context.thread.folder.borrow_mut() = path.map(Rc::from);
    }
}

pub(super) fn change_folder_to_handle(context: &mut Context<'_, '_>, call: &Call<'_>) {
    if result(call) == Some(ActionResult::Done) {
        let path = call.arguments.first().and_then(|text| context.descriptor_path(text));
        *context.thread.folder.borrow_mut() = path.and_then(|path| absolute(None, &path)).map(Rc::from);
    }
}
