//! Reads the NAS for a user who checks what it tells.

use std::time::{Duration, Instant};

use longhaul_model::status::{Check, CheckStatus};
use longhaul_model::{NasReading, NasUse};
use longhaul_nas::{NasError, NasReader, NasSettings};

use super::monitor::RUN_LIMIT;

/// Longest time that a check waits for a reading.
const LIMIT: Duration = Duration::from_secs(5);

/// Two readings of a NAS, for a user who checks what it tells.
#[derive(Debug, Clone, PartialEq)]
pub struct NasSample {
    /// Time that the first reading took.
    pub took: Duration,
    /// The second reading.
    pub reading: NasReading,
    /// Use between the readings. `None`: the counters were reset in between.
    pub found: Option<NasUse>,
}

/// Reads a NAS twice, `pause` apart.
///
/// # Errors
///
/// If one of the readings fails.
pub fn sample(settings: &NasSettings, pause: Duration) -> Result<NasSample, NasError> {
    let reader = NasReader::start(settings.source.clone());
    let began = Instant::now();
    let before = reader.read(LIMIT)?;
    let took = before.at.saturating_duration_since(began);
    std::thread::sleep(pause);
    let after = reader.read(LIMIT)?;
    let elapsed = after.at.saturating_duration_since(before.at);
    let found = NasUse::between(&before.reading, &after.reading, elapsed);
    Ok(NasSample { took, reading: after.reading, found })
}

/// Reads the NAS of a configuration once. `None`: none is named.
pub fn check_nas(settings: Option<&NasSettings>) -> Option<Check> {
    let settings = settings?;
    let began = Instant::now();
    let (kind, address) = (settings.source.kind(), settings.source.address());
    Some(match NasReader::start(settings.source.clone()).read(LIMIT) {
        Err(error) => {
            let fix = "correct it, then run `longhaul nas check`";
            Check::problem("nas", CheckStatus::Failed, error.to_string(), fix)
        }
        Ok(_) if began.elapsed() > RUN_LIMIT => Check::problem(
            "nas",
            CheckStatus::Warning,
            format!(
                "{kind} at {address} takes {:.1} s, and a run waits for {} s only",
                began.elapsed().as_secs_f64(),
                RUN_LIMIT.as_secs()
            ),
            "use another `kind` in [nas]: SNMP and node_exporter answer faster than ssh",
        ),
        Ok(found) => Check::ok("nas", format!("{kind} at {address}: {}", contents(&found.reading))),
    })
}

fn contents(reading: &NasReading) -> String {
    let disks = match reading.disks.len() {
        0 => "no disks".to_owned(),
        1 => "1 disk".to_owned(),
        count => format!("{count} disks"),
    };
    let processors = if reading.processors.is_some() { "processors" } else { "no processors" };
    format!("{disks}, {processors}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_nas::NasSource;

    #[test]
    fn check_says_why_a_nas_cannot_be_read() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let source = NasSource::NodeExporter(format!("http://127.0.0.1:{port}/metrics"));
        let check = check_nas(Some(&NasSettings { source, targets: None })).unwrap();
        assert_eq!(check.status, CheckStatus::Failed);
        assert!(check.message.contains("connection refused"), "{check:?}");
        assert_eq!(check_nas(None), None);
    }
}
