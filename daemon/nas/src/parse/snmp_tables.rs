//! Parser of the tables and values that an SNMP agent answers. Values of a wrong type are left out.

use std::collections::BTreeMap;
use std::time::Duration;

use async_snmp::{Oid, Value, VarBind};
use longhaul_model::{Counter, DiskBusy, NasDisk, NasProcessors, NasReading, NasStart};

use super::devices;
use crate::MAX_DISKS;
use crate::error::NasError;

/// net-snmp reads the ticks of processors every 5 s (agent/mibgroup/hardware/cpu/cpu.c): in 20 s, a reading that is
/// too old by that much changes a share by at most a quarter.
const MIN_PROCESSOR_SPAN: Duration = Duration::from_secs(20);
/// net-snmp keeps the counters of disks for a second after a question (agent/mibgroup/ucd-snmp/diskio.c), so that the
/// question after a run of 2 s is never answered with older ones.
const MIN_DISK_SPAN: Duration = Duration::from_secs(2);

/// Time since the start of the NAS (HOST-RESOURCES-MIB, RFC 2790).
pub const HOST_UPTIME: [u32; 10] = [1, 3, 6, 1, 2, 1, 25, 1, 1, 0];
/// Time since the start of the agent (SNMPv2-MIB, RFC 3418).
pub const AGENT_UPTIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
/// Time of processors in ticks (UCD-SNMP-MIB, `ssCpuRaw…`); the last number is that of a column below.
pub const PROCESSOR_TICKS: [u32; 8] = [1, 3, 6, 1, 4, 1, 2021, 11];
/// Columns in which processors work: user, nice, system, interrupt, softirq and steal. `ssCpuRawKernel` is part of
/// system on Linux.
pub const BUSY_TICKS: [u32; 6] = [50, 51, 52, 56, 61, 64];
/// Columns in which processors do nothing or wait for a disk: idle and wait.
pub const IDLE_TICKS: [u32; 2] = [53, 54];
/// Average load of each processor in the last minute, in percent (HOST-RESOURCES-MIB, `hrProcessorLoad`).
pub const PROCESSOR_LOAD: [u32; 11] = [1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2];
/// Rows of disks of net-snmp (UCD-DISKIO-MIB, `diskIOEntry`).
pub const DISKS: [u32; 10] = [1, 3, 6, 1, 4, 1, 2021, 13, 15, 1];
/// Rows of disks of a Synology NAS (SYNOLOGY-STORAGEIO-MIB, `storageIOEntry`), with the same columns.
pub const SYNOLOGY_DISKS: [u32; 9] = [1, 3, 6, 1, 4, 1, 6574, 101, 1];

/// Column of a table of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskColumn {
    /// Name of the disk.
    Name = 2,
    /// Number of reads.
    Reads = 5,
    /// Number of writes.
    Writes = 6,
    /// Share of the last minute in which the disk was busy, in percent.
    LastMinute = 9,
    /// Number of bytes read, with 64 bits. Those with 32 bits start again too often.
    ReadBytes = 12,
    /// Number of bytes written, with 64 bits.
    WrittenBytes = 13,
    /// Microseconds in which the disk was busy. A Synology NAS has its serial number here.
    BusyTime = 14,
}

impl DiskColumn {
    /// The columns that are read, the name first.
    pub const ALL: [Self; 7] = [
        Self::Name,
        Self::Reads,
        Self::Writes,
        Self::LastMinute,
        Self::ReadBytes,
        Self::WrittenBytes,
        Self::BusyTime,
    ];

    /// Returns the object id of the column in a table of disks.
    pub fn oid(self, table: &[u32]) -> Oid {
        Oid::new(table.iter().copied().chain([1, self as u32]))
    }
}

/// Answers of an agent: single values, and the columns of its tables.
#[derive(Debug, Clone, Default)]
pub struct SnmpAnswer {
    /// Values of [`HOST_UPTIME`], [`AGENT_UPTIME`] and [`PROCESSOR_TICKS`], as far as the agent has them.
    pub values: Vec<VarBind>,
    /// Values of [`PROCESSOR_LOAD`].
    pub loads: Vec<VarBind>,
    /// Values of a table of disks.
    pub disks: Vec<VarBind>,
}

