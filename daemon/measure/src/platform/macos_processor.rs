//! Processor times on macOS, of this process only: those of threads of the kernel are for root (`task_for_pid(0)`). The
//! author never ran this code on a Mac.

use super::types::ProcessorTimes;

/// Returns no threads, because their times are not readable.
pub fn answer_threads() -> Vec<u32> {
    vec![]
}

/// Returns the processor time of this process until now (`CLOCK_PROCESS_CPUTIME_ID`; Libc gen/clock_gettime.c:94).
pub fn processor_times(_: &[u32]) -> ProcessorTimes {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call. The clock exists since 10.12, so the return value is not checked.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    let used_us = time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000;
    ProcessorTimes { used_us: Some(used_us), ..ProcessorTimes::default() }
}
