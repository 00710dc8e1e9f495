//! Parser of what a node_exporter answers, in the text format of Prometheus.

use std::collections::BTreeMap;

use longhaul_model::{Counter, DiskBusy, NasDisk, NasProcessors, NasReading, NasStart};

use super::devices;
use crate::MAX_DISKS;
use crate::error::NasError;

/// Modes in which a processor does nothing, or waits for a disk.
const IDLE_MODES: [&str; 2] = ["idle", "iowait"];
/// Modes that count in `user` and `nice` already.
const GUEST_MODES: [&str; 2] = ["guest", "guest_nice"];
/// Microseconds at which the kernel's time of a disk starts again: 32 bits of milliseconds.
const DISK_TIME_LIMIT: u64 = (1 << 32) * 1000;

/// One sample: a metric with its labels and its value.
struct Sample<'a> {
    name: &'a str,
    labels: &'a str,
    value: f64,
}

/// Sums while the samples are read.
#[derive(Default)]
struct Sums {
    disks: BTreeMap<String, NasDisk>,
    busy_us: u64,
    total_us: u64,
    /// True if a time of a processor cannot be read: without it the others would tell a wrong share.
    lacks_processor: bool,
    boot_time: Option<u64>,
}

/// Reads the metrics about disks and processors. Other metrics, and lines that are not understood, are left out.
///
/// # Errors
///
/// If there are neither disks nor processors, or more disks than any NAS has.
pub fn read(bytes: &[u8]) -> Result<NasReading, NasError> {
    let mut sums = Sums::default();
    // Each line is decoded by itself: replacing what is not UTF-8 in the whole answer would need up to three times its size.
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(|line| sample(line.trim_end_matches('\r'))).for_each(|sample| sums.add(&sample));
    let Sums { disks, busy_us, total_us, lacks_processor, boot_time } = sums;
    let processors = NasProcessors::Counted { busy: Counter::wide(busy_us), total: Counter::wide(total_us) };
    devices::checked(NasReading {
        start: boot_time.map(NasStart::BootTime),
        processors: (total_us > 0 && !lacks_processor).then_some(processors),
        disks: disks.into_values().collect(),
        ..NasReading::default()
    })
}

impl Sums {
    fn add(&mut self, sample: &Sample<'_>) {
        match sample.name {
            "node_boot_time_seconds" => self.boot_time = whole(sample.value),
            "node_cpu_seconds_total" => self.add_processor(sample),
            name => {
                if let Some(metric) = name.strip_prefix("node_disk_") {
                    self.add_disk(metric, sample);
                }
            }
        }
    }

    fn add_processor(&mut self, sample: &Sample<'_>) {
        let Some(us) = microseconds(sample.value) else {
            self.lacks_processor = true;
            return;
        };
        let mode = label(sample.labels, "mode").unwrap_or_default();
        if GUEST_MODES.contains(&mode.as_str()) {
            return;
        }
        self.total_us = self.total_us.saturating_add(us);
        if !IDLE_MODES.contains(&mode.as_str()) {
            self.busy_us = self.busy_us.saturating_add(us);
        }
    }

    fn add_disk(&mut self, metric: &str, sample: &Sample<'_>) {
        let Some(name) = label(sample.labels, "device") else { return };
        if self.disks.len() > MAX_DISKS && !self.disks.contains_key(&name) {
            return;
        }
        let count = whole(sample.value).map(Counter::wide);
        let time = microseconds(sample.value).map(|value| Counter { value, limit: DISK_TIME_LIMIT });
        let disk = self.disks.entry(name.clone()).or_insert_with(|| NasDisk { name, ..NasDisk::default() });
        match metric {
            "reads_completed_total" => disk.reads = count,
            "writes_completed_total" => disk.writes = count,
            "read_bytes_total" => disk.read_bytes = count,
            "written_bytes_total" => disk.written_bytes = count,
            "read_time_seconds_total" => disk.read_time = time,
            "write_time_seconds_total" => disk.write_time = time,
            "io_time_seconds_total" => disk.busy = time.map(DiskBusy::Counted),
            _ => {}
        }
    }
}

