//! `sysctl`, by name and by number.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::{Call, Kernel, answer, bytes_of, copy_out, next};
use crate::apple::ifmibdata;
use crate::errno::*;

/// Place of a value in the caller's memory, and a new value.
struct Request {
    old: *mut c_void,
    length: *mut usize,
    new: *const c_void,
    new_length: usize,
}

/// Reads or sets a value by its name (xnu bsd/kern/kern_newsysctl.c:2108).
///
/// # Safety
///
/// `name` ends in NUL; `old` is null or has room for `*length` bytes; `new` is null or has `new_length` bytes.
pub unsafe fn sysctlbyname(
    name: *const c_char,
    old: *mut c_void,
    length: *mut usize,
    new: *mut c_void,
    new_length: usize,
) -> c_int {
    // SAFETY: the caller passes a name that ends in NUL.
    let name = unsafe { CStr::from_ptr(name) };
    let request = Request { old, length, new, new_length };
    answer(Call::Sysctlbyname, |kernel| {
        if name == c"vfs.generic.noremotehang" {
            // SAFETY: the caller promises the new value.
            return unsafe { kernel.set_no_remote_hang(&request) };
        }
        let value = kernel.values.get_mut(name).and_then(next).ok_or(ENOENT)?;
        // SAFETY: the caller promises the room.
        unsafe { give(&value, &request) }
    })
}

/// Reads a value by its number. There are only those of the interfaces (xnu bsd/net/if_mib.c:253).
///
/// # Safety
///
/// `name` has `count` numbers; `old` is null or has room for `*length` bytes; `new` is null or has `new_length` bytes.
pub unsafe fn sysctl(
    name: *mut c_int,
    count: c_uint,
    old: *mut c_void,
    length: *mut usize,
    new: *mut c_void,
    new_length: usize,
) -> c_int {
    // SAFETY: the caller passes this many numbers.
    let name = unsafe { std::slice::from_raw_parts(name, count as usize) };
    let request = Request { old, length, new, new_length };
    answer(Call::Sysctl, |kernel| {
        let value = match name {
            // CTL_NET, PF_LINK, NETLINK_GENERIC, IFMIB_SYSTEM, IFMIB_IFCOUNT
            [4, 18, 0, 1, 1] => (kernel.interfaces.len() as c_int).to_ne_bytes().to_vec(),
            // IFMIB_IFDATA, number, IFDATA_GENERAL
            [4, 18, 0, 2, number, 1] if *number > 0 => {
                let found = kernel.interfaces.get(*number as usize - 1).copied().flatten();
                bytes_of(&found.ok_or(ENOENT)?)
            }
            _ => return Err(ENOENT),
        };
        // SAFETY: the caller promises the room.
        unsafe { give(&value, &request) }
    })
}

/// Gives a value to the caller: only its length for a null buffer, and as much as fits with `ENOMEM` if the room is too
/// small (kern_newsysctl.c:2186).
///
/// # Safety
///
/// As for [`sysctlbyname`].
unsafe fn give(value: &[u8], request: &Request) -> Result<c_int, c_int> {
    if !request.new.is_null() {
        return Err(EPERM);
    }
    if request.old.is_null() {
        // SAFETY: the caller passes the place of a length.
        unsafe { *request.length = value.len() };
        return Ok(0);
    }
    // SAFETY: the caller passes the place of a length, and promises this room.
    let (copied, room) = unsafe {
        let room = *request.length;
        *request.length = copy_out(value, request.old.cast(), room);
        (*request.length, room)
    };
    if copied < value.len() && room < value.len() { Err(ENOMEM) } else { Ok(0) }
}

impl Kernel {
    /// Sets `vfs.generic.noremotehang` for a process (xnu bsd/vfs/vfs_subr.c:5229). The stand-in knows one process.
    ///
    /// # Safety
    ///
    /// `request.new` is null or has `new_length` bytes.
    unsafe fn set_no_remote_hang(&mut self, request: &Request) -> Result<c_int, c_int> {
        if request.new.is_null() || request.new_length != size_of::<crate::pid_t>() {
            return Err(EINVAL);
        }
        // SAFETY: the new value has the length of a pid.
        let process: crate::pid_t = unsafe { request.new.cast::<crate::pid_t>().read_unaligned() };
        if u32::try_from(process) != Ok(std::process::id()) {
            return Err(ESRCH);
        }
        self.fails_remote_hangs = true;
        Ok(0)
    }
}

/// Returns an interface with a name, received and sent bytes.
pub fn interface(name: &str, received: u64, sent: u64) -> ifmibdata {
    let mut found = ifmibdata::default();
    for (place, byte) in found.ifmd_name.iter_mut().zip(name.bytes()) {
        *place = byte as c_char;
    }
    (found.ifmd_data.ifi_ibytes, found.ifmd_data.ifi_obytes) = (received, sent);
    found
}
