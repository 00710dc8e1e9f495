//! Whether two paths lead to one folder of a NAS: an arena under a name that nobody else has is made through one and
//! looked for through the other. Only workers touch either of them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::time::Duration;

use longhaul_measure::arena::Mode;
use longhaul_measure::model::{Role, Target, TargetName};
use longhaul_measure::worker::Ending;

use crate::worker::{Launcher, Observer, Watch, Worker};

/// How long an operation may take: a person waits for it.
const CAP: Duration = Duration::from_secs(10);
/// So long a worker that has nothing to do any more may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// How often is looked: the other way may learn of a new folder a moment later, as clients keep listings for a while.
const LOOKS: u32 = 6;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Sameness {
    /// They lead to one folder.
    Same,
    /// What was made through one was not seen through the other.
    Different,
    /// They lead to one folder, or not; but what was made could not be removed.
    LeftBehind(Ending),
}

/// Makes a marker through `a`, looks for it through `b`, and removes it.
///
/// # Errors
///
/// [`Ending`] if one of them cannot be used; then nothing is left, or the message says what.
pub fn sameness(
    a: &Path,
    b: &Path,
    launcher: &Launcher,
    observer: &mut dyn Observer,
) -> Result<Sameness, Ending> {
    let name = unique_name();
    let target = |path: &Path| Target { name: name.clone(), path: path.to_owned(), role: Role::Share };
    let mut maker = Worker::new(target(a), launcher.clone());
    let mut seeker = Worker::new(target(b), launcher.clone());
    let mut watch = Watch { cap: CAP, patience: CAP, interrupted: &|| false, observer };
    maker.claim(&mut watch)?;
    let found = seek(&mut seeker, &mut watch);
    let cleaned = maker.clean(Mode::Remove, &mut watch);
    // What they hold on the local disk goes with them.
    for worker in [&mut maker, &mut seeker] {
        worker.dismiss();
        worker.await_end(ENDS_WITHIN);
    }
    match (cleaned, found?) {
        (Err(ending), _) => Ok(Sameness::LeftBehind(ending)),
        (Ok(_), true) => Ok(Sameness::Same),
        (Ok(_), false) => Ok(Sameness::Different),
    }
}

fn seek(seeker: &mut Worker, watch: &mut Watch<'_>) -> Result<bool, Ending> {
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        if seeker.clean(Mode::List, watch)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A name that no arena has: what is found under it was made just now.
fn unique_name() -> TargetName {
    let random = RandomState::new().build_hasher().finish();
    format!("check-{random:016x}").parse().expect("letters, digits and a hyphen are a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same() {
        assert_ne!(unique_name(), unique_name());
    }
}
