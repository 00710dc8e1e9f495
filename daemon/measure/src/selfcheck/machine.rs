//! What longhaul asks of its own process and of the kernel.

use std::time::{Duration, Instant};

use crate::context::instrument_ns;
use crate::model::{Family, Operation};
use crate::platform::{self, IoPolicy, MountWatch, SYSTEM, System};
use crate::recorder::Recorder;

use super::{Answer, Expectation, Expectations, MachineCheck, Question, milliseconds_since};

/// The calls of this group.
pub const CHECKS: &[MachineCheck] = &[
    MachineCheck {
        call: "system version",
        expected: Expectations {
            linux: Expectation { text: "Linux and its release", source: "uname(2)" },
            macos: Expectation {
                text: "macOS, version and build",
                source: "xnu bsd/kern/kern_sysctl.c, kern.osproductversion",
            },
        },
        question: Question::Call(version),
    },
    MachineCheck {
        call: "clocks",
        expected: Expectations {
            linux: Expectation {
                text: "neither goes back; the one that counts sleep is ahead",
                source: "clock_gettime(2)",
            },
            macos: Expectation {
                text: "neither goes back; the one that counts sleep is ahead",
                source: "Libc gen/clock_gettime.c",
            },
        },
        question: Question::Call(clocks),
    },
    MachineCheck {
        call: "cost of a timed call",
        expected: Expectations {
            linux: Expectation { text: "less than 1 ms", source: "vdso(7)" },
            macos: Expectation { text: "less than 1 ms", source: "Libc gen/clock_gettime.c" },
        },
        question: Question::Call(instrument),
    },
    MachineCheck {
        call: "peak memory",
        expected: Expectations {
            linux: Expectation { text: "from 1 MB to 10 GB", source: "proc_pid_status(5)" },
            macos: Expectation { text: "from 1 MB to 10 GB", source: "man getrusage(2), ru_maxrss" },
        },
        question: Question::Call(memory),
    },
    MachineCheck {
        call: "flight recorder",
        expected: Expectations {
            linux: Expectation {
                text: "a call is seen through the second mapping",
                source: "memfd_create(2), mmap(2)",
            },
            macos: Expectation { text: "a call is seen through the second mapping", source: "man mmap(2)" },
        },
        question: Question::Call(recorder),
    },
    MachineCheck {
        call: "I/O policy",
        expected: Expectations {
            linux: Expectation { text: "set, read back, and set back", source: "ioprio_set(2)" },
            macos: Expectation {
                text: "set, read back, and set back",
                source: "man getiopolicy_np(3); xnu bsd/sys/resource.h",
            },
        },
        question: Question::Call(io_policy),
    },
    MachineCheck {
        call: "switch against hangs",
        expected: Expectations {
            linux: Expectation { text: "not offered", source: "signal(7): a signal ends a wait for NFS" },
            macos: Expectation {
                text: "accepted without a privilege",
                source: "xnu bsd/vfs/vfs_subr.c, vfs.generic.noremotehang",
            },
        },
        question: Question::Call(hang_switch),
    },
    MachineCheck {
        call: "mount table",
        expected: Expectations {
            linux: Expectation { text: "a mount on the root folder", source: "proc_pid_mountinfo(5)" },
            macos: Expectation {
                text: "a mount on the root folder, at once",
                source: "xnu bsd/vfs/vfs_syscalls.c, getfsstat_callback",
            },
        },
        question: Question::Call(mounts),
    },
    MachineCheck {
        call: "mount watch",
        expected: Expectations {
            linux: Expectation {
                text: "made, and quiet while nothing is mounted",
                source: "kernel fs/proc_namespace.c, mounts_poll",
            },
            macos: Expectation {
                text: "made, and quiet while nothing is mounted",
                source: "xnu bsd/vfs/vfs_subr.c, fs_filtops",
            },
        },
        question: Question::Call(mount_watch),
    },
    MachineCheck {
        call: "disk counters",
        expected: Expectations {
            linux: Expectation { text: "bytes of this process", source: "proc_pid_io(5)" },
            macos: Expectation {
                text: "bytes of this process",
                source: "xnu bsd/sys/resource.h, rusage_info_v2",
            },
        },
        question: Question::Call(disk_counters),
    },
    MachineCheck {
        call: "interface counters",
        expected: Expectations {
            linux: Expectation { text: "bytes of each interface", source: "proc_pid_net(5), dev" },
            macos: Expectation { text: "bytes of each interface", source: "xnu bsd/net/if_mib.h" },
        },
        question: Question::Call(interfaces),
    },
    MachineCheck {
        call: "connections",
        expected: Expectations {
            linux: Expectation { text: "a list, without a privilege", source: "sock_diag(7)" },
            macos: Expectation {
                text: "a list, without a privilege",
                source: "xnu bsd/netinet/in_pcblist.c, pcblist_n",
            },
        },
        question: Question::Call(connections),
    },
];

fn version() -> Answer {
    let version = platform::system_version();
    let has_number =
        version.split(' ').nth(1).is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    Answer::expect(has_number, version)
}

fn clocks() -> Answer {
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
    let asleep = continuous.saturating_sub(monotonic) / 1_000_000_000;
    let order = match (goes_back, is_ahead) {
        (true, _) => "the monotonic clock goes back",
        (false, false) => "the clock that counts sleep is behind",
        (false, true) => "in order",
    };
    Answer::expect(
        is_ahead && !goes_back,
        format!("{order}; finest step {finest}, {asleep} s asleep since the start"),
    )
}

