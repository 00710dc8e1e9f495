//! Check of a folder with many names.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::names::numbered;
use super::property_folder::PropertyFolder;
use crate::error::RunError;

/// Numbers of files to reach. The answer names the last one, so that it does not depend on the speed alone. More than 10,000 in
/// [`CREATION_TIME`], one after the other, are for local disks: each would take less than 100 us, with a round trip to the server.
const STEPS: [u32; 3] = [100, 1000, 10_000];
/// Time in which files are created. Removing them takes up to four times as long over SMB.
const CREATION_TIME: Duration = Duration::from_secs(1);
/// Time in which files are created on a slow share, until the first step is reached.
const MAX_CREATION_TIME: Duration = Duration::from_secs(4);

pub fn check(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let (created, refused) = create_files(place)?;
    let listed = count_listed(place, created)?;
    // Removed here because their names are known: one call each.
    for number in 0..created {
        place.files.unlink(&numbered(number), place.context)?;
    }
    if let Some(error) = refused {
        return Answer::refused(error);
    }
    Ok(judge(created, listed).read_from(place.listing_source()))
}

/// Creates files until the time is up. Returns their number, and the error if one is refused.
fn create_files(place: &PropertyFolder<'_>) -> Result<(u32, Option<RunError>), RunError> {
    let start = Instant::now();
    let last = STEPS[STEPS.len() - 1];
    for number in 0..last {
        let limit = if number < STEPS[0] { MAX_CREATION_TIME } else { CREATION_TIME };
        if start.elapsed() >= limit {
            return Ok((number, None));
        }
        match place.create_file(&numbered(number)) {
            Ok(()) => {}
            Err(stopped @ RunError::Stopped(_)) => return Err(stopped),
            Err(error) => return Ok((number, Some(error))),
        }
    }
    Ok((last, None))
}

/// Returns the number of files that the renamed folder lists.
fn count_listed(place: &mut PropertyFolder<'_>, created: u32) -> Result<u32, RunError> {
    place.reopen()?;
    let listed: HashSet<_> = place.context.names(place.folder())?.into_iter().collect();
    Ok((0..created).filter(|number| listed.contains(&numbered(*number))).count() as u32)
}

fn judge(created: u32, listed: u32) -> Answer {
    if listed < created {
        return Answer::lost(format!("{listed} of {created} names are listed"));
    }
    match STEPS.into_iter().rev().find(|step| *step <= created) {
        Some(step) => Answer::kept(format!("{step} names")),
        None => Answer::not_tested(format!("fewer than {} files could be created in time", STEPS[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::KeepResult;

    #[test]
    fn missing_name_is_lost_and_the_count_is_rounded_down() {
        assert_eq!(judge(2999, 2999).detail, "1000 names");
        assert_eq!(judge(1000, 999).result, KeepResult::Lost);
        assert_eq!(judge(50, 50).result, KeepResult::NotTested);
    }
}
