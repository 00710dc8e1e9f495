//! Processor times on macOS, of this process only: those of threads of the kernel are for root (`task_for_pid(0)`). The
//! author never ran this code on a Mac.

use super::macos::clock_ns;
use super::types::ProcessorTimes;

/// Returns no threads, because their times are not readable.
pub fn answer_threads() -> Vec<u32> {
    vec![]
}

/// Returns the processor time of this process until now (`CLOCK_PROCESS_CPUTIME_ID`; Libc gen/clock_gettime.c:94).
pub fn processor_times(_: &[u32]) -> ProcessorTimes {
    let used_us = clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID) / 1000;
    ProcessorTimes { used_us: Some(used_us), ..ProcessorTimes::default() }
}
