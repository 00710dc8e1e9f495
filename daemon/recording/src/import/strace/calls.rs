//! The table of calls.

use std::collections::HashMap;
use std::num::NonZeroU8;
use std::sync::LazyLock;

use super::context::{Context, found, has, result};
use super::handles;
use super::syntax::{self, Answer, Call};
use crate::{ActionResult, TraceAction};

/// Function that makes events of a call.
type Handler = fn(&mut Context<'_, '_>, &Call<'_>);

const PATH: ArgumentPositions = ArgumentPositions::path(0);
const SECOND_PATH: ArgumentPositions = ArgumentPositions::path(1);
const AT: ArgumentPositions = ArgumentPositions::at(0);
/// The second path of calls such as `renameat`, which name an open folder for each.
const SECOND_AT: ArgumentPositions = ArgumentPositions::at(2);
/// The path of `symlinkat`, whose first argument is the content of the link.
const LINK_AT: ArgumentPositions = ArgumentPositions::at(1);
const HANDLE: ArgumentPositions = ArgumentPositions::handle(0);

/// Calls with the function that handles them.
const CALLS: &[(&str, Handler)] = &[
    ("open", handles::open),
    ("openat", handles::open_at),
    ("openat2", handles::open_at),
    ("creat", handles::create),
    ("close", handles::close),
    ("close_range", handles::close_range),
    ("execve", handles::execute),
    ("execveat", handles::execute),
    ("read", handles::read),
    ("pread64", handles::read_at),
    ("pread", handles::read_at),
    ("readv", handles::read_vector),
    ("preadv", handles::read_vector),
    ("preadv2", handles::read_vector),
    ("write", handles::write),
    ("pwrite64", handles::write_at),
    ("pwrite", handles::write_at),
    ("writev", handles::write_at),
    ("pwritev", handles::write_at),
    ("pwritev2", handles::write_at),
    ("sendfile", handles::send_file),
    ("sendfile64", handles::send_file),
    ("splice", handles::splice),
    ("lseek", handles::seek),
    ("getdents", handles::list),
    ("getdents64", handles::list),
    ("fsync", handles::sync),
    ("fdatasync", handles::sync),
    ("flock", handles::lock),
    ("fcntl", handles::control),
    ("fcntl64", handles::control),
    ("dup", handles::duplicate),
    ("dup2", handles::duplicate),
    ("dup3", handles::duplicate),
    ("pipe", handles::no_file),
    ("pipe2", handles::no_file),
    ("socket", handles::no_file),
    ("socketpair", handles::no_file),
    ("accept", handles::no_file),
    ("accept4", handles::no_file),
    ("eventfd", handles::no_file),
    ("eventfd2", handles::no_file),
    ("epoll_create", handles::no_file),
    ("epoll_create1", handles::no_file),
    ("timerfd_create", handles::no_file),
    ("signalfd", handles::no_file),
    ("signalfd4", handles::no_file),
    ("inotify_init", handles::no_file),
    ("inotify_init1", handles::no_file),
    ("memfd_create", handles::no_file),
    ("pidfd_open", handles::no_file),
    ("perf_event_open", handles::no_file),
    ("io_uring_setup", handles::no_file),
    ("chdir", handles::change_folder),
    ("fchdir", handles::change_folder_to_handle),
    ("stat", |context, call| attributes(context, call, PATH.structure(1))),
    ("lstat", |context, call| attributes(context, call, PATH.structure(1))),
    ("stat64", |context, call| attributes(context, call, PATH.structure(1))),
    ("lstat64", |context, call| attributes(context, call, PATH.structure(1))),
    ("fstat", handles::attributes),
    ("fstat64", handles::attributes),
    ("newfstatat", |context, call| attributes(context, call, AT.structure(2))),
    ("fstatat64", |context, call| attributes(context, call, AT.structure(2))),
    ("statx", |context, call| attributes(context, call, AT.structure(4))),
    ("access", |context, call| attributes(context, call, PATH)),
    ("faccessat", |context, call| attributes(context, call, AT)),
    ("faccessat2", |context, call| attributes(context, call, AT)),
    ("chmod", |context, call| set_attributes(context, call, PATH)),
    ("fchmod", |context, call| set_attributes(context, call, HANDLE)),
    ("fchmodat", |context, call| set_attributes(context, call, AT)),
    ("fchmodat2", |context, call| set_attributes(context, call, AT)),
    ("chown", |context, call| set_attributes(context, call, PATH)),
    ("lchown", |context, call| set_attributes(context, call, PATH)),
    ("fchown", |context, call| set_attributes(context, call, HANDLE)),
    ("fchownat", |context, call| set_attributes(context, call, AT)),
    ("utime", |context, call| set_attributes(context, call, PATH)),
    ("utimes", |context, call| set_attributes(context, call, PATH)),
    ("futimesat", |context, call| set_attributes(context, call, AT)),
    ("utimensat", |context, call| set_attributes(context, call, AT)),
    ("truncate", |context, call| set_length(context, call, PATH)),
    ("ftruncate", |context, call| set_length(context, call, HANDLE)),
    ("getxattr", |context, call| read_extended_attribute(context, call, PATH)),
    ("lgetxattr", |context, call| read_extended_attribute(context, call, PATH)),
    ("fgetxattr", |context, call| read_extended_attribute(context, call, HANDLE)),
    ("listxattr", |context, call| read_extended_attribute(context, call, PATH)),
    ("llistxattr", |context, call| read_extended_attribute(context, call, PATH)),
    ("flistxattr", |context, call| read_extended_attribute(context, call, HANDLE)),
    ("setxattr", |context, call| write_extended_attribute(context, call, PATH)),
    ("lsetxattr", |context, call| write_extended_attribute(context, call, PATH)),
    ("fsetxattr", |context, call| write_extended_attribute(context, call, HANDLE)),
    ("removexattr", |context, call| write_extended_attribute(context, call, PATH)),
    ("lremovexattr", |context, call| write_extended_attribute(context, call, PATH)),
    ("fremovexattr", |context, call| write_extended_attribute(context, call, HANDLE)),
    ("rename", |context, call| rename(context, call, Pair { from: PATH, to: SECOND_PATH })),
    ("renameat", |context, call| rename(context, call, Pair { from: AT, to: SECOND_AT })),
    ("renameat2", |context, call| rename(context, call, Pair { from: AT, to: SECOND_AT })),
    ("link", |context, call| hard_link(context, call, Pair { from: PATH, to: SECOND_PATH })),
    ("linkat", |context, call| hard_link(context, call, Pair { from: AT, to: SECOND_AT })),
    ("symlink", |context, call| {
        on_path(context, call, SECOND_PATH, |path| TraceAction::SymbolicLink { path })
    }),
    ("symlinkat", |context, call| on_path(context, call, LINK_AT, |path| TraceAction::SymbolicLink { path })),
    ("readlink", |context, call| on_path(context, call, PATH, |path| TraceAction::ReadLink { path })),
    ("readlinkat", |context, call| on_path(context, call, AT, |path| TraceAction::ReadLink { path })),
    ("unlink", |context, call| on_path(context, call, PATH, |path| TraceAction::Remove { path })),
    ("unlinkat", unlink_at),
    ("rmdir", |context, call| on_path(context, call, PATH, |path| TraceAction::RemoveFolder { path })),
    ("mkdir", |context, call| on_path(context, call, PATH, |path| TraceAction::CreateFolder { path })),
    ("mkdirat", |context, call| on_path(context, call, AT, |path| TraceAction::CreateFolder { path })),
    ("statfs", |context, call| on_path(context, call, PATH, |path| TraceAction::FreeSpace { path })),
    ("fstatfs", |context, call| on_path(context, call, HANDLE, |path| TraceAction::FreeSpace { path })),
    ("mmap", |context, call| unknown(context, call, "mmap", ArgumentPositions::handle(4))),
    ("copy_file_range", handles::copy_range),
    ("fallocate", |context, call| unknown(context, call, "fallocate", HANDLE)),
    ("readahead", |context, call| unknown(context, call, "readahead", HANDLE)),
    ("sync_file_range", |context, call| unknown(context, call, "sync_file_range", HANDLE)),
    ("syncfs", |context, call| unknown(context, call, "syncfs", HANDLE)),
    ("mknod", |context, call| unknown(context, call, "mknod", PATH)),
    ("mknodat", |context, call| unknown(context, call, "mknodat", AT)),
    ("ioctl", clone_range),
];

/// Calls that take a path or a descriptor and ask nothing of its file system.
const WITHOUT_EFFECT: &[&str] = &[
    "fadvise64",
    "getcwd",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_ctl",
    "inotify_add_watch",
    "connect",
    "bind",
];

static TABLE: LazyLock<HashMap<&[u8], Handler>> =
    LazyLock::new(|| CALLS.iter().map(|(name, handler)| (name.as_bytes(), *handler)).collect());

/// Tells whether a call is in the table.
pub(super) fn is_known(name: &[u8]) -> bool {
    TABLE.contains_key(name)
}

/// Tells whether a call starts a thread or process.
pub(super) fn starts_thread(name: &[u8]) -> bool {
    matches!(name, b"clone" | b"clone2" | b"clone3" | b"fork" | b"vfork")
}

/// Makes events of a call.
pub(super) fn handle(context: &mut Context<'_, '_>, call: &Call<'_>) {
    match TABLE.get(call.name) {
        Some(handler) => handler(context, call),
        None if WITHOUT_EFFECT.iter().any(|name| name.as_bytes() == call.name) => {}
        None => unlisted(context, call),
    }
}

/// Counts a call of unknown kind if it names a file.
fn unlisted(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let path_of = |text: &&[u8]| {
        syntax::string(text).or_else(|| {
            let annotation = syntax::descriptor(text)?.annotation?;
            syntax::unescaped(annotation)
        })
    };
    let path = call.arguments.iter().filter_map(path_of).find(|path| path.starts_with(b"/"));
    if let Some(path) = path {
        context.unknown("other", Some(&path));
    }
}

/// Positions of a path, or of a descriptor that stands for one, among the arguments, and of the structure that is returned.
#[derive(Clone, Copy)]
struct ArgumentPositions {
    /// Number of the argument with a descriptor or `AT_FDCWD`.
    folder: Option<usize>,
    /// Number of the argument with a path.
    path: Option<usize>,
    structure: Option<usize>,
}

impl ArgumentPositions {
    const fn path(index: usize) -> Self {
        Self { folder: None, path: Some(index), structure: None }
    }

    /// The folder, followed by the path.
    const fn at(index: usize) -> Self {
        Self { folder: Some(index), path: Some(index + 1), structure: None }
    }

    const fn handle(index: usize) -> Self {
        Self { folder: Some(index), path: None, structure: None }
    }

    const fn structure(self, index: usize) -> Self {
        Self { structure: Some(index), ..self }
    }

    /// Returns the number of names in the path, if it is given from an open folder.
    fn depth_in_open_folder(self, context: &Context<'_, '_>, call: &Call<'_>) -> Option<NonZeroU8> {
        context.depth_below(call.arguments.get(self.folder?).copied(), call.arguments.get(self.path?))
    }

    fn resolve(self, context: &Context<'_, '_>, call: &Call<'_>) -> Option<Vec<u8>> {
        let folder = self.folder.and_then(|index| call.arguments.get(index)).copied();
        match self.path {
            Some(index) if !self.has_no_path(call) => context.path(folder, call.arguments.get(index)),
            _ => context.at_path(folder?),
        }
    }

    /// Tells whether a descriptor is meant itself: `utimensat(3</file>, NULL, ...)`, or an empty path.
    fn has_no_path(self, call: &Call<'_>) -> bool {
        self.path.is_none_or(|index| matches!(call.arguments.get(index), Some(&b"NULL" | &b"\"\"")))
    }
}

struct Pair {
    from: ArgumentPositions,
    to: ArgumentPositions,
}

impl Pair {
    /// Returns the number of names in both paths, if they are given from open folders.
    fn depth_in_open_folder(&self, context: &Context<'_, '_>, call: &Call<'_>) -> Option<NonZeroU8> {
        let [from, to] = [self.from, self.to].map(|place| place.depth_in_open_folder(context, call));
        from.filter(|from| Some(*from) == to)
    }
}

fn attributes(context: &mut Context<'_, '_>, call: &Call<'_>, place: ArgumentPositions) {
    let is_handle = place.folder.is_some() && call.arguments.get(1).is_some_and(|text| *text == b"\"\"");
    if is_handle {
        return handles::handle_attributes(context, call, place.structure.unwrap_or(usize::MAX));
    }
    let Some(result) = result(call) else { return };
    let found = place.structure.and_then(|index| found(call.arguments.get(index)));
    context.depth_in_open_folder = place.depth_in_open_folder(context, call);
    match place.resolve(context, call) {
        Some(path) if needs_access_time(call) => {
            context.emit(TraceAction::Attributes { path: &path, found }, result);
        }
        Some(path) => context.emit(TraceAction::AttributesButAccessTime { path: &path, found }, result),
        None => context.unresolved(),
    }
}

/// Returns whether a call asks for the time of the last access: all but `statx` do, which says what it asks for.
fn needs_access_time(call: &Call<'_>) -> bool {
    let masks = ["STATX_ATIME", "STATX_BASIC_STATS", "STATX_ALL"];
    call.name != b"statx" || masks.iter().any(|mask| has(call.arguments.get(3), mask))
}

fn on_path(
    context: &mut Context<'_, '_>,
    call: &Call<'_>,
    place: ArgumentPositions,
    action: for<'path> fn(&'path [u8]) -> TraceAction<'path>,
) {
    let Some(result) = result(call) else { return };
    context.depth_in_open_folder = place.depth_in_open_folder(context, call);
    match place.resolve(context, call) {
        Some(path) => context.emit(action(&path), result),
        None if place.path.is_none() && is_no_file(context, call) => {}
        None => context.unresolved(),
    }
}