/// Returns the ids of the single values to ask for.
pub fn single_values() -> Vec<Oid> {
    let ticks = BUSY_TICKS.iter().chain(&IDLE_TICKS);
    let ticks = ticks.map(|column| Oid::new(PROCESSOR_TICKS.iter().copied().chain([*column, 0])));
    [Oid::from_slice(&HOST_UPTIME), Oid::from_slice(&AGENT_UPTIME)].into_iter().chain(ticks).collect()
}

/// Turns the answers of an agent into a reading.
///
/// # Errors
///
/// If there are neither disks nor processors, or more disks than any NAS has.
pub fn read(answer: &SnmpAnswer) -> Result<NasReading, NasError> {
    let reading = NasReading {
        start: start(&answer.values),
        processors: counted_processors(&answer.values).or_else(|| average_load(&answer.loads)),
        disks: disks(&answer.disks),
        min_processor_span: MIN_PROCESSOR_SPAN,
        min_disk_span: MIN_DISK_SPAN,
        ..NasReading::default()
    };
    devices::checked(reading)
}

/// Returns whether the answer has ticks of the processors, so that their load need not be asked for.
pub fn has_processor_ticks(values: &[VarBind]) -> bool {
    counted_processors(values).is_some()
}

fn start(values: &[VarBind]) -> Option<NasStart> {
    let ticks = |id: &[u32]| {
        values.iter().find(|found| found.oid.arcs() == id).and_then(|found| match found.value {
            Value::TimeTicks(ticks) => Some(NasStart::Uptime(Duration::from_millis(u64::from(ticks) * 10))),
            _ => None,
        })
    };
    ticks(&HOST_UPTIME).or_else(|| ticks(&AGENT_UPTIME))
}

fn counted_processors(values: &[VarBind]) -> Option<NasProcessors> {
    let ticks = |column: &u32| {
        let id: Vec<u32> = PROCESSOR_TICKS.iter().copied().chain([*column, 0]).collect();
        let found = values.iter().find(|found| found.oid.arcs() == id)?;
        narrow(&found.value).map(|counter| counter.value)
    };
    // Without one of them, nothing can be told; an agent that lacks the others has no such mode.
    let _needed = (ticks(&50)?, ticks(&53)?);
    let sum = |columns: &[u32]| columns.iter().filter_map(ticks).sum::<u64>();
    let (busy, idle) = (sum(&BUSY_TICKS), sum(&IDLE_TICKS));
    // In its first five seconds, net-snmp answers with zeros.
    let (busy, total) = (Counter::wide(busy), Counter::wide(busy + idle));
    (total.value > 0).then_some(NasProcessors::Counted { busy, total })
}

fn average_load(loads: &[VarBind]) -> Option<NasProcessors> {
    let shares: Vec<f64> = loads.iter().filter_map(|load| percent(&load.value)).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    (!shares.is_empty()).then_some(NasProcessors::LastMinute(mean))
}

fn disks(values: &[VarBind]) -> Vec<NasDisk> {
    let mut disks: BTreeMap<u32, NasDisk> = BTreeMap::new();
    for found in values {
        let [.., column, row] = *found.oid.arcs() else { continue };
        if disks.len() > MAX_DISKS && !disks.contains_key(&row) {
            continue;
        }
        let disk = disks.entry(row).or_default();
        match DiskColumn::ALL.into_iter().find(|known| *known as u32 == column) {
            Some(DiskColumn::Name) => disk.name = found.value.as_str().unwrap_or_default().to_owned(),
            Some(DiskColumn::Reads) => disk.reads = narrow(&found.value),
            Some(DiskColumn::Writes) => disk.writes = narrow(&found.value),
            Some(DiskColumn::ReadBytes) => disk.read_bytes = wide(&found.value),
            Some(DiskColumn::WrittenBytes) => disk.written_bytes = wide(&found.value),
            Some(DiskColumn::BusyTime) => {
                disk.busy = wide(&found.value).map(DiskBusy::Counted).or(disk.busy);
            }
            Some(DiskColumn::LastMinute) => {
                disk.busy = disk.busy.or_else(|| percent(&found.value).map(DiskBusy::LastMinute));
            }
            None => {}
        }
    }
    disks.into_values().filter(|disk| !disk.name.is_empty()).collect()
}

fn narrow(value: &Value) -> Option<Counter> {
    match value {
        Value::Counter32(value) => Some(Counter::narrow(*value)),
        _ => None,
    }
}

