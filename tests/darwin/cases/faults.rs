//! Each call fails with each error that it documents: the code answers with that error or with a documented state.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use longhaul_darwin::kernel::{Call, DOCUMENTED_ERRORS, Node, reset, with};
use longhaul_darwin::platform::macos::*;
use longhaul_darwin::platform::macos_counters::{self, disk_counters};
use longhaul_darwin::platform::macos_host::{MountWatch, host_id};
use longhaul_darwin::platform::macos_probe::{device_of, disable_read_ahead};
use longhaul_darwin::platform::types::{IoPolicy, ListingFields};
use longhaul_darwin::platform::unix::{ByteRange, resident_share};
use longhaul_darwin::*;

use crate::open;

/// Answer of the code to a failed call.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// An error with this number.
    Error(c_int),
    /// A reason that the user reads, which names the error.
    Reason(String),
    /// A documented state without an error.
    State(String),
}

fn outcome<T: std::fmt::Debug>(result: io::Result<T>) -> Outcome {
    match result {
        Ok(state) => Outcome::State(format!("{state:?}")),
        Err(error) => Outcome::Error(error.raw_os_error().unwrap_or(0)),
    }
}

fn reason<T: std::fmt::Debug>(result: Result<T, String>) -> Outcome {
    result.map_or_else(Outcome::Reason, |state| Outcome::State(format!("{state:?}")))
}

/// Prepares a kernel in which every operation of [`outcomes`] succeeds.
fn healthy() -> std::fs::File {
    reset();
    let own_disk = statfs { f_flags: MNT_LOCAL as u32, ..statfs::named("apfs", "/dev/disk3s5", "/") };
    let noted = Node { xattrs: [(TEST_XATTR.to_owned(), b"note".to_vec())].into(), ..Node::new(c"file", 1) };
    let folder = open(Node::folder(vec![noted]));
    with(|kernel| {
        kernel.put_on(folder.as_fd(), own_disk);
        kernel.mounts = [vec![own_disk]].into();
        kernel.interfaces = vec![Some(kernel::interface("en0", 1, 1))];
        kernel.disk_bytes.insert(1, [1, 1]);
        kernel.values.insert(c"net.inet.tcp.pcblist_n".to_owned(), [sockets::pcblist(&[])].into());
    });
    folder
}

/// Runs the operations that make a call, and returns their outcomes.
fn outcomes(call: Call, at: BorrowedFd<'_>) -> Vec<Outcome> {
    let xattr = |name| outcome(getxattr_at(at, c"file", name, &mut [0; 64]));
    match call {
        Call::Fcntl => vec![outcome(full_sync(at)), outcome(disable_read_ahead(at))],
        Call::Fgetxattr | Call::Openat => vec![xattr(TEST_XATTR)],
        Call::Fsetxattr | Call::Fstatfs => vec![outcome(exclude_from_backup(at))],
        Call::Fstat => vec![outcome(device_of(at))],
        Call::Fstatat => vec![outcome(attributes_at(at, c"file"))],
        Call::Fsync => vec![outcome(platform::unix::fsync(at))],
        Call::Getattrlistat => vec![xattr(FINDER_INFO)],
        Call::Getattrlistbulk => vec![outcome(list(at, ListingFields::Names, &mut [0; 512]))],
        Call::Getfsstat => vec![outcome(mounts())],
        Call::Gethostuuid => vec![Outcome::State(format!("{:?}", host_id()))],
        Call::Getiopolicy => vec![outcome(io_policy())],
        Call::Getrusage => vec![Outcome::State(format!("{:?}", peak_memory_bytes()))],
        Call::Kqueue => vec![outcome(MountWatch::new().map(|_| "watch"))],
        Call::Mincore => vec![resident()],
        Call::Mmap | Call::Msync | Call::Munmap => vec![evicted()],
        Call::ProcPidRusage => vec![reason(disk_counters(1).map_err(|unavailable| unavailable.reason))],
        Call::Setiopolicy => vec![outcome(set_io_policy(IoPolicy::Throttled))],
        Call::Sysctl => vec![reason(interface_reading())],
        Call::Sysctlbyname => vec![reason(macos_counters::connection_count()), outcome(forbid_remote_hang())],
        Call::ClockGettime | Call::Kevent | Call::NotifyGetState | Call::NotifyRegisterCheck => vec![],
    }
}