fn set_attributes(context: &mut Context<'_, '_>, call: &Call<'_>, place: ArgumentPositions) {
    let handle = if place.has_no_path(call) { context.open_handle(call.arguments.first()) } else { None };
    match (result(call), handle) {
        (Some(result), Some(handle)) => context.emit(TraceAction::SetHandleAttributes { handle }, result),
        _ => on_path(context, call, place, |path| TraceAction::SetAttributes { path }),
    }
}

/// Tells whether the first descriptor is a socket, a pipe, or one of the three that every program has.
fn is_no_file(context: &Context<'_, '_>, call: &Call<'_>) -> bool {
    let descriptor = call.arguments.first().and_then(|text| syntax::descriptor(text));
    descriptor.is_some_and(|descriptor| {
        let is_known = context.thread.file(descriptor.number).is_some();
        is_known || descriptor.annotation.is_some() || descriptor.number <= 2
    })
}

fn set_length(context: &mut Context<'_, '_>, call: &Call<'_>, place: ArgumentPositions) {
    let Some(result) = result(call) else { return };
    let length = call.arguments.get(1).and_then(|text| syntax::number(text)).unwrap_or(0);
    match place.resolve(context, call) {
        Some(path) => context.emit(TraceAction::SetLength { path: &path, length }, result),
        None if is_no_file(context, call) => {}
        None => context.unresolved(),
    }
}