fn wide(value: &Value) -> Option<Counter> {
    match value {
        Value::Counter64(value) => Some(Counter::wide(*value)),
        _ => None,
    }
}

fn percent(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(percent @ 0..=100) => Some(f64::from(*percent) / 100.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::NasProblem;
    use proptest::prelude::*;

    fn found(id: &[u32], value: Value) -> VarBind {
        VarBind::new(Oid::from_slice(id), value)
    }

    fn cell(column: u32, row: u32, value: Value) -> VarBind {
        let id: Vec<u32> = DISKS.iter().copied().chain([1, column, row]).collect();
        found(&id, value)
    }

    fn name(row: u32, name: &'static str) -> VarBind {
        cell(2, row, Value::OctetString(name.as_bytes().into()))
    }

    #[test]
    fn net_snmp_counts_busy_time_and_ticks() {
        let ticks = [(50, 10), (51, 1), (52, 5), (53, 80), (54, 3), (56, 0), (61, 1)];
        let ticks = ticks.map(|(column, ticks)| {
            let id: Vec<u32> = PROCESSOR_TICKS.iter().copied().chain([column, 0]).collect();
            found(&id, Value::Counter32(ticks))
        });
        let uptime = found(&HOST_UPTIME, Value::TimeTicks(12_345));
        let disks = vec![
            name(25, "sda"),
            name(26, "sda1"),
            cell(5, 25, Value::Counter32(7)),
            cell(9, 25, Value::Integer(20)),
            cell(12, 25, Value::Counter64(1 << 40)),
            cell(14, 25, Value::Counter64(9_000_000)),
        ];
        let answer =
            SnmpAnswer { values: ticks.into_iter().chain([uptime]).collect(), disks, ..Default::default() };
        let reading = read(&answer).unwrap();
        assert_eq!(reading.start, Some(NasStart::Uptime(Duration::from_millis(123_450))));
        let Some(NasProcessors::Counted { busy, total }) = reading.processors else { panic!() };
        assert_eq!((busy.value, total.value), (17, 100));
        assert_eq!(reading.disks.len(), 1);
        assert_eq!(reading.disks[0].busy, Some(DiskBusy::Counted(Counter::wide(9_000_000))));
        assert_eq!(reading.disks[0].read_bytes, Some(Counter::wide(1 << 40)));
    }

    #[test]
    fn serial_number_of_a_synology_disk_is_no_busy_time() {
        let disks = vec![
            name(1, "sata1"),
            cell(9, 1, Value::Integer(35)),
            cell(14, 1, Value::OctetString("ZL2B1234".as_bytes().into())),
        ];
        let loads = [25, 50].map(|load| found(&PROCESSOR_LOAD, Value::Integer(load)));
        let reading = read(&SnmpAnswer { disks, loads: loads.to_vec(), ..Default::default() }).unwrap();
        assert_eq!(reading.disks[0].busy, Some(DiskBusy::LastMinute(0.35)));
        assert_eq!(reading.processors, Some(NasProcessors::LastMinute(0.375)));
    }

    #[test]
    fn values_of_wrong_types_are_left_out() {
        let disks = vec![
            name(1, "sda"),
            cell(5, 1, Value::Integer(7)),
            cell(12, 1, Value::Counter32(7)),
            cell(9, 1, Value::Integer(101)),
            cell(2, 2, Value::Integer(7)),
            cell(5, 3, Value::Counter32(7)),
        ];
        let reading = read(&SnmpAnswer { disks, ..Default::default() }).unwrap();
        assert_eq!(reading.disks, [NasDisk { name: "sda".to_owned(), ..NasDisk::default() }]);
        assert_eq!(read(&SnmpAnswer::default()).unwrap_err().problem, NasProblem::Nothing);
    }

    proptest! {
        #[test]
        fn any_answer_ends_without_panic(
            ids in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..14), 0..40),
            number: u64,
        ) {
            let values = [
                Value::Counter32(number as u32),
                Value::Counter64(number),
                Value::Integer(number as i32),
                Value::OctetString(number.to_be_bytes().to_vec().into()),
                Value::EndOfMibView,
            ];
            let all: Vec<VarBind> = ids.iter().zip(values.iter().cycle())
                .flat_map(|(id, value)| [found(id, value.clone()), cell(id.len() as u32, 1, value.clone())])
                .collect();
            let _ = read(&SnmpAnswer { values: all.clone(), loads: all.clone(), disks: all });
        }
    }
}
