//! kqueue with `EVFILT_FS`.

use std::ffi::c_int;
use std::fs::File;
use std::os::fd::IntoRawFd;
use std::time::Duration;

use super::{Call, Kernel, answer};
use crate::apple::{EV_ADD, EV_CLEAR, EVFILT_FS, kevent as Event, timespec};
use crate::errno::*;

/// Event queue: the bits that are wanted, and those that occurred.
#[derive(Default)]
pub(super) struct Queue {
    wanted: Option<u32>,
    pending: u32,
}

/// Creates an event queue. Its descriptor is that of a real file, so that closing it works.
///
/// # Safety
///
/// Any call is sound; the function is unsafe because that of `libc` is.
pub unsafe fn kqueue() -> c_int {
    answer(Call::Kqueue, |kernel| {
        let number = File::open("/dev/null").map_err(|_| EMFILE)?.into_raw_fd();
        kernel.queues.insert(number, Queue::default());
        Ok(number)
    })
}

/// Registers one event, or waits for one (xnu bsd/kern/kern_event.c, `kevent_legacy_internal`). A call without a limit that
/// would wait for ever is interrupted.
///
/// # Safety
///
/// `changes` has `change_count` events; `found` has room for `room` events; `limit` is null or points to a time.
pub unsafe fn kevent(
    queue: c_int,
    changes: *const Event,
    change_count: c_int,
    found: *mut Event,
    room: c_int,
    limit: *const timespec,
) -> c_int {
    answer(Call::Kevent, |kernel| {
        for index in 0..usize::try_from(change_count).map_err(|_| EINVAL)? {
            // SAFETY: the caller passes this many changes.
            let change = unsafe { *changes.add(index) };
            kernel.queue(queue)?.register(change)?;
        }
        // SAFETY: the limit is null or a time.
        let limit = unsafe { limit.as_ref() }.map(duration).transpose()?;
        if room == 0 {
            kernel.queue(queue)?;
            return Ok(0);
        }
        match kernel.queue(queue)?.take() {
            Some(event) => {
                // SAFETY: there is room for at least one event.
                unsafe { found.write(event) };
                Ok(1)
            }
            None => {
                kernel.waits.push(limit);
                limit.map(|_| 0).ok_or(EINTR)
            }
        }
    })
}

/// Converts a limit (`timespec_is_valid`, xnu bsd/kern/kern_event.c:8479).
fn duration(limit: &timespec) -> Result<Duration, c_int> {
    let seconds = u64::try_from(limit.tv_sec).map_err(|_| EINVAL)?;
    let nanoseconds = u32::try_from(limit.tv_nsec).ok().filter(|part| *part < 1_000_000_000).ok_or(EINVAL)?;
    Ok(Duration::new(seconds, nanoseconds))
}

impl Queue {
    /// Registers an event of file systems; the stand-in has no other filter.
    fn register(&mut self, change: Event) -> Result<(), c_int> {
        if change.filter != EVFILT_FS || change.flags != EV_ADD | EV_CLEAR {
            return Err(EINVAL);
        }
        self.wanted = Some(change.fflags);
        Ok(())
    }

    /// Returns the event that occurred, and clears it (`EV_CLEAR`).
    fn take(&mut self) -> Option<Event> {
        let fflags = std::mem::take(&mut self.pending);
        let flags = EV_ADD | EV_CLEAR;
        let event =
            Event { ident: 0, filter: EVFILT_FS, flags, fflags, data: 0, udata: std::ptr::null_mut() };
        (fflags != 0).then_some(event)
    }
}

impl Kernel {
    fn queue(&mut self, number: c_int) -> Result<&mut Queue, c_int> {
        self.queues.get_mut(&number).ok_or(EBADF)
    }

    /// Reports an event of file systems to each queue that wants it (xnu bsd/vfs/vfs_subr.c:5174, `filt_fsevent`).
    pub fn report(&mut self, event: u32) {
        for queue in self.queues.values_mut() {
            if queue.wanted.is_some_and(|wanted| wanted == 0 || wanted & event != 0) {
                queue.pending |= event;
            }
        }
    }
}
