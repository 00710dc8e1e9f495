//! Checks of what happens to a file that is open: replacement and removal.

use std::ffi::CStr;

use super::answer::Answer;
use super::names::{FILE, OTHER};
use super::property_folder::PropertyFolder;
use crate::error::RunError;
use crate::platform::Access;
use crate::selfcheck::error_text;
use crate::timed_fs::OpenFile;

const OLD: &[u8] = b"old content";
const NEW: &[u8] = b"new content";

/// Renames a file over another one that is open, as programs do that save a document.
pub fn rename_over_open(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    place.files.write(FILE, OLD, context)?;
    place.files.write(OTHER, NEW, context)?;
    let open = context.open(place.folder(), FILE, Access::Read)?;
    let renamed = context.rename(place.folder(), OTHER, FILE);
    let handle = handle_content(place, &open);
    context.close(open)?;
    place.reopen()?;
    let names = Names { file: content(place, FILE)?, other: content(place, OTHER)? };
    judge_rename(renamed, &names, handle).map(|answer| answer.read_from(place.listing_source()))
}

/// Content of the file under each of the two names; `None` if there is none.
struct Names {
    file: Option<Vec<u8>>,
    other: Option<Vec<u8>>,
}

fn content(place: &PropertyFolder<'_>, name: &CStr) -> Result<Option<Vec<u8>>, RunError> {
    match place.context.server_facts(place.folder(), name)? {
        Some(_) => Ok(Some(place.read_evicted(name, 0, OLD.len())?.0)),
        None => Ok(None),
    }
}

/// Content of a file, as an open handle shows it.
fn handle_content(place: &PropertyFolder<'_>, open: &OpenFile) -> Result<Vec<u8>, RunError> {
    let mut content = vec![0; OLD.len()];
    let length = place.context.read_full(open, &mut content, 0)?;
    content.truncate(length);
    Ok(content)
}

fn judge_rename(
    renamed: Result<(), RunError>,
    names: &Names,
    handle: Result<Vec<u8>, RunError>,
) -> Result<Answer, RunError> {
    let is_replaced = names.file.as_deref() == Some(NEW) && names.other.is_none();
    let is_untouched = names.file.as_deref() == Some(OLD) && names.other.as_deref() == Some(NEW);
    match (renamed, handle) {
        (Ok(()), Ok(handle)) if is_replaced && handle == OLD => Ok(Answer::kept("")),
        (Ok(()), Ok(_)) if is_replaced => {
            Ok(Answer::changed("replaced, and the open handle shows the new file"))
        }
        (Ok(()), Err(error)) if is_replaced => Ok(Answer::changed(format!(
            "replaced, but the open handle shows nothing: {}",
            error_text(&error)
        ))),
        (Ok(()), _) => Ok(Answer::lost("accepted, but the file is not replaced")),
        (Err(error), _) if is_untouched => Answer::refused(error),
        (Err(error), _) => Ok(Answer::lost(format!("{}, and yet the old file is gone", error_text(&error)))),
    }
}

/// Removes a file that is open, as programs do with temporary files.
pub fn delete_while_open(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    place.files.write(FILE, OLD, context)?;
    let open = context.open(place.folder(), FILE, Access::Read)?;
    let removed = context.unlink(place.folder(), FILE);
    let handle = handle_content(place, &open);
    let name = context.server_facts(place.folder(), FILE);
    context.close(open)?;
    if let Err(error) = removed {
        return Answer::refused(error);
    }
    let is_gone = name?.is_none();
    Ok(match handle {
        Ok(handle) if handle == OLD && is_gone => Answer::kept(""),
        Ok(handle) if handle == OLD => Answer::changed("the name stays until the file is closed"),
        Ok(_) => Answer::lost("the open handle shows another content"),
        Err(error) => Answer::lost(format!("the open handle shows nothing: {}", error_text(&error))),
    }
    .read_from(place.facts_source()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{KeepResult, Operation};
    use std::path::Path;

    fn judged(renamed: Result<(), RunError>, file: Option<&[u8]>, other: Option<&[u8]>) -> KeepResult {
        let names = Names { file: file.map(<[u8]>::to_vec), other: other.map(<[u8]>::to_vec) };
        judge_rename(renamed, &names, Ok(OLD.to_vec())).unwrap().result
    }

    #[test]
    fn refused_rename_must_leave_both_files() {
        let refused = || {
            let source = std::io::Error::from_raw_os_error(libc::EBUSY);
            Err(RunError::operation(Operation::Rename, Path::new("file"), source))
        };
        assert_eq!(judged(Ok(()), Some(NEW), None), KeepResult::Kept);
        assert_eq!(judged(Ok(()), Some(OLD), Some(NEW)), KeepResult::Lost);
        assert_eq!(judged(refused(), Some(OLD), Some(NEW)), KeepResult::Refused);
        assert_eq!(judged(refused(), None, Some(NEW)), KeepResult::Lost);
    }
}