/// Leaves out a question that the client answers by itself, because the file system has no attributes of this kind (such as
/// `security.selinux`, for which `ls` asks).
fn read_extended_attribute(context: &mut Context<'_, '_>, call: &Call<'_>, place: ArgumentPositions) {
    if !matches!(call.answer, Answer::Error(b"EOPNOTSUPP")) {
        on_path(context, call, place, |path| TraceAction::ReadExtendedAttribute { path });
    }
}

fn write_extended_attribute(context: &mut Context<'_, '_>, call: &Call<'_>, place: ArgumentPositions) {
    let Some(result) = result(call) else { return };
    let length = call.arguments.get(3).and_then(|text| syntax::number(text)).unwrap_or(0);
    match place.resolve(context, call) {
        Some(path) => context.emit(TraceAction::WriteExtendedAttribute { path: &path, length }, result),
        None => context.unresolved(),
    }
}

/// Returns both paths of a call, and notes how they are given. Counts a call of which one is unknown.
fn both_paths(context: &mut Context<'_, '_>, call: &Call<'_>, pair: &Pair) -> Option<(Vec<u8>, Vec<u8>)> {
    let paths = pair.from.resolve(context, call).zip(pair.to.resolve(context, call));
    context.depth_in_open_folder = pair.depth_in_open_folder(context, call);
    if paths.is_none() {
        context.unresolved();
    }
    paths
}