/// Splits a line: `name{labels} value`, possibly with a time. `None`: a comment, or no sample.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        // A label may contain a brace, and no value does.
        Some(rest) => rest.rsplit_once('}')?,
        None => ("", rest),
    };
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    (!name.is_empty() && !name.starts_with('#')).then_some(Sample { name, labels, value })
}

/// Returns the value of a label: `device="sda",mode="idle"`.
fn label(labels: &str, wanted: &str) -> Option<String> {
    let mut rest = labels;
    while let Some((name, after)) = rest.split_once("=\"") {
        let (value, left) = quoted(after)?;
        if name.trim_start_matches([',', ' ']) == wanted {
            return Some(value);
        }
        rest = left;
    }
    None
}

/// Reads up to the closing quotation mark. Returns the text without its escapes, and the rest of the line.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((place, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => {
                value.extend(chars.next().map(|(_, escaped)| if escaped == 'n' { '\n' } else { escaped }))
            }
            other => value.push(other),
        }
    }
    None
}

/// Returns a counter without its fraction. `None`: it is negative, endless or no number.
fn whole(value: f64) -> Option<u64> {
    // Up to 2^63, above which a counter of bytes or requests is no real one.
    (0.0..9.2e18).contains(&value).then_some(value as u64)
}

fn microseconds(seconds: f64) -> Option<u64> {
    whole((seconds * 1e6).round())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::NasProblem;
    use proptest::prelude::*;

    const NODE_EXPORTER_1_9: &[u8] = include_bytes!("../../tests/fixtures/node-exporter-1.9.txt");

    #[test]
    fn metrics_of_a_node_exporter_are_read() {
        let reading = read(NODE_EXPORTER_1_9).unwrap();
        assert_eq!(reading.start, Some(NasStart::BootTime(1_795_631_166)));
        let names: Vec<_> = reading.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "vda"]);
        let disk = &reading.disks[1];
        assert_eq!((disk.reads, disk.writes), (Some(Counter::wide(171_263)), Some(Counter::wide(981_231))));
        assert_eq!(disk.read_bytes, Some(Counter::wide(4_159_438_848)));
        assert_eq!(disk.read_time.map(|time| time.value), Some(92_817_000));
        assert!(matches!(disk.busy, Some(DiskBusy::Counted(Counter { value: 1_210_484_000, .. }))));
        let Some(NasProcessors::Counted { busy, total }) = reading.processors else { panic!() };
        assert_eq!((busy.value, total.value), (30_000_000, 231_000_000));
    }

    #[test]
    fn lines_that_are_not_text_are_left_out() {
        let text =
            [b"\xff\xfe\x00\n", NODE_EXPORTER_1_9, b"\nnode_disk_reads_completed_total{device=\"\xff\"} 1\n"];
        assert_eq!(read(&text.concat()).unwrap(), read(NODE_EXPORTER_1_9).unwrap());
        assert!(read(&[0xff; 1000]).is_err());
    }

    #[test]
    fn labels_may_contain_any_character() {
        assert_eq!(label(r#"a="x,device=\"}",device="s\\d\na""#, "device").as_deref(), Some("s\\d\na"));
        assert_eq!(label(r#"device="never closed"#, "device"), None);
        assert_eq!(label("device", "device"), None);
    }

    #[test]
    fn impossible_values_are_left_out() {
        let text = "node_disk_reads_completed_total{device=\"sda\"} NaN\n\
            node_disk_writes_completed_total{device=\"sda\"} -1\nnode_disk_io_time_seconds_total{device=\"sda\"} +Inf\n";
        let disk = read(text.as_bytes()).unwrap().disks.remove(0);
        assert_eq!((disk.reads, disk.writes, disk.busy), (None, None, None));
    }

    #[test]
    fn page_of_another_program_is_no_reading() {
        for text in ["", "<html><body>DSM</body></html>", "# HELP up\nup 1\n"] {
            assert_eq!(read(text.as_bytes()).unwrap_err().problem, NasProblem::Nothing, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_without_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }

        #[test]
        fn any_lines_end_without_panic(
            text in "((node_cpu_seconds_total|node_disk_io_time_seconds_total)[{} \"\\\\,=a-z0-9.e+-]{0,40}\n){0,20}"
        ) {
            let _ = read(text.as_bytes());
        }
    }
}
