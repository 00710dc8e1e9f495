//! Checks of what a file has beside its content: permissions, times, extended attributes.

use std::ffi::CStr;
use std::time::Duration;

use super::answer::Answer;
use super::names::FILE;
use super::property_folder::PropertyFolder;
use crate::error::RunError;
use crate::platform::{Access, FINDER_INFO, FINDER_TAGS, SYSTEM, System, TEST_XATTR, XattrValue};
use crate::selfcheck::{self, TEST_TIME_NS, time_resolution};

/// Permissions that a check sets: others than those of a new file, and than what shares show for all files.
const TEST_MODE: u16 = 0o640;
/// Time of creation that a check sets: 3 March 2001.
const TEST_CREATED: Duration = Duration::from_secs(983_577_600);

pub fn permissions(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    place.create_file(FILE)?;
    let before = place.facts(FILE)?.mode;
    let file = place.open(FILE)?;
    let set = place.context.set_mode(&file, TEST_MODE);
    place.context.close(file)?;
    match set {
        Ok(true) => {}
        Ok(false) => return Ok(Answer::not_supported()),
        Err(error) => return Answer::refused(error),
    }
    place.reopen()?;
    Ok(judge_mode(before, place.facts(FILE)?.mode).read_from(place.facts_source()))
}

fn judge_mode(before: u16, found: u16) -> Answer {
    match found {
        TEST_MODE => Answer::kept(""),
        _ if found == before => Answer::lost(format!("{TEST_MODE:03o} was accepted, {found:03o} stays")),
        _ => Answer::changed(format!("{found:03o} instead of {TEST_MODE:03o}")),
    }
}

pub fn modification_time(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    place.create_file(FILE)?;
    match place.context.set_times(place.folder(), FILE, TEST_TIME_NS) {
        Ok(true) => {}
        Ok(false) => return Ok(Answer::not_supported()),
        Err(error) => return Answer::refused(error),
    }
    place.reopen()?;
    Ok(judge_time(place.facts(FILE)?.modified_ns).read_from(place.facts_source()))
}

fn judge_time(found_ns: i64) -> Answer {
    match time_resolution(found_ns) {
        Some("1 ns") => Answer::kept(""),
        Some(resolution) => Answer::changed(format!("rounded to {resolution}")),
        None => Answer::lost("another time than the one that was set"),
    }
}

pub fn birth_time(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    place.create_file(FILE)?;
    let Some(created_ns) = place.facts(FILE)?.created_ns else {
        return Ok(Answer::not_tested("this mount reports no time of creation"));
    };
    let file = place.open(FILE)?;
    let set = place.context.set_created(&file, TEST_CREATED);
    place.context.close(file)?;
    let wanted_ns = match set {
        Ok(()) => TEST_CREATED.as_nanos() as i64,
        // Linux cannot set it. What can be checked is that it stays when the file is changed.
        Err(_) if SYSTEM == System::Linux => created_ns,
        Err(error) => return Answer::refused(error),
    };
    place.context.set_times(place.folder(), FILE, TEST_TIME_NS)?;
    place.reopen()?;
    let found = place.facts(FILE)?.created_ns;
    Ok(judge_birth(created_ns, wanted_ns, found).read_from(place.facts_source()))
}

fn judge_birth(created_ns: i64, wanted_ns: i64, found_ns: Option<i64>) -> Answer {
    match found_ns {
        Some(found) if found == wanted_ns && wanted_ns == created_ns => {
            Answer::kept("it stays when the file is changed; Linux cannot set it")
        }
        Some(found) if found == wanted_ns => Answer::kept(""),
        Some(found) if found / 1_000_000_000 == wanted_ns / 1_000_000_000 => {
            Answer::changed("rounded to 1 s")
        }
        Some(_) if wanted_ns == created_ns => Answer::changed("it moves when the file is changed"),
        Some(_) | None => Answer::lost("another time than the one that was set"),
    }
}

