//! The NAS itself, as `longhaul nas check` sees it.

use longhaul_model::{DiskUse, NasFigure, NasProcessors, NasReading, NasUse};

use super::or_no_value;
use crate::document::Document;
use crate::table::Table;
use crate::units;

/// Two readings of a NAS, and the way in which it was read.
#[derive(Debug, Clone, Copy)]
pub struct NasView<'a> {
    /// The way in which it was read: `snmp`, `node-exporter` or `ssh`.
    pub kind: &'a str,
    /// Address in the configuration.
    pub address: &'a str,
    /// Seconds that a reading took.
    pub took_seconds: f64,
    /// Seconds for which a run waits for a reading.
    pub limit_seconds: f64,
    /// The second reading.
    pub reading: &'a NasReading,
    /// Use between the readings. `None`: the counters were reset in between.
    pub found: Option<&'a NasUse>,
}

/// Returns what a NAS tells about itself, and what it does not tell.
pub fn nas(view: NasView<'_>) -> Document {
    let NasView { kind, address, took_seconds, limit_seconds, reading, found } = view;
    let mut document = Document::titled("The NAS");
    let took = units::seconds(took_seconds);
    document.paragraph(format!("Read through {kind} at {address} in {took}. Nothing was changed on it."));
    if took_seconds > limit_seconds {
        let limit = units::seconds(limit_seconds);
        let next = match kind {
            "ssh" => "SNMP and node_exporter answer faster.",
            _ => "Find out what makes it slow: its processor, or the network.",
        };
        document.warning(format!("A run waits for {limit} only, so no run will know how busy it is. {next}"));
    }
    match found {
        None => {
            document.warning("Its counters were reset while it was read. Run this again.");
        }
        Some(found) => {
            let seconds = units::seconds(found.seconds);
            document.paragraph(format!("In {seconds}: {}", processors(reading, found)));
            if !found.disks.is_empty() {
                document.table(disk_table(&found.disks));
            }
        }
    }
    let missing = reading.missing();
    if missing.is_empty() {
        document.paragraph("It reports everything that longhaul asks for.");
    } else {
        let missing = missing.into_iter().map(|figure| missing_text(figure, kind));
        document.section("missing", "Not reported by this NAS").list(missing);
    }
    document
}

/// Returns the reason why a NAS could not be read.
pub fn unread(kind: &str, reason: &str) -> Document {
    let mut document = Document::titled("The NAS");
    let end = if reason.ends_with('?') { "" } else { "." };
    document.warning(format!("Not read through {kind}: {reason}{end}"));
    document
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn processors(reading: &NasReading, found: &NasUse) -> String {
    match (found.processor_share, reading.processors) {
        (Some(share), _) => format!("its processors were busy {} of the time.", percent(share)),
        (None, Some(NasProcessors::LastMinute(share))) => {
            let busy = percent(share);
            format!("too short to measure its processors, which were busy {busy} of the last minute.")
        }
        (None, Some(NasProcessors::Counted { .. })) if reading.min_processor_span.is_zero() => {
            "the counters of its processors did not move, or went back. Run this again; if it happens again, the NAS does not \
             report how busy they are."
                .to_owned()
        }
        (None, Some(NasProcessors::Counted { .. })) => format!(
            "too short to measure its processors. The NAS updates their counters only every few seconds, so longhaul uses \
             them only for runs of {} or longer.",
            units::seconds(reading.min_processor_span.as_secs_f64())
        ),
        (None, None) => "nothing is known about its processors.".to_owned(),
    }
}

fn disk_table(disks: &[DiskUse]) -> Table {
    let mut table = Table::new("Disks of the NAS, the busiest one first").words(["disk"]).figures([
        "busy",
        "requests",
        "time of requests",
        "read and written",
    ]);
    for disk in disks {
        table.row([
            disk.name.clone(),
            or_no_value(disk.busy_share.map(percent)),
            or_no_value(disk.requests.map(units::whole)),
            units::seconds_or_none(disk.request_seconds),
            or_no_value(disk.bytes.map(|bytes| units::bytes(bytes as f64))),
        ]);
    }
    table
}

/// Describes a figure that is missing in readings of a kind, with the next step.
fn missing_text(figure: NasFigure, kind: &str) -> &'static str {
    match figure {
        NasFigure::Processors if kind == "snmp" => {
            "Processor load. Allow the SNMP user to see everything, or use node_exporter or ssh."
        }
        NasFigure::Processors => "Processor load.",
        NasFigure::Disks if kind == "snmp" => {
            "Its disks. Allow the SNMP user to see everything, or use node_exporter or ssh."
        }
        NasFigure::Disks => "Its disks.",
        NasFigure::DiskBusyTime => {
            "The time in which a disk was busy; at most an average of a minute, which is used for runs of a minute and \
             longer. node_exporter and ssh report it."
        }
        NasFigure::DiskRequestTime => {
            "The time that requests to a disk take. SNMP does not report it; node_exporter and ssh do."
        }
        NasFigure::DiskBytes => "The bytes that a disk reads and writes.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;
    use longhaul_model::{Counter, DiskBusy, NasDisk};
    use std::time::Duration;

    fn disk(name: &str, busy: DiskBusy) -> NasDisk {
        let counter = Some(Counter::wide(7));
        NasDisk {
            name: name.to_owned(),
            reads: counter,
            writes: counter,
            busy: Some(busy),
            ..NasDisk::default()
        }
    }

    fn text(reading: &NasReading, found: Option<&NasUse>) -> String {
        let view = NasView {
            kind: "snmp",
            address: "nas.local",
            took_seconds: 0.012,
            limit_seconds: 1.0,
            reading,
            found,
        };
        render::markdown::render(&nas(view))
    }

    #[test]
    fn disks_and_what_is_missing_are_shown() {
        let used = DiskUse {
            name: "sata1".into(),
            busy_share: Some(0.35),
            requests: Some(1200),
            ..DiskUse::default()
        };
        let found = NasUse { seconds: 3.0, processor_share: Some(0.12), disks: vec![used] };
        let reading = NasReading {
            processors: Some(NasProcessors::LastMinute(0.3)),
            disks: vec![disk("sata1", DiskBusy::Counted(Counter::wide(5)))],
            min_processor_span: Duration::from_secs(20),
            ..NasReading::default()
        };
        let text = text(&reading, Some(&found));
        assert!(text.contains("| sata1 | 35 % | 1,200 | – | – |"), "{text}");
        assert!(text.contains("In 3.00 s: its processors were busy 12 % of the time."), "{text}");
        assert!(text.contains("- The time that requests to a disk take."), "{text}");
    }

    #[test]
    fn nas_that_no_run_waits_for_is_a_warning() {
        let reading = NasReading::default();
        let view = NasView {
            kind: "ssh",
            address: "nas",
            took_seconds: 1.4,
            limit_seconds: 1.0,
            reading: &reading,
            found: None,
        };
        let text = render::markdown::render(&nas(view));
        assert!(text.contains("A run waits for 1.00 s only, so no run will know how busy it is."), "{text}");
        assert!(text.contains("- Its disks.\n"), "no advice about SNMP: {text}");
    }

    #[test]
    fn nas_that_tells_little_says_what_to_do() {
        let reading =
            NasReading { disks: vec![disk("sata1", DiskBusy::LastMinute(0.3))], ..NasReading::default() };
        let text = text(&reading, None);
        assert!(
            text.contains("reset while it was read") && text.contains("an average of a minute"),
            "{text}"
        );
        assert!(text.contains("- Processor load."), "{text}");
    }
}