fn rename(context: &mut Context<'_, '_>, call: &Call<'_>, pair: Pair) {
    let Some(result) = result(call) else { return };
    let Some((from, to)) = both_paths(context, call, &pair) else { return };
    if has(call.arguments.get(4), "RENAME_EXCHANGE") {
        return context.unknown("rename_exchange", Some(&from));
    }
    context.emit(TraceAction::Rename { from: &from, to: &to }, result);
}

fn hard_link(context: &mut Context<'_, '_>, call: &Call<'_>, pair: Pair) {
    let Some(result) = result(call) else { return };
    let Some((from, to)) = both_paths(context, call, &pair) else { return };
    context.emit(TraceAction::HardLink { from: &from, to: &to }, result);
}

fn unlink_at(context: &mut Context<'_, '_>, call: &Call<'_>) {
    if has(call.arguments.get(2), "AT_REMOVEDIR") {
        on_path(context, call, AT, |path| TraceAction::RemoveFolder { path });
    } else {
        on_path(context, call, AT, |path| TraceAction::Remove { path });
    }
}

/// Counts a call that succeeded and that longhaul cannot replay. `mmap` without a file has no descriptor.
fn unknown(context: &mut Context<'_, '_>, call: &Call<'_>, name: &'static str, place: ArgumentPositions) {
    if result(call) != Some(ActionResult::Done) {
        return;
    }
    match place.resolve(context, call) {
        Some(path) => context.unknown(name, Some(&path)),
        None if call.name == b"mmap" || is_no_file(context, call) => {}
        None => context.unresolved(),
    }
}

/// Records an `ioctl` that copies on the server; ignores the others. `cp` makes one for each file.
fn clone_range(context: &mut Context<'_, '_>, call: &Call<'_>) {
    let is_one_of = |names: [&str; 2]| names.iter().any(|name| has(call.arguments.get(1), name));
    let is_whole = is_one_of(["FICLONE", "BTRFS_IOC_CLONE"]);
    if is_whole && result(call) == Some(ActionResult::Failed) {
        handles::refused_clone(context, call);
    } else if is_whole || is_one_of(["FICLONERANGE", "BTRFS_IOC_CLONE_RANGE"]) {
        unknown(context, call, "ioctl_clone", HANDLE);
    }
}
