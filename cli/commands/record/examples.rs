//! Recordings that come with the program; `examples/recordings/make.sh` makes them.

use longhaul_service::recordings::{RecordingName, Recordings};

use crate::arguments::RecordingChoice;
use crate::errors::UsageError;

/// A recording that comes with the program.
struct Example {
    name: &'static str,
    bytes: &'static [u8],
}

const EXAMPLES: [Example; 6] = [
    Example { name: "rsync", bytes: include_bytes!("../../../examples/recordings/rsync.recording") },
    Example { name: "git", bytes: include_bytes!("../../../examples/recordings/git.recording") },
    Example {
        name: "thumbnails",
        bytes: include_bytes!("../../../examples/recordings/thumbnails.recording"),
    },
    Example { name: "search", bytes: include_bytes!("../../../examples/recordings/search.recording") },
    Example { name: "catalogue", bytes: include_bytes!("../../../examples/recordings/catalogue.recording") },
    Example { name: "import", bytes: include_bytes!("../../../examples/recordings/import.recording") },
];

/// Returns the name of the chosen recording. An example is stored as `example-NAME` first, unless it is there already.
pub fn resolve(choice: &RecordingChoice, recordings: &Recordings) -> anyhow::Result<RecordingName> {
    let wanted = match choice {
        RecordingChoice::Stored(name) => return Ok(name.clone()),
        RecordingChoice::Example(wanted) => wanted,
    };
    let Some(example) = EXAMPLES.iter().find(|example| example.name == wanted) else {
        let names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
        return Err(UsageError(format!(
            "there is no example `{wanted}`; known examples: {}",
            names.join(", ")
        ))
        .into());
    };
    let name: RecordingName = format!("example-{wanted}").parse()?;
    if !recordings.names()?.contains(&name) {
        recordings.create(&name, example.bytes)?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use longhaul_recording::Recording;

    use super::*;

    #[test]
    fn examples_can_be_read_and_are_small() {
        for example in &EXAMPLES {
            let recording = Recording::from_bytes(example.bytes).unwrap();
            assert!(recording.operations.len() > 1000, "{}", example.name);
        }
        assert!(EXAMPLES.iter().map(|example| example.bytes.len()).sum::<usize>() < 300_000);
    }

    #[test]
    fn example_is_stored_once_under_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings::of_database(&folder.path().join("x.sqlite"));
        let git = RecordingChoice::Example("git".to_owned());
        for _ in 0..2 {
            assert_eq!(resolve(&git, &recordings).unwrap().as_str(), "example-git");
        }
        assert_eq!(recordings.names().unwrap().len(), 1);
        let unknown = resolve(&RecordingChoice::Example("hg".to_owned()), &recordings).unwrap_err();
        assert!(unknown.to_string().contains("rsync, git"), "{unknown}");
    }
}
