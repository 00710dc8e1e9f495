//! Checks of calls that concern longhaul's own process and the kernel.

use std::time::{Duration, Instant};

use crate::platform::{self, IoPolicy, MountWatch, SYSTEM, System};
use crate::recorder::Recorder;
use crate::timed_fs::timed_fs_overhead_ns;
use longhaul_model::{Operation, ProtocolFamily};

use super::check::{CheckAnswer, CheckOutcome, MachineCheck, milliseconds_since};

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[MachineCheck] = &[
    MachineCheck::call("system version", version)
        .linux("Linux and its release", "uname(2)")
        .macos("macOS with version and build", "xnu bsd/kern/kern_sysctl.c:2129, kern.osproductversion"),
    MachineCheck::call("clocks", clocks)
        .linux("no clock goes backwards; the clock that includes sleep is ahead", "clock_gettime(2)")
        .macos(
            "no clock goes backwards; the clock that includes sleep is ahead",
            "Libc gen/clock_gettime.c:115-121",
        ),
    MachineCheck::call("cost of a timed call", timed_call_overhead)
        .linux("less than 1 ms", "vdso(7)")
        .macos("less than 1 ms", "Libc gen/clock_gettime.c"),
    MachineCheck::call("peak memory", memory)
        .linux("from 1 MB to 10 GB", "proc_pid_status(5)")
        .macos("from 1 MB to 10 GB", "man getrusage(2), ru_maxrss"),
    MachineCheck::call("flight recorder", recorder)
        .linux("a call is visible through a second mapping", "memfd_create(2), mmap(2)")
        .macos("a call is visible through a second mapping", "man mmap(2)"),
    MachineCheck::call("I/O policy", io_policy)
        .linux("set, read back, and restored", "ioprio_set(2)")
        .macos("set, read back, and restored", "man getiopolicy_np(3); xnu bsd/sys/resource.h:568"),
    MachineCheck::call("remote hang switch", remote_hang_switch)
        .linux("not available", "signal(7): a signal ends a wait for NFS")
        .macos("accepted without privileges", "xnu bsd/vfs/vfs_subr.c:5229, vfs.generic.noremotehang"),
    MachineCheck::call("mount table", mounts)
        .linux("contains the root folder's mount", "proc_pid_mountinfo(5)")
        .macos(
            "contains the root folder's mount, without delay",
            "xnu bsd/vfs/vfs_syscalls.c:4153, getfsstat64_callback",
        ),
    MachineCheck::call("mount watch", mount_watch)
        .linux(
            "created, and reports nothing while nothing is mounted",
            "kernel fs/proc_namespace.c, mounts_poll",
        )
        .macos(
            "created, and reports nothing while nothing is mounted",
            "xnu bsd/vfs/vfs_subr.c:5140, fs_filtops",
        ),
    MachineCheck::call("disk counters", disk_counters)
        .linux("bytes of this process", "proc_pid_io(5)")
        .macos("bytes of this process", "xnu bsd/sys/resource.h:242, rusage_info_v2"),
    MachineCheck::call("interface counters", interfaces)
        .linux("bytes of each interface", "proc_pid_net(5), dev")
        .macos("bytes of each interface", "xnu bsd/net/if_mib.h:65"),
    MachineCheck::call("connections", connections)
        .linux("a list, without privileges", "sock_diag(7)")
        .macos("a list, without privileges", "xnu bsd/netinet/in_pcblist.c:292, pcblist_n"),
];

fn version() -> CheckAnswer {
    let version = platform::system_version();
    let has_number =
        version.split(' ').nth(1).is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    CheckAnswer::new(CheckOutcome::from(has_number), version)
}

fn clocks() -> CheckAnswer {
    const READINGS: usize = 1000;
    let mut steps = vec![];
    let mut last = platform::monotonic_ns();
    let mut goes_back = false;
    for _ in 0..READINGS {
        let now = platform::monotonic_ns();
        goes_back |= now < last;
        steps.extend(now.checked_sub(last).filter(|step| *step > 0));
        last = now;
    }
    let (monotonic, continuous) = (platform::monotonic_ns(), platform::continuous_ns());
    let is_ahead = continuous >= monotonic;
    let finest = steps.iter().min().map_or("no step".to_owned(), |step| format!("{step} ns"));
    // The continuous clock also runs during sleep, so the difference is the time asleep since boot.
    let asleep = continuous.saturating_sub(monotonic) / 1_000_000_000;
    let order = match (goes_back, is_ahead) {
        (true, _) => "the monotonic clock goes backwards",
        (false, false) => "the clock that includes sleep is behind",
        (false, true) => "correct order",
    };
    CheckAnswer::new(
        CheckOutcome::from(is_ahead && !goes_back),
        format!("{order}; smallest step {finest}, {asleep} s asleep since boot"),
    )
}

fn timed_call_overhead() -> CheckAnswer {
    const MOST_NS: f64 = 1e6;
    match timed_fs_overhead_ns() {
        Ok(cost) => CheckAnswer::new(CheckOutcome::from(cost < MOST_NS), format!("{cost:.0} ns")),
        Err(error) => CheckAnswer::differs(error_name(&error)),
    }
}

fn memory() -> CheckAnswer {
    match platform::peak_memory_bytes() {
        None => CheckAnswer::differs("not reported"),
        Some(bytes) => {
            let is_plausible = (1_000_000..10_000_000_000).contains(&bytes);
            CheckAnswer::new(CheckOutcome::from(is_plausible), format!("{:.1} MB", bytes as f64 / 1e6))
        }
    }
}