fn instrument() -> Answer {
    const MOST_NS: f64 = 1e6;
    match instrument_ns() {
        Ok(cost) => Answer::expect(cost < MOST_NS, format!("{cost:.0} ns")),
        Err(error) => Answer::differs(error_name(&error)),
    }
}

fn memory() -> Answer {
    match platform::peak_memory_bytes() {
        None => Answer::differs("not told"),
        Some(bytes) => {
            let is_plausible = (1_000_000..10_000_000_000).contains(&bytes);
            Answer::expect(is_plausible, format!("{:.1} MB", bytes as f64 / 1e6))
        }
    }
}

fn recorder() -> Answer {
    let seen = || {
        let (file, path) = platform::shared_file()?;
        let ours = Recorder::create(&file)?;
        let theirs = Recorder::open(&path);
        // On macOS it has a name, which goes as soon as both have mapped it.
        let _ = std::fs::remove_file(&path);
        ours.lane(0).begin(Operation::Read, platform::monotonic_ns());
        Ok::<_, std::io::Error>(theirs?.in_flight().map(|flight| flight.operation))
    };
    match seen() {
        Ok(Some(Operation::Read)) => Answer::ok("a call is seen through the second mapping"),
        Ok(_) => Answer::differs("a call is not seen through the second mapping"),
        Err(error) => Answer::differs(error_name(&error)),
    }
}

/// Only this thread is throttled meanwhile.
fn io_policy() -> Answer {
    let set = |policy| platform::set_io_policy(policy).and_then(|()| platform::io_policy());
    match (set(IoPolicy::Throttled), set(IoPolicy::Default)) {
        (Ok(first), Ok(second)) => {
            let is_kept = (first, second) == (IoPolicy::Throttled, IoPolicy::Default);
            Answer::expect(is_kept, format!("read back {}, then {}", first.name(), second.name()))
        }
        (Err(error), _) | (_, Err(error)) => Answer::differs(error_name(&error)),
    }
}

fn hang_switch() -> Answer {
    match (platform::forbid_remote_hang(), SYSTEM) {
        (Ok(()), _) => Answer::ok("accepted"),
        (Err(_), System::Linux) => Answer::ok("not offered"),
        (Err(error), System::MacOs) => Answer::differs(error_name(&error)),
    }
}

fn mounts() -> Answer {
    let began = platform::monotonic_ns();
    let found = platform::mounts();
    let took = milliseconds_since(began);
    let found = match found {
        Ok(found) => found,
        Err(error) => return Answer::differs(error_name(&error)),
    };
    let count = |family| found.iter().filter(|mount| mount.protocol.family() == family).count();
    let has_root = found.iter().any(|mount| mount.point.as_os_str() == "/");
    let text = format!(
        "{} mounts in {took}: {} local, {} network, {} FUSE, {} others",
        found.len(),
        count(Family::Local),
        count(Family::Network),
        count(Family::Fuse),
        count(Family::Other)
    );
    Answer::expect(has_root, text)
}

fn mount_watch() -> Answer {
    const WATCHED: Duration = Duration::from_millis(500);
    // One event may wait from before, another mount may come and go by chance.
    const MOST_EVENTS: usize = 3;
    let watch = match MountWatch::new() {
        Ok(watch) => watch,
        Err(error) => return Answer::differs(error_name(&error)),
    };
    let (began, mut events) = (Instant::now(), 0);
    while let Some(left) = WATCHED.checked_sub(began.elapsed()).filter(|_| events <= MOST_EVENTS) {
        match watch.wait(Some(left)) {
            Ok(changed) => events += usize::from(changed),
            Err(error) => return Answer::differs(error_name(&error)),
        }
    }
    let text = format!("{events} events in {} ms", began.elapsed().as_millis());
    Answer::expect(events <= MOST_EVENTS, text)
}

/// The counters of this process: those of a worker where a worker asks.
pub fn disk_counters() -> Answer {
    match platform::disk_counters(std::process::id()) {
        Ok(counters) => {
            let are_there = counters.read_bytes.is_some() && counters.written_bytes.is_some();
            Answer::expect(are_there, "bytes read and written by this process")
        }
        Err(unread) => Answer::differs(unread.why),
    }
}

fn interfaces() -> Answer {
    let readings = platform::readings(&[]);
    let told = readings.iter().flat_map(|reading| &reading.counters);
    let (mut counted, mut why) = (0, None);
    for one in told {
        match one {
            Ok(counters) => counted += usize::from(counters.read_bytes.is_some()),
            Err(unread) => why = Some(unread.why.clone()),
        }
    }
    match why {
        Some(why) => Answer::differs(why),
        None if counted == 0 => Answer::unknown("no interface but the loopback"),
        None => Answer::ok(format!("{counted} interfaces")),
    }
}

fn connections() -> Answer {
    match platform::connection_count() {
        Ok(count) => Answer::ok(format!("{count} listed")),
        Err(why) => Answer::differs(why),
    }
}

fn error_name(error: &std::io::Error) -> String {
    let name = platform::error_name(error).unwrap_or_else(|| error.kind().to_string());
    format!("failed: {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selfcheck::Verdict;

    #[test]
    fn calls_of_this_machine_are_answered() {
        for check in
            [version, clocks, instrument, memory, recorder, io_policy, hang_switch, mounts, disk_counters]
        {
            let answer = check();
            assert_eq!(answer.verdict, Verdict::Ok, "{}", answer.text);
        }
    }
}
