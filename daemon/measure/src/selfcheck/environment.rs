//! Checks of the machine facts that are stored with each run: power, heat, backups, load, network.

use crate::platform::{self, SYSTEM, System};

use super::check::{CheckAnswer, CheckOutcome, MachineCheck};

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[MachineCheck] = &[
    MachineCheck::call("power source", || {
        required_on_mac(platform::power().map(|power| format!("{power:?}")))
    })
    .linux("reported if a power supply is listed", "kernel Documentation/ABI/testing/sysfs-class-power")
    .macos("reported", "PowerManagement pmset/pmset.m"),
    MachineCheck::call("battery", battery)
        .linux(
            "a percentage, or none without a battery",
            "kernel Documentation/ABI/testing/sysfs-class-power",
        )
        .macos("a percentage, or none without a battery", "PowerManagement pmset/pmset.m"),
    MachineCheck::call("low power mode", || required_on_mac(platform::low_power_mode().map(yes_or_no)))
        .linux(
            "reported if there is a platform profile",
            "kernel Documentation/ABI/testing/sysfs-platform_profile",
        )
        .macos("reported", "PowerManagement pmset/pmset.m"),
    MachineCheck::call("heat", || required_on_mac(platform::is_hot().map(yes_or_no)))
        .linux("reported if there is a thermal zone", "kernel Documentation/driver-api/thermal/sysfs-api.rst")
        .macos("reported", "man pmset(1), -g therm"),
    MachineCheck::call("backup in progress", backup)
        .linux("not available", "Time Machine is part of macOS")
        .macos("reported", "published outputs; man tmutil(8) does not have this verb"),
    MachineCheck::call("load average", load)
        .linux("a number", "getloadavg(3)")
        .macos("a number", "man getloadavg(3)"),
    MachineCheck::call("default network link", link)
        .linux("link type, if there is a default route", "proc_pid_net(5), route")
        .macos(
            "link type, if there is a default route",
            "xnu bsd/net/if_media.h:354; network_cmds ifconfig.tproj/ifmedia.c:136",
        ),
    MachineCheck::call("machine facts", facts)
        .linux("operating system and kernel settings", "proc_sys(5)")
        .macos("operating system and kernel settings", "man sysctl(8)"),
];

fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// Judges a fact that every Mac reports and that a Linux machine may lack.
fn required_on_mac(fact: Option<String>) -> CheckAnswer {
    match (fact, SYSTEM) {
        (Some(fact), _) => CheckAnswer::ok(fact.to_lowercase()),
        (None, System::MacOs) => CheckAnswer::differs("not reported"),
        (None, System::Linux) => CheckAnswer::unknown("not reported"),
    }
}

fn backup() -> CheckAnswer {
    match (platform::backup_running(), SYSTEM) {
        (None, System::Linux) => CheckAnswer::ok("not available"),
        (is_running, _) => required_on_mac(is_running.map(yes_or_no)),
    }
}

fn battery() -> CheckAnswer {
    match platform::battery_percent() {
        None => CheckAnswer::ok("none"),
        Some(percent) => {
            CheckAnswer::new(CheckOutcome::from((0.0..=100.0).contains(&percent)), format!("{percent:.0} %"))
        }
    }
}

fn load() -> CheckAnswer {
    platform::load_average()
        .map_or_else(|| CheckAnswer::differs("not reported"), |load| CheckAnswer::ok(format!("{load:.2}")))
}

/// Checks the network link of the default route. Shows only the type of the link, because the name of an
/// interface may contain the name of a company's VPN.
fn link() -> CheckAnswer {
    let Some(link) = platform::link_to(None) else { return CheckAnswer::unknown("no default route") };
    let mtu = link.mtu.map_or("unknown".to_owned(), |mtu| mtu.to_string());
    CheckAnswer::ok(format!("{}, MTU {mtu}", link.kind.name()))
}

/// Checks that machine facts are found. Shows only their number, because facts contain names of backup disks
/// and contents of settings files.
fn facts() -> CheckAnswer {
    let facts = platform::machine_facts();
    let count = facts.len();
    CheckAnswer::new(CheckOutcome::from(facts.contains_key("system") && count > 1), format!("{count} facts"))
}
