//! Tells disks from other block devices.

use longhaul_model::{NasDisk, NasProblem, NasReading};

use crate::MAX_DISKS;
use crate::error::NasError;

/// Starts of the names of devices that are no disks: they keep data in memory or in files, or are read-only.
const NO_DISKS: [&str; 7] = ["loop", "ram", "zram", "sr", "fd", "pass", "cd"];

/// Removes devices that are no disks, and partitions of disks that are listed too: each request counts in both.
///
/// # Errors
///
/// If there are more devices than any NAS has, or nothing is left and nothing is known about the processors either.
pub(super) fn checked(mut reading: NasReading) -> Result<NasReading, NasError> {
    if reading.disks.len() > MAX_DISKS {
        let message = format!("the NAS lists more than {MAX_DISKS} disks");
        return Err(NasError::new(NasProblem::TooLarge, message));
    }
    let names: Vec<String> = reading.disks.iter().map(|disk| disk.name.clone()).collect();
    reading.disks.retain(|disk| is_disk(disk) && !names.iter().any(|whole| is_partition(&disk.name, whole)));
    if reading.disks.is_empty() && reading.processors.is_none() {
        let message = "the answer contains neither disks nor processors";
        return Err(NasError::new(NasProblem::Nothing, message));
    }
    Ok(reading)
}

fn is_disk(disk: &NasDisk) -> bool {
    let has_number = |start: &&&str| {
        let number = disk.name.strip_prefix(**start);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    !disk.name.is_empty() && !NO_DISKS.iter().any(|start| has_number(&start))
}

/// Returns whether a device is a partition of another one: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition(name: &str, whole: &str) -> bool {
    let Some(rest) = name.strip_prefix(whole).filter(|_| !whole.is_empty()) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.ends_with(|last: char| last.is_ascii_digit()) {
        rest.strip_prefix('p').is_some_and(is_number)
    } else {
        is_number(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(names: &[&str]) -> NasReading {
        let disk = |name: &&str| NasDisk { name: (*name).to_owned(), ..NasDisk::default() };
        NasReading { disks: names.iter().map(disk).collect(), ..NasReading::default() }
    }

    #[test]
    fn partitions_and_devices_in_memory_are_left_out() {
        let listed = ["loop0", "ram1", "sda", "sda1", "sda10", "sdaa", "nvme0n1", "nvme0n1p2", "md0", "md10"];
        let left = checked(reading(&listed)).unwrap();
        let names: Vec<_> = left.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["sda", "sdaa", "nvme0n1", "md0", "md10"]);
    }

    #[test]
    fn partition_without_its_disk_counts() {
        assert_eq!(checked(reading(&["sda3"])).unwrap().disks.len(), 1);
    }

    #[test]
    fn endless_list_of_disks_is_refused() {
        let names: Vec<String> = (0..=MAX_DISKS).map(|number| format!("disk-{number}x")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(checked(reading(&names)).unwrap_err().problem, NasProblem::TooLarge);
        assert_eq!(checked(reading(&["loop0"])).unwrap_err().problem, NasProblem::Nothing);
    }
}
