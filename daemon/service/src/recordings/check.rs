//! The part of `longhaul doctor` and `longhaul config` about the recording that rounds replay.

use std::path::Path;

use longhaul_model::status::{Check, CheckStatus};
use longhaul_recording::Recording;

use super::files::{RecordingName, Recordings};

/// Checks that the file of the recording can be read and is whole. `None`: no recording is replayed.
pub fn check_recording(replay: Option<&RecordingName>, database: &Path) -> Option<Check> {
    let name = replay?;
    let fix = "choose another one with `longhaul record use NAME`, or none with `longhaul record use --none`";
    let recordings = Recordings::of_database(database);
    let whole = |bytes: Vec<u8>| {
        let decoded = Recording::from_bytes(&bytes);
        decoded.map_err(|error| format!("cannot read {}: {error}", recordings.path(name).display()))
    };
    Some(match recordings.read(name).map_err(|error| error.to_string()).and_then(whole) {
        Ok(_) => Check::ok("recording", format!("rounds replay `{name}` as the task your-day")),
        Err(error) => Check::problem("recording", CheckStatus::Failed, error, fix),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_or_damaged_recording_is_a_failed_check() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        assert_eq!(check_recording(None, &database), None);
        let name: RecordingName = "day-1".parse().unwrap();
        let check = check_recording(Some(&name), &database).unwrap();
        assert_eq!(check.status, CheckStatus::Failed);
        let recordings = Recordings::of_database(&database);
        let example = include_bytes!("../../../../examples/recordings/search.recording");
        recordings.create(&name, &example[..example.len() / 2]).unwrap();
        assert_eq!(check_recording(Some(&name), &database).unwrap().status, CheckStatus::Failed);
        recordings.delete(&name).unwrap();
        recordings.create(&name, example).unwrap();
        assert_eq!(check_recording(Some(&name), &database).unwrap().status, CheckStatus::Ok);
    }
}
