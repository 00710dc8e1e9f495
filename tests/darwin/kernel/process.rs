//! Facts and settings of processes, clocks, notifications, and `fcntl`.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::{Call, answer, copy_out, with};
use crate::apple::*;
use crate::errno::*;

unsafe extern "C" {
    /// Runs a command on a descriptor.
    ///
    /// Rust cannot define a function with variable arguments yet. This declaration leads to [`file_command`], whose third
    /// argument lies where the first variable one does: in the third register, on x86-64 and on AArch64 Linux.
    #[link_name = "longhaul_darwin_fcntl"]
    pub fn fcntl(file: c_int, command: c_int, ...) -> c_int;
}

/// Runs a command of macOS on a node (xnu bsd/kern/kern_descrip.c:3687-3993), or a command of Linux on a real descriptor.
#[unsafe(export_name = "longhaul_darwin_fcntl")]
extern "C" fn file_command(file: c_int, command: c_int, argument: usize) -> c_int {
    answer(Call::Fcntl, |kernel| match command {
        F_FULLFSYNC | F_RDAHEAD | F_NOCACHE => {
            kernel.node_mut(file)?;
            kernel.file_commands.push((command, if command == F_FULLFSYNC { 0 } else { argument }));
            Ok(0)
        }
        _ => Err(EINVAL),
    })
}

/// Reads a clock (Libc gen/clock_gettime.c:94-135).
///
/// # Safety
///
/// A time can be written at `time`.
pub unsafe fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    answer(Call::ClockGettime, |kernel| {
        let now = kernel.clocks.get(&clock).ok_or(EINVAL)?;
        // SAFETY: the caller promises the room.
        unsafe {
            time.write(timespec {
                tv_sec: (now / 1_000_000_000) as i64,
                tv_nsec: (now % 1_000_000_000) as i64,
            })
        };
        Ok(0)
    })
}

/// Returns the id of the hardware (xnu bsd/kern/sys_generic.c:2191).
///
/// # Safety
///
/// 16 bytes can be written at `id`, and `timeout` points to a time.
pub unsafe fn gethostuuid(id: *mut u8, timeout: *const timespec) -> c_int {
    answer(Call::Gethostuuid, |kernel| {
        if timeout.is_null() {
            return Err(EFAULT);
        }
        // SAFETY: the caller promises the room.
        unsafe { copy_out(&kernel.host_id, id, 16) };
        Ok(0)
    })
}

/// Returns the use of this process.
///
/// # Safety
///
/// A struct can be written at `usage`.
pub unsafe fn getrusage(who: c_int, usage: *mut rusage) -> c_int {
    answer(Call::Getrusage, |kernel| {
        if who != RUSAGE_SELF {
            return Err(EINVAL);
        }
        // SAFETY: the caller promises the room.
        unsafe { usage.write(rusage { ru_maxrss: kernel.peak_memory, ..rusage::default() }) };
        Ok(0)
    })
}

/// Returns the use of a process (xnu bsd/kern/proc_info.c:3852, `proc_pid_rusage`).
///
/// # Safety
///
/// The struct of the flavor can be written at `buffer`.
pub unsafe fn proc_pid_rusage(process: c_int, flavor: c_int, buffer: *mut rusage_info_t) -> c_int {
    answer(Call::ProcPidRusage, |kernel| {
        if flavor != RUSAGE_INFO_V2 {
            return Err(EINVAL);
        }
        let [read, written] = *kernel.disk_bytes.get(&process).ok_or(ESRCH)?;
        let facts = rusage_info_v2 {
            ri_diskio_bytesread: read,
            ri_diskio_byteswritten: written,
            ..Default::default()
        };
        // SAFETY: the caller promises the room of this flavor.
        unsafe { buffer.cast::<rusage_info_v2>().write(facts) };
        Ok(0)
    })
}

/// Sets the I/O policy of the process (xnu bsd/kern/kern_resource.c:2234, `iopolicysys_disk`).
#[unsafe(no_mangle)]
extern "C" fn setiopolicy_np(kind: c_int, scope: c_int, policy: c_int) -> c_int {
    answer(Call::Setiopolicy, |kernel| match (kind, scope, policy) {
        // IOPOL_TYPE_DISK, IOPOL_SCOPE_PROCESS, IOPOL_DEFAULT to IOPOL_IMPORTANT
        (0, 0, 0..=5) => {
            kernel.disk_policy = policy;
            Ok(0)
        }
        _ => Err(EINVAL),
    })
}

/// Returns the I/O policy of the process.
#[unsafe(no_mangle)]
extern "C" fn getiopolicy_np(kind: c_int, scope: c_int) -> c_int {
    answer(
        Call::Getiopolicy,
        |kernel| if (kind, scope) == (0, 0) { Ok(kernel.disk_policy) } else { Err(EINVAL) },
    )
}

/// Fills a vector with the residency of pages: every second page is resident.
///
/// # Safety
///
/// There is a byte at `vector` for each page.
pub unsafe fn mincore(_address: *const c_void, length: usize, vector: *mut c_char) -> c_int {
    answer(Call::Mincore, |_| {
        let pages = length.div_ceil(linux_rustix::param::page_size());
        // MINCORE_INCORE is 1; the other bits say how a page was used (xnu bsd/sys/mman.h:228).
        let resident: Vec<u8> = (0..pages).map(|page| if page % 2 == 0 { 0x1 | 0x8 } else { 0x8 }).collect();
        // SAFETY: the caller promises a byte for each page.
        unsafe { copy_out(&resident, vector.cast(), pages) };
        Ok(0)
    })
}

/// Registers for a state by its name (Libnotify notify.h). Status 1 is `NOTIFY_STATUS_INVALID_NAME`.
#[unsafe(no_mangle)]
extern "C" fn notify_register_check(name: *const c_char, token: *mut c_int) -> u32 {
    let failed = |number: c_int| u32::from(number < 0);
    failed(answer(Call::NotifyRegisterCheck, |kernel| {
        // SAFETY: the caller passes a name that ends in NUL.
        let name = unsafe { CStr::from_ptr(name) }.to_owned();
        let number = kernel.tokens.last_key_value().map_or(7, |(last, _)| last + 1);
        kernel.tokens.insert(number, name);
        // SAFETY: the caller passes the place of a token.
        unsafe { token.write(number) };
        Ok(0)
    }))
}

/// Returns the state of a name; 0 if none was published. Status 2 is `NOTIFY_STATUS_INVALID_TOKEN`.
#[unsafe(no_mangle)]
extern "C" fn notify_get_state(token: c_int, state: *mut u64) -> u32 {
    let answered = answer(Call::NotifyGetState, |kernel| {
        let name = kernel.tokens.get(&token).ok_or(EINVAL)?;
        // SAFETY: the caller passes the place of a state.
        unsafe { state.write(kernel.notifications.get(name).copied().unwrap_or(0)) };
        Ok(0)
    });
    if answered == 0 { 0 } else { 2 }
}

/// Ends a registration.
#[unsafe(no_mangle)]
extern "C" fn notify_cancel(token: c_int) -> u32 {
    if with(|kernel| kernel.tokens.remove(&token)).is_some() { 0 } else { 2 }
}
