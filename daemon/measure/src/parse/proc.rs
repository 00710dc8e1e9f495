//! Parsers for small facts from `/proc` and `/sys`.

use longhaul_model::Power;

/// Returns the peak resident memory in bytes: `VmHWM` of `/proc/self/status`.
pub fn status_peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the power source, from `(type, online)` of each entry of `/sys/class/power_supply`
/// (Documentation/ABI/testing/sysfs-class-power). A supply that is online decides; without one, an offline
/// supply or a battery means battery.
pub fn power_supplies(supplies: &[(String, String)]) -> Option<Power> {
    let outside = |kind: &str| matches!(kind, "Mains" | "USB" | "Wireless" | "UPS");
    let mut answer = None;
    for (kind, online) in supplies.iter().map(|(kind, online)| (kind.trim(), online.trim())) {
        match (outside(kind), online) {
            (true, "1") => return Some(Power::Mains),
            (true, _) => answer = Some(Power::Battery),
            (false, _) if kind == "Battery" => answer = answer.or(Some(Power::Battery)),
            (false, _) => {}
        }
    }
    answer
}

/// Returns the bytes that a process caused to be read from disks and to be written to them, from
/// `/proc/PID/io` (proc_pid_io(5)). Reads that the page cache served are not in `read_bytes`. All threads of
/// the process are counted.
pub fn process_disk_bytes(io: &str) -> Option<(u64, u64)> {
    let count = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    count("read_bytes:").zip(count("write_bytes:"))
}

/// Returns the nanoseconds that a thread used a processor, and those that it was ready and waited for one: the first two
/// numbers of `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst).
pub fn scheduler_times(schedstat: &str) -> Option<(u64, u64)> {
    let mut numbers = schedstat.split_whitespace().map(|word| word.parse().ok());
    numbers.next()?.zip(numbers.next()?)
}

/// Returns whether a thread of the kernel with this name handles answers of file servers: `cifsd` receives those of SMB
/// (fs/smb/client/connect.c), unbound workers those of NFS (net/sunrpc/sched.c, `xprtiod`).
pub fn handles_answers(name: &str) -> bool {
    let name = name.trim_end();
    name == "cifsd" || name.starts_with("kworker/u")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_time_used_and_time_waited() {
        assert_eq!(scheduler_times("5071214 1350250 118\n"), Some((5_071_214, 1_350_250)));
        assert_eq!((scheduler_times("12"), scheduler_times("")), (None, None));
    }

    #[test]
    fn threads_that_handle_answers_are_known_by_name() {
        let known = ["cifsd\n", "kworker/u8:3-xprtiod\n", "kworker/u4:1+rpciod\n"];
        assert!(known.into_iter().all(handles_answers));
        let others = ["kworker/0:1-events\n", "smbd\n", "kswapd0\n", ""];
        assert!(!others.into_iter().any(handles_answers));
    }

    #[test]
    fn the_peak_is_read_in_bytes_or_not_at_all() {
        assert_eq!(status_peak_bytes("VmPeak:\t  1 kB\nVmHWM:\t    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(status_peak_bytes("VmHWM:\tmuch\n"), None);
    }

    #[test]
    fn disk_bytes_are_separate_from_cached_bytes() {
        let io = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 4096\n\
            write_bytes: 323932160\ncancelled_write_bytes: 0\n";
        assert_eq!(process_disk_bytes(io), Some((4096, 323_932_160)));
        assert_eq!(process_disk_bytes("rchar: 3\n"), None, "a kernel without CONFIG_TASK_IO_ACCOUNTING");
    }

    #[test]
    fn an_online_power_supply_decides() {
        let of = |facts: &[(&str, &str)]| {
            power_supplies(
                &facts.iter().map(|(a, b)| (format!("{a}\n"), format!("{b}\n"))).collect::<Vec<_>>(),
            )
        };
        assert_eq!(of(&[("Battery", ""), ("Mains", "1")]), Some(Power::Mains));
        assert_eq!(of(&[("Mains", "0"), ("Battery", "")]), Some(Power::Battery));
        assert_eq!(of(&[]), None);
    }
}
