//! Tests whether two paths lead to the same folder of a NAS: creates a sandbox with a unique name through one
//! path and looks for it through the other. Only worker processes access the paths.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::time::Duration;

use longhaul_measure::sandbox::CleanMode;
use longhaul_measure::worker::FailureReport;
use longhaul_model::{Role, Target, TargetName};

use crate::worker::{
    EXIT_TIMEOUT, Interruption, Launcher, RequestOptions, Worker, WorkerObserver, end_workers,
};

/// Timeout of an operation. Short, because a user waits for the answer.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of lookups of the marker. The second client may see a new folder late,
/// because clients cache directory listings.
const MAX_LOOKUPS: u32 = 6;
/// Pause between two lookups of the marker.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(500);

/// The result of comparing two paths.
#[derive(Debug, Clone, PartialEq)]
pub enum SameFolder {
    /// Both paths lead to the same folder.
    Same,
    /// The marker created through one path was not seen through the other.
    Different,
    /// The marker could not be removed; the paths may or may not lead to the same folder.
    NotCleaned(FailureReport),
}

/// Creates a marker through `a`, looks for it through `b`, and removes it.
///
/// # Errors
///
/// [`FailureReport`] if one of the paths cannot be used. No marker is left, or the message names it.
pub fn same_folder(
    a: &Path,
    b: &Path,
    launcher: &Launcher,
    observer: &mut dyn WorkerObserver,
) -> Result<SameFolder, FailureReport> {
    let name = unique_name();
    let target = |path: &Path| Target { name: name.clone(), path: path.to_owned(), role: Role::Share };
    let mut creator = Worker::new(target(a), launcher.clone());
    let mut finder = Worker::new(target(b), launcher.clone());
    let mut options = RequestOptions {
        cap: OPERATION_TIMEOUT,
        stop_timeout: OPERATION_TIMEOUT,
        interruption: &Interruption::default(),
        observer,
    };
    creator.create_sandbox(&mut options)?;
    let found = find_marker(&mut finder, &mut options);
    let cleaned = creator.clean_sandbox(CleanMode::Remove, &mut options);
    // Waits for the exits, because each worker removes its local files only then.
    end_workers([&mut creator, &mut finder], EXIT_TIMEOUT);
    match (cleaned, found?) {
        (Err(failure), _) => Ok(SameFolder::NotCleaned(failure)),
        (Ok(_), true) => Ok(SameFolder::Same),
        (Ok(_), false) => Ok(SameFolder::Different),
    }
}

fn find_marker(finder: &mut Worker, options: &mut RequestOptions<'_>) -> Result<bool, FailureReport> {
    for attempt in 0..MAX_LOOKUPS {
        if attempt > 0 {
            std::thread::sleep(LOOKUP_INTERVAL);
        }
        if finder.clean_sandbox(CleanMode::List, options)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a sandbox name that is not in use: a folder found under it was created just now.
fn unique_name() -> TargetName {
    let random = RandomState::new().build_hasher().finish();
    format!("check-{random:016x}").parse().expect("letters, digits and a hyphen are a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_names_differ() {
        assert_ne!(unique_name(), unique_name());
    }
}