fn recorder() -> CheckAnswer {
    let seen = || {
        let (file, path) = platform::shared_file()?;
        let ours = Recorder::create(&file)?;
        let theirs = Recorder::open(&path);
        // On macOS the shared file has a path. It can be removed as soon as both recorders have mapped the file.
        let _ = std::fs::remove_file(&path);
        ours.thread_slot(0).begin(Operation::Read, platform::monotonic_ns());
        Ok::<_, std::io::Error>(theirs?.in_flight().map(|flight| flight.operation))
    };
    match seen() {
        Ok(Some(Operation::Read)) => CheckAnswer::ok("a call is visible through a second mapping"),
        Ok(_) => CheckAnswer::differs("a call is not visible through a second mapping"),
        Err(error) => CheckAnswer::differs(error_name(&error)),
    }
}

/// Sets the throttled I/O policy for this thread, reads it back, and restores the default policy. Other threads
/// are not affected.
fn io_policy() -> CheckAnswer {
    let set = |policy| platform::set_io_policy(policy).and_then(|()| platform::io_policy());
    match (set(IoPolicy::Throttled), set(IoPolicy::Default)) {
        (Ok(first), Ok(second)) => {
            let is_kept = (first, second) == (IoPolicy::Throttled, IoPolicy::Default);
            CheckAnswer::new(
                CheckOutcome::from(is_kept),
                format!("read back {}, then {}", first.name(), second.name()),
            )
        }
        (Err(error), _) | (_, Err(error)) => CheckAnswer::differs(error_name(&error)),
    }
}

fn remote_hang_switch() -> CheckAnswer {
    match (platform::forbid_remote_hang(), SYSTEM) {
        (Ok(()), _) => CheckAnswer::ok("accepted"),
        (Err(_), System::Linux) => CheckAnswer::ok("not available"),
        (Err(error), System::MacOs) => CheckAnswer::differs(error_name(&error)),
    }
}

fn mounts() -> CheckAnswer {
    let start = platform::monotonic_ns();
    let found = platform::mounts();
    let time = milliseconds_since(start);
    let found = match found {
        Ok(found) => found,
        Err(error) => return CheckAnswer::differs(error_name(&error)),
    };
    let count = |family| found.iter().filter(|mount| mount.protocol.family() == family).count();
    let has_root = found.iter().any(|mount| mount.point.as_os_str() == "/");
    let text = format!(
        "{} mounts in {time}: {} local, {} network, {} FUSE, {} others",
        found.len(),
        count(ProtocolFamily::Local),
        count(ProtocolFamily::Network),
        count(ProtocolFamily::Fuse),
        count(ProtocolFamily::Other)
    );
    CheckAnswer::new(CheckOutcome::from(has_root), text)
}

fn mount_watch() -> CheckAnswer {
    const WATCHED: Duration = Duration::from_millis(500);
    // One event may be pending from before the watch, and an unrelated mount may come and go during it.
    const MOST_EVENTS: usize = 3;
    let watch = match MountWatch::new() {
        Ok(watch) => watch,
        Err(error) => return CheckAnswer::differs(error_name(&error)),
    };
    let (start, mut events) = (Instant::now(), 0);
    while let Some(left) = WATCHED.checked_sub(start.elapsed()).filter(|_| events <= MOST_EVENTS) {
        match watch.wait(Some(left)) {
            Ok(event) => events += usize::from(event.is_some()),
            Err(error) => return CheckAnswer::differs(error_name(&error)),
        }
    }
    let text = format!("{events} events in {} ms", start.elapsed().as_millis());
    CheckAnswer::new(CheckOutcome::from(events <= MOST_EVENTS), text)
}

/// Checks the disk counters of the calling process, which is a worker process when a target is checked.
pub fn disk_counters() -> CheckAnswer {
    match platform::disk_counters(std::process::id()) {
        Ok(counters) => {
            let has_bytes = counters.read_bytes.is_some() && counters.written_bytes.is_some();
            CheckAnswer::new(CheckOutcome::from(has_bytes), "bytes read and written by this process")
        }
        Err(unavailable) => CheckAnswer::differs(unavailable.reason),
    }
}

fn interfaces() -> CheckAnswer {
    let readings = platform::read_counters(&[]);
    let counters = readings.iter().flat_map(|reading| &reading.counters);
    let (mut counted, mut failure) = (0, None);
    for counter in counters {
        match counter {
            Ok(counters) => counted += usize::from(counters.read_bytes.is_some()),
            Err(unavailable) => failure = Some(unavailable.reason.clone()),
        }
    }
    match failure {
        Some(reason) => CheckAnswer::differs(reason),
        None if counted == 0 => CheckAnswer::unknown("no interface except loopback"),
        None => CheckAnswer::ok(format!("{counted} interfaces")),
    }
}

fn connections() -> CheckAnswer {
    match platform::connection_count() {
        Ok(count) => CheckAnswer::ok(format!("{count} listed")),
        Err(reason) => CheckAnswer::differs(reason),
    }
}

fn error_name(error: &std::io::Error) -> String {
    let name = platform::error_name(error).unwrap_or_else(|| error.kind().to_string());
    format!("failed: {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_checks_succeed_on_this_machine() {
        for check in [
            version,
            clocks,
            timed_call_overhead,
            memory,
            recorder,
            io_policy,
            remote_hang_switch,
            mounts,
            disk_counters,
        ] {
            let answer = check();
            assert_eq!(answer.verdict, CheckOutcome::Ok, "{}", answer.text);
        }
    }
}