fn resident() -> Outcome {
    let file = real_file();
    outcome(resident_share(file.as_fd(), 4096))
}

fn evicted() -> Outcome {
    let file = real_file();
    outcome(evict(file.as_fd(), ByteRange { begin: 0, length: 4096 }))
}

fn real_file() -> std::fs::File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    file
}

fn interface_reading() -> Result<usize, String> {
    let counters = macos_counters::read_counters(&[]).remove(0).counters;
    let count = counters.len();
    counters.into_iter().find_map(Result::err).map_or(Ok(count), |unavailable| Err(unavailable.reason))
}

/// Returns whether an outcome is the documented one for an error of a call.
fn is_documented(call: Call, error: c_int, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Error(found) => *found == error,
        Outcome::Reason(reason) => reason.contains(&format!("os error {error}")),
        Outcome::State(state) => match call {
            // An fsync takes the place of a full sync that is not supported.
            Call::Fcntl => state == "Fsync" && [ENOTSUP, EINVAL, ENOTTY].contains(&error),
            // No attribute, or a file system without attributes.
            Call::Fgetxattr => state == "None" && [ENOATTR, ENOTSUP].contains(&error),
            Call::Gethostuuid | Call::Getrusage => state == "None",
            _ => false,
        },
    }
}

/// Calls that Miri does not run: through another signature, or on mappings of files.
const NOT_IN_MIRI: [Call; 5] = [Call::Fcntl, Call::Mincore, Call::Mmap, Call::Msync, Call::Munmap];

#[test]
fn every_documented_error_is_returned_or_a_documented_state() {
    for &(call, errors) in DOCUMENTED_ERRORS.iter().filter(|(call, _)| *call != Call::Kevent) {
        if cfg!(miri) && NOT_IN_MIRI.contains(&call) {
            continue;
        }
        let folder = healthy();
        let well = outcomes(call, folder.as_fd());
        assert!(
            !well.is_empty() && well.iter().all(|one| matches!(one, Outcome::State(_))),
            "{call:?}: {well:?}"
        );
        for &error in errors {
            let folder = healthy();
            with(|kernel| kernel.fail(call, error, ..));
            for one in outcomes(call, folder.as_fd()) {
                assert!(is_documented(call, error, &one), "{call:?} with errno {error}: {one:?}");
            }
        }
    }
}

#[test]
fn later_calls_of_an_operation_may_fail_too() {
    for &(call, errors) in DOCUMENTED_ERRORS {
        if !matches!(call, Call::Getfsstat | Call::Sysctlbyname | Call::Sysctl) {
            continue;
        }
        for &error in errors {
            let folder = healthy();
            with(|kernel| kernel.fail(call, error, 1..));
            let first = outcomes(call, folder.as_fd()).remove(0);
            // More room is asked for after ENOMEM, until there is a limit.
            let too_large = |reason: &str| error == ENOMEM && reason.contains("file too large");
            let is_expected = is_documented(call, error, &first)
                || matches!(&first, Outcome::Reason(reason) if too_large(reason));
            assert!(is_expected, "{call:?} with errno {error}: {first:?}");
        }
    }
}

#[test]
fn failed_wait_is_an_error_unless_a_signal_ended_it() {
    let (_, errors) = DOCUMENTED_ERRORS.iter().find(|(call, _)| *call == Call::Kevent).unwrap();
    for &error in *errors {
        reset();
        let watch = MountWatch::new().unwrap();
        with(|kernel| kernel.fail(Call::Kevent, error, ..));
        let expected = if error == EINTR { Outcome::State("None".to_owned()) } else { Outcome::Error(error) };
        assert_eq!(outcome(watch.wait(Some(Duration::ZERO))), expected);
    }
}
