//! State of the stand-in kernel. Each thread has its own, so that tests run side by side.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CString, c_int};
use std::time::Duration;

pub use faults::{Call, DOCUMENTED_ERRORS};
pub use files::Node;
pub use values::interface;

pub mod attributes;
pub mod calls;
mod events;
mod faults;
mod files;
mod mounts;
mod process;
mod values;

/// State of the stand-in kernel of a thread.
#[derive(Default)]
pub struct Kernel {
    /// Mount tables that successive calls of `getfsstat` see; the last one stays.
    pub mounts: VecDeque<Vec<crate::statfs>>,
    /// Values of `sysctl` by name that successive calls see; the last one stays.
    pub values: BTreeMap<CString, VecDeque<Vec<u8>>>,
    /// Interfaces by number, from 1; `None` for one that was removed.
    pub interfaces: Vec<Option<crate::ifmibdata>>,
    /// Bytes that each process read from disks and wrote to them.
    pub disk_bytes: BTreeMap<c_int, [u64; 2]>,
    /// States that `notify_get_state` returns, by name.
    pub notifications: BTreeMap<CString, u64>,
    /// Tokens that are registered, with the names.
    pub tokens: BTreeMap<c_int, CString>,
    /// Id of the hardware.
    pub host_id: [u8; 16],
    /// I/O policy of the process.
    pub disk_policy: c_int,
    /// Peak memory of the process in bytes.
    pub peak_memory: i64,
    /// True after the process has set `vfs.generic.noremotehang`.
    pub fails_remote_hangs: bool,
    /// Nanoseconds of each clock, by number.
    pub clocks: BTreeMap<crate::clockid_t, u64>,
    /// Number by which `getattrlistbulk` counts more entries than it wrote, as a damaged file system might.
    pub surplus_entries: c_int,
    /// `fcntl` commands that were accepted, with their arguments.
    pub file_commands: Vec<(c_int, usize)>,
    /// Time limits of the `kevent` calls that waited.
    pub waits: Vec<Option<Duration>>,
    files: BTreeMap<c_int, files::OpenFile>,
    queues: BTreeMap<c_int, events::Queue>,
    faults: Vec<faults::Fault>,
    counts: BTreeMap<Call, usize>,
}

thread_local! {
    static KERNEL: RefCell<Kernel> = RefCell::new(Kernel::default());
}

/// Runs a function on the kernel of this thread.
pub fn with<T>(function: impl FnOnce(&mut Kernel) -> T) -> T {
    KERNEL.with_borrow_mut(function)
}

/// Starts with a fresh kernel on this thread.
pub fn reset() {
    with(|kernel| *kernel = Kernel::default());
}

/// Result of a system call: its return value, or an error number.
type Answer = Result<c_int, c_int>;

/// Runs a system call: counts it, fails it if a fault is set, and returns -1 with `errno` for an error.
fn answer(call: Call, function: impl FnOnce(&mut Kernel) -> Answer) -> c_int {
    match with(|kernel| kernel.enter(call).and_then(|()| function(kernel))) {
        Ok(value) => value,
        Err(error) => {
            // SAFETY: the address of this thread's errno, which is valid as long as the thread.
            unsafe { *linux_libc::__errno_location() = error };
            -1
        }
    }
}

/// Returns the value that this call sees: the first, as long as there is more than one.
fn next<T: Clone>(values: &mut VecDeque<T>) -> Option<T> {
    if values.len() > 1 { values.pop_front() } else { values.front().cloned() }
}

/// Copies as many bytes as there is room for, as the kernel does for a caller, and returns their number. The rest of the
/// room is overwritten: a caller that reads beyond the answer reads nonsense, and one that claims more room than it has is
/// found by AddressSanitizer or Miri.
///
/// # Safety
///
/// `room` bytes can be written at `to`.
unsafe fn copy_out(bytes: &[u8], to: *mut u8, room: usize) -> usize {
    let length = bytes.len().min(room);
    // SAFETY: the caller promises this room, and both parts lie within it.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, length);
        to.add(length).write_bytes(0xa5, room - length);
    }
    length
}

/// Returns the bytes of a struct of plain integers.
fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<T>()];
    // SAFETY: the struct has no padding, so that all its bytes are initialized; every caller passes such a struct.
    unsafe { std::ptr::copy_nonoverlapping((&raw const *value).cast(), bytes.as_mut_ptr(), bytes.len()) };
    bytes
}
