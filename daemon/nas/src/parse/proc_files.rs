//! Parser of `/proc/stat` and `/proc/diskstats` of Linux, one after the other.

use longhaul_model::{Counter, DiskBusy, NasDisk, NasProcessors, NasReading, NasStart};

use super::devices;
use crate::MAX_DISKS;
use crate::error::NasError;

/// Bytes of a sector in `/proc/diskstats`, whatever the disk has.
const SECTOR_BYTES: u64 = 512;
/// Number of fields of a disk before the time of flushes and others that newer kernels add.
const MIN_DISK_FIELDS: usize = 13;

/// Reads both files. Lines that are not understood are left out.
///
/// # Errors
///
/// If there are neither disks nor processors, or more disks than any NAS has.
pub fn read(bytes: &[u8]) -> Result<NasReading, NasError> {
    let text = String::from_utf8_lossy(bytes);
    let mut reading = NasReading::default();
    for line in text.lines() {
        if let Some(times) = line.strip_prefix("cpu ") {
            reading.processors = processors(times);
        } else if let Some(seconds) = line.strip_prefix("btime ") {
            reading.start = seconds.trim().parse().ok().map(NasStart::BootTime);
        } else if reading.disks.len() <= MAX_DISKS {
            reading.disks.extend(disk(line));
        }
    }
    devices::checked(reading)
}

/// Reads the times of all processors: user, nice, system, idle, iowait, irq, softirq, steal. Guests count in user.
fn processors(times: &str) -> Option<NasProcessors> {
    let times: Option<Vec<u64>> =
        times.split_ascii_whitespace().take(8).map(|time| time.parse().ok()).collect();
    let times = times.filter(|times| times.len() >= 4)?;
    let total = times.iter().try_fold(0_u64, |sum, time| sum.checked_add(*time))?;
    // A processor that waits for a disk is idle.
    let idle = times[3].checked_add(times.get(4).copied().unwrap_or(0))?;
    Some(NasProcessors::Counted {
        busy: Counter::wide(total.checked_sub(idle)?),
        total: Counter::wide(total),
    })
}

fn disk(line: &str) -> Option<NasDisk> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if fields.len() < MIN_DISK_FIELDS || fields[0].parse::<u32>().is_err() {
        return None;
    }
    let count = |place: usize| Some(Counter::wide(fields[place].parse().ok()?));
    let bytes =
        |place: usize| Some(Counter::wide(fields[place].parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)?));
    Some(NasDisk {
        name: fields[2].to_owned(),
        reads: count(3),
        read_bytes: bytes(5),
        read_time: milliseconds(fields[6]),
        writes: count(7),
        written_bytes: bytes(9),
        write_time: milliseconds(fields[10]),
        busy: milliseconds(fields[12]).map(DiskBusy::Counted),
    })
}

/// Reads milliseconds as microseconds. The kernel keeps 32 bits of them.
fn milliseconds(text: &str) -> Option<Counter> {
    let value: u32 = text.parse().ok()?;
    Some(Counter { value: u64::from(value) * 1000, limit: (1 << 32) * 1000 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::NasProblem;
    use proptest::prelude::*;

    const DEBIAN_12: &[u8] = include_bytes!("../../tests/fixtures/proc-debian-12.txt");
    const DSM_7: &[u8] = include_bytes!("../../tests/fixtures/proc-linux-4.4.txt");

    #[test]
    fn both_files_of_linux_6_are_read() {
        let reading = read(DEBIAN_12).unwrap();
        assert_eq!(reading.start, Some(NasStart::BootTime(1_795_631_166)));
        let names: Vec<_> = reading.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["vda", "md0", "dm-0"]);
        let disk = &reading.disks[0];
        assert_eq!(disk.reads, Some(Counter::wide(171_263)));
        assert_eq!(disk.read_bytes, Some(Counter::wide(8_123_904 * 512)));
        assert_eq!(disk.read_time.map(|time| time.value), Some(92_817_000));
        assert!(matches!(disk.busy, Some(DiskBusy::Counted(Counter { value: 1_210_484_000, .. }))));
    }

    #[test]
    fn linux_4_has_fewer_fields() {
        let reading = read(DSM_7).unwrap();
        let names: Vec<_> = reading.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["sata1", "sata2", "md2"]);
        let Some(NasProcessors::Counted { busy, total }) = reading.processors else { panic!() };
        assert_eq!((busy.value, total.value), (160, 1160), "waiting for a disk is idle");
    }

    #[test]
    fn text_of_another_program_is_no_reading() {
        for text in ["", "Welcome to DSM\nPassword expired\n", "cpu x y z w\n", "8 0 sda 1 2\n"] {
            assert_eq!(read(text.as_bytes()).unwrap_err().problem, NasProblem::Nothing, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_without_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }

        #[test]
        fn any_lines_end_without_panic(text in "((cpu |btime |8 0 sda )?([0-9]{1,22} ){0,16}\n){0,20}") {
            let _ = read(text.as_bytes());
        }
    }
}