pub fn sized_attribute(place: &mut PropertyFolder<'_>, bytes: usize) -> Result<Answer, RunError> {
    let value: Vec<u8> = (0..bytes).map(|offset| (offset * 31 % 251) as u8).collect();
    attribute(place, TEST_XATTR, &value)
}

pub fn finder_tags(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    attribute(place, FINDER_TAGS.name, FINDER_TAGS.value)
}

pub fn finder_info(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    attribute(place, FINDER_INFO, &selfcheck::finder_info())
}

/// Checks an attribute that only some systems have.
pub fn optional_attribute(
    place: &mut PropertyFolder<'_>,
    attribute_value: Option<XattrValue>,
) -> Result<Answer, RunError> {
    match attribute_value {
        Some(XattrValue { name, value }) => attribute(place, name, value),
        None => Ok(Answer::not_tested("this system has no such attribute")),
    }
}

/// Sets an extended attribute of a new file, and reads it back through the file's name in the renamed folder.
fn attribute(place: &mut PropertyFolder<'_>, name: &CStr, value: &[u8]) -> Result<Answer, RunError> {
    place.create_file(FILE)?;
    let file = place.context.open(place.folder(), FILE, Access::Read)?;
    let set = place.context.setxattr(&file, name, value);
    place.context.close(file)?;
    match set {
        Ok(true) => {}
        Ok(false) => return Ok(Answer::not_supported()),
        Err(error) => return Answer::refused(error),
    }
    place.reopen()?;
    let mut buffer = vec![0; value.len() + 64];
    let length = place.context.getxattr_at(place.folder(), FILE, name, &mut buffer)?;
    let found = length.map(|length| &buffer[..length.min(buffer.len())]);
    Ok(judge_attribute(value, found).read_from(place.xattr_source()))
}

fn judge_attribute(value: &[u8], found: Option<&[u8]>) -> Answer {
    match found {
        Some(found) if found == value => Answer::kept(""),
        Some([]) | None => Answer::lost("accepted, but not stored"),
        Some(found) if found.len() == value.len() => Answer::changed("other bytes than those that were set"),
        Some(found) => Answer::changed(format!("{} of {} bytes", found.len(), value.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::KeepResult;

    #[test]
    fn ignored_permissions_are_lost_and_others_are_changed() {
        assert_eq!(judge_mode(0o644, 0o640).result, KeepResult::Kept);
        assert_eq!(judge_mode(0o755, 0o755).result, KeepResult::Lost);
        assert_eq!(judge_mode(0o644, 0o600).detail, "600 instead of 640");
    }

    #[test]
    fn coarser_time_is_changed_and_another_one_is_lost() {
        assert_eq!(judge_time(TEST_TIME_NS).result, KeepResult::Kept);
        assert_eq!(judge_time(TEST_TIME_NS / 100 * 100).detail, "rounded to 100 ns");
        assert_eq!(judge_time(TEST_TIME_NS + 3_600_000_000_000).result, KeepResult::Lost);
    }

    #[test]
    fn time_of_creation_that_moves_is_changed() {
        let stays = judge_birth(5, 5, Some(5));
        assert_eq!((stays.result, stays.detail.is_empty()), (KeepResult::Kept, false));
        assert_eq!(
            judge_birth(5_000_000_000, 5_000_000_000, Some(9_000_000_000)).result,
            KeepResult::Changed
        );
        assert_eq!(judge_birth(5, 9_000_000_000, Some(5)).result, KeepResult::Lost);
    }

    #[test]
    fn missing_and_shortened_attributes_are_told_apart() {
        assert_eq!(judge_attribute(b"ab", Some(b"ab")).result, KeepResult::Kept);
        assert_eq!(judge_attribute(b"ab", None).result, KeepResult::Lost);
        assert_eq!(judge_attribute(b"ab", Some(b"a")).detail, "1 of 2 bytes");
    }
}
