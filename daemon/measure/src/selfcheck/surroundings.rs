//! What is stored about the machine around a run: power, heat, backups, load, network.

use crate::platform::{self, SYSTEM, System};

use super::{Answer, Expectation, Expectations, MachineCheck, Question};

/// The calls of this group.
pub const CHECKS: &[MachineCheck] = &[
    MachineCheck {
        call: "power source",
        expected: Expectations {
            linux: Expectation {
                text: "told where a supply is listed",
                source: "kernel Documentation/ABI/testing/sysfs-class-power",
            },
            macos: Expectation { text: "told", source: "PowerManagement pmset/pmset.c" },
        },
        question: Question::Call(|| on_every_mac(platform::power().map(|power| format!("{power:?}")))),
    },
    MachineCheck {
        call: "battery",
        expected: Expectations {
            linux: Expectation {
                text: "a percentage, or none without a battery",
                source: "kernel Documentation/ABI/testing/sysfs-class-power",
            },
            macos: Expectation {
                text: "a percentage, or none without a battery",
                source: "PowerManagement pmset/pmset.c",
            },
        },
        question: Question::Call(battery),
    },
    MachineCheck {
        call: "low power mode",
        expected: Expectations {
            linux: Expectation {
                text: "told where there is a platform profile",
                source: "kernel Documentation/ABI/testing/sysfs-platform_profile",
            },
            macos: Expectation { text: "told", source: "PowerManagement pmset/pmset.c" },
        },
        question: Question::Call(|| on_every_mac(platform::low_power_mode().map(yes_or_no))),
    },
    MachineCheck {
        call: "heat",
        expected: Expectations {
            linux: Expectation {
                text: "told where there is a thermal zone",
                source: "kernel Documentation/driver-api/thermal/sysfs-api.rst",
            },
            macos: Expectation { text: "told", source: "man pmset(1), -g therm" },
        },
        question: Question::Call(|| on_every_mac(platform::is_hot().map(yes_or_no))),
    },
    MachineCheck {
        call: "backup in progress",
        expected: Expectations {
            linux: Expectation { text: "not offered", source: "Time Machine is part of macOS" },
            macos: Expectation { text: "told", source: "man tmutil(8), status" },
        },
        question: Question::Call(backup),
    },
    MachineCheck {
        call: "load average",
        expected: Expectations {
            linux: Expectation { text: "a number", source: "getloadavg(3)" },
            macos: Expectation { text: "a number", source: "man getloadavg(3)" },
        },
        question: Question::Call(load),
    },
    MachineCheck {
        call: "default link",
        expected: Expectations {
            linux: Expectation { text: "its kind, if there is a route", source: "proc_pid_net(5), route" },
            macos: Expectation {
                text: "its kind, if there is a route",
                source: "xnu bsd/net/if_media.h; network_cmds ifconfig.tproj",
            },
        },
        question: Question::Call(link),
    },
    MachineCheck {
        call: "machine facts",
        expected: Expectations {
            linux: Expectation { text: "the system and settings of the kernel", source: "proc_sys(5)" },
            macos: Expectation { text: "the system and settings of the kernel", source: "man sysctl(8)" },
        },
        question: Question::Call(facts),
    },
];

fn yes_or_no(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

/// A fact that every Mac tells and that other machines may have nothing to tell it from.
fn on_every_mac(told: Option<String>) -> Answer {
    match (told, SYSTEM) {
        (Some(told), _) => Answer::ok(told.to_lowercase()),
        (None, System::MacOs) => Answer::differs("not told"),
        (None, System::Linux) => Answer::unknown("not told"),
    }
}

fn backup() -> Answer {
    match (platform::backup_running(), SYSTEM) {
        (None, System::Linux) => Answer::ok("not offered"),
        (told, _) => on_every_mac(told.map(yes_or_no)),
    }
}

fn battery() -> Answer {
    match platform::battery_percent() {
        None => Answer::ok("none"),
        Some(percent) => Answer::expect((0.0..=100.0).contains(&percent), format!("{percent:.0} %")),
    }
}

fn load() -> Answer {
    platform::load_average()
        .map_or_else(|| Answer::differs("not told"), |load| Answer::ok(format!("{load:.2}")))
}

/// An interface may carry the name of a company's VPN, so only its kind is shown.
fn link() -> Answer {
    let Some(link) = platform::link_to(None) else { return Answer::unknown("no default route") };
    let mtu = link.mtu.map_or("unknown".to_owned(), |mtu| mtu.to_string());
    Answer::ok(format!("{}, MTU {mtu}", link.kind.name()))
}

/// Facts hold names of backup disks and settings of files, so they are only counted.
fn facts() -> Answer {
    let facts = platform::machine_facts();
    let count = facts.len();
    Answer::expect(facts.contains_key("system") && count > 1, format!("{count} facts"))
}
