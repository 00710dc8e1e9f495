//! Processor times on Linux: of this process, and of the threads of the kernel that work for mounts.

use std::fs;
use std::path::Path;

use rustix::time::ClockId;

use super::linux::clock_ns;
use super::types::ProcessorTimes;
use crate::parse;

/// Returns the threads of the kernel that handle answers of file servers. Reads the names of all processes, so it is called
/// once before a run.
pub fn answer_threads() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return vec![] };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let handles = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| parse::handles_answers(&name))
    };
    entries.flatten().filter_map(number).filter(handles).collect()
}

/// Returns the processor times until now. `kernel_threads` are those of [`answer_threads`]; one that has ended has no
/// further times.
pub fn processor_times(kernel_threads: &[u32]) -> ProcessorTimes {
    let used_ns = clock_ns(ClockId::ProcessCPUTime);
    let kernel: Option<u64> = kernel_threads
        .iter()
        .map(|thread| scheduler_times(Path::new(&format!("/proc/{thread}"))))
        .try_fold(0u64, |sum, times| {
            times.map(|(used, waited)| sum.saturating_add(used).saturating_add(waited))
        });
    ProcessorTimes {
        used_us: Some(used_ns / 1000),
        waited_us: waited_ns().map(|time| time / 1000),
        kernel_us: kernel.filter(|_| !kernel_threads.is_empty()).map(|time| time / 1000),
    }
}

/// Returns the time that the threads which this process has now waited for a processor: less than before if one ended. `None` if the kernel does not count it.
fn waited_ns() -> Option<u64> {
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten();
    let waited = threads.filter_map(|thread| scheduler_times(&thread.path()));
    waited.map(|(_, waited)| waited).reduce(u64::saturating_add)
}

fn scheduler_times(thread: &Path) -> Option<(u64, u64)> {
    parse::scheduler_times(&fs::read_to_string(thread.join("schedstat")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_uses_processor_time() {
        let before = processor_times(&[]);
        std::hint::black_box((0..5_000_000u64).fold(1, |a, b| std::hint::black_box(a ^ b)));
        let after = processor_times(&[]);
        assert!(after.used_us > before.used_us);
        // Other tests end their threads meanwhile, so that the sum may have become smaller.
        assert!(before.waited_us.is_some() && after.waited_us.is_some());
        assert_eq!(after.kernel_us, None, "no thread of the kernel is known");
    }

    #[test]
    fn a_thread_that_does_not_exist_makes_the_sum_unknown() {
        assert!(processor_times(&[std::process::id()]).kernel_us.is_some());
        assert_eq!(processor_times(&[std::process::id(), u32::MAX]).kernel_us, None);
    }
}
