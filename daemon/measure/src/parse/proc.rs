//! Parsers for small facts from `/proc` and `/sys`.

use longhaul_model::Power;

/// Returns the peak resident memory in bytes: `VmHWM` of `/proc/self/status`.
pub fn status_peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Contents of the files of an entry of `/sys/class/power_supply` (Documentation/ABI/testing/sysfs-class-power). A file
/// that does not exist counts as empty.
#[derive(Debug, Clone, Default)]
pub struct PowerSupply {
    /// File `type`, such as `Mains` or `Battery`.
    pub kind: String,
    /// File `scope`: `Device` for a supply of something else, such as a mouse (drivers/hid/hid-input.c).
    pub scope: String,
    /// File `online`: `0` for a supply that is not connected.
    pub online: String,
}

impl PowerSupply {
    /// Returns whether this is a battery that the machine itself runs on.
    pub fn is_battery_of_machine(&self) -> bool {
        self.is_of_machine(&["Battery"])
    }

    fn is_of_machine(&self, kinds: &[&str]) -> bool {
        self.scope.trim() != "Device" && kinds.contains(&self.kind.trim())
    }

    /// Returns whether the machine takes its power from this supply. A USB supply with an adjustable voltage has the value 2.
    fn feeds_machine(&self) -> bool {
        self.is_of_machine(&["Mains", "USB", "Wireless", "UPS"]) && matches!(self.online.trim(), "1" | "2")
    }

    fn is_offline_ups(&self) -> bool {
        self.is_of_machine(&["UPS"]) && self.online.trim() == "0"
    }
}

/// Returns the power source, from the entries of `/sys/class/power_supply`. A supply that is online decides; without one, a
/// battery or an offline UPS means battery. Other offline supplies tell nothing: a desktop has USB ports, too.
pub fn power_supplies(supplies: &[PowerSupply]) -> Option<Power> {
    if supplies.iter().any(PowerSupply::feeds_machine) {
        return Some(Power::Mains);
    }
    let is_on_battery = |supply: &PowerSupply| supply.is_battery_of_machine() || supply.is_offline_ups();
    supplies.iter().any(is_on_battery).then_some(Power::Battery)
}

/// Charge of a battery, from the files of its entry of `/sys/class/power_supply`. `None`: there is no such file, or the battery
/// was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BatteryCharge {
    /// File `energy_now`, in microwatt hours.
    pub energy_now: Option<f64>,
    /// File `energy_full`, in microwatt hours.
    pub energy_full: Option<f64>,
    /// File `charge_now`, in microampere hours.
    pub charge_now: Option<f64>,
    /// File `charge_full`, in microampere hours.
    pub charge_full: Option<f64>,
    /// File `capacity`, in percent.
    pub capacity: Option<f64>,
}

/// Value of a battery; `None` if it is unknown.
type BatteryValue = fn(&BatteryCharge) -> Option<f64>;

/// Returns the charge of all batteries together, in percent. The share of several is that of their energy or charge, else the
/// mean of their shares.
pub fn batteries_percent(batteries: &[BatteryCharge]) -> Option<f64> {
    let known = || batteries.iter().filter(|battery| **battery != BatteryCharge::default());
    let capacities: Vec<f64> = known().filter_map(|battery| battery.capacity).collect();
    let mean = || (!capacities.is_empty()).then(|| capacities.iter().sum::<f64>() / capacities.len() as f64);
    let share = |now: BatteryValue, full: BatteryValue| {
        let total = |value: BatteryValue| known().map(value).sum::<Option<f64>>();
        let (now, full) = (total(now)?, total(full)?);
        (full > 0.0).then(|| (100.0 * now / full).min(100.0))
    };
    let of_totals = || {
        share(|battery| battery.energy_now, |battery| battery.energy_full)
            .or_else(|| share(|battery| battery.charge_now, |battery| battery.charge_full))
    };
    // The share of a single battery is the one that desktops show.
    if known().count() == 1 { mean().or_else(of_totals) } else { of_totals().or_else(mean) }
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

    fn supply(kind: &str, online: &str) -> PowerSupply {
        PowerSupply { kind: format!("{kind}\n"), online: format!("{online}\n"), scope: String::new() }
    }

    #[test]
    fn an_online_power_supply_decides() {
        let (battery, mains) = (supply("Battery", ""), |online| supply("Mains", online));
        assert_eq!(power_supplies(&[battery.clone(), mains("1")]), Some(Power::Mains));
        assert_eq!(power_supplies(&[mains("0"), battery.clone()]), Some(Power::Battery));
        assert_eq!(power_supplies(&[battery, supply("USB", "2")]), Some(Power::Mains), "adjustable voltage");
        assert_eq!(power_supplies(&[supply("UPS", "0")]), Some(Power::Battery));
        assert_eq!(power_supplies(&[]), None);
    }

    #[test]
    fn batteries_are_as_full_as_all_of_them_together() {
        let energy = |now: f64, full: f64| BatteryCharge {
            energy_now: Some(now),
            energy_full: Some(full),
            capacity: Some((100.0 * now / full).floor()),
            ..BatteryCharge::default()
        };
        let charge = |now: f64| BatteryCharge {
            charge_now: Some(now),
            charge_full: Some(100.0),
            ..BatteryCharge::default()
        };
        assert_eq!(batteries_percent(&[energy(95.0, 100.0), energy(5.0, 100.0)]), Some(50.0));
        assert_eq!(batteries_percent(&[energy(60.0, 60.0), energy(0.0, 20.0)]), Some(75.0), "unequal sizes");
        assert_eq!(batteries_percent(&[charge(30.0), charge(10.0)]), Some(20.0));
        let with_empty_bay = [energy(1.0, 3.0), BatteryCharge::default()];
        assert_eq!(batteries_percent(&with_empty_bay), Some(33.0));
    }

    #[test]
    fn batteries_that_tell_only_their_share_are_averaged() {
        let capacity = |percent| BatteryCharge { capacity: Some(percent), ..BatteryCharge::default() };
        assert_eq!(batteries_percent(&[capacity(95.0), capacity(5.0)]), Some(50.0));
        assert_eq!((batteries_percent(&[]), batteries_percent(&[BatteryCharge::default()])), (None, None));
    }

    #[test]
    fn a_mouse_and_idle_ports_are_no_battery_of_the_machine() {
        let of_device = |kind| PowerSupply { scope: "Device\n".to_owned(), ..supply(kind, "1") };
        let supplies = [of_device("Battery"), of_device("USB"), supply("USB", "0"), supply("Mains", "0")];
        assert!(!supplies[0].is_battery_of_machine() && supply("Battery", "").is_battery_of_machine());
        assert_eq!(power_supplies(&supplies), None);
    }
}
