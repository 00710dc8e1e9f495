//! Checks of names: one name, two similar names, and a long path.

use std::ffi::{CStr, CString};

use super::answer::Answer;
use super::names::{CONTROL, FILE, path_part};
use super::property_folder::PropertyFolder;
use crate::error::RunError;
use crate::platform::{Access, ListingFields};
use crate::selfcheck::{ListedEntry, error_text};
use crate::timed_fs::Folder;
use longhaul_model::KeepResult;

/// Number of folders of a long path. With names of 200 bytes the path is longer than 1,024 bytes, the limit of a path
/// on macOS.
const PATH_DEPTH: usize = 6;
/// Longest name that gvfs can remove over AFP, in bytes. Measured with gvfs 1.50 and Netatalk 4: a name of 255 bytes is
/// created, and then every call with it fails with EIO.
const MAX_AFP_NAME_BYTES: usize = 254;
/// Detail of a name that is kept over SMB although SMB has no such name.
const MAPPED_DETAIL: &str = "this client maps the character, so other protocols show another one";
/// Content of the file at the end of a long path.
const CONTENT: &[u8] = b"content";

/// Creates a file with this name, and looks under which name the renamed folder lists it.
pub fn single(place: &mut PropertyFolder<'_>, name: &CStr) -> Result<Answer, RunError> {
    if place.is_afp_on_linux() && name.count_bytes() > MAX_AFP_NAME_BYTES {
        return Ok(Answer::not_tested("this client creates such a name, and cannot remove it again"));
    }
    if let Err(error) = place.create_file(name) {
        return Answer::refused(error);
    }
    place.reopen()?;
    let listed = listed_names(place, |listed| listed.iter().any(|entry| entry.name.as_c_str() == name));
    let is_found = place.context.server_facts(place.folder(), name).is_ok_and(|facts| facts.is_some());
    // Removed by its given name, because the server may not find it by the name that it lists.
    if is_found || listed.is_err() {
        place.files.unlink(name, place.context)?;
    }
    let listed = match listed {
        Ok(listed) => listed,
        Err(error) => return judge_unlisted(place, error),
    };
    let mut answer = judge_single(name, &listed, is_found).read_from(place.listing_source());
    if answer.result == KeepResult::Kept && place.is_smb() && is_mapped_over_smb(name) {
        answer.detail = MAPPED_DETAIL.to_owned();
    }
    Ok(answer)
}

/// Judges a folder that could not be listed while it contained a file, and that no longer contains it.
///
/// # Errors
///
/// The error of the listing, if the folder still cannot be listed: then the file is not the reason.
fn judge_unlisted(place: &PropertyFolder<'_>, error: RunError) -> Result<Answer, RunError> {
    match (&error, listed_names(place, |_| true)) {
        (RunError::Operation { .. }, Ok(_)) => Ok(Answer::changed(format!(
            "accepted, but the folder cannot be listed while it contains the file: {}",
            error_text(&error)
        ))),
        _ => Err(error),
    }
}

/// Returns whether SMB has no such name: a client sends a letter of the private use area of Unicode for each character
/// that Windows reserves, and for a dot or a space at the end (MS-FSCC 2.1.5; mount.cifs(8), `mapposix`; SMBClient
/// kernel/smbfs/smbfs_subr.c).
fn is_mapped_over_smb(name: &CStr) -> bool {
    let bytes = name.to_bytes();
    bytes.iter().any(|byte| b":\\?*\"<>|".contains(byte)) || matches!(bytes.last(), Some(b'.' | b' '))
}

/// Returns the listed names without the control file.
fn listed_names(
    place: &PropertyFolder<'_>,
    is_complete: impl Fn(&[ListedEntry]) -> bool,
) -> Result<Vec<CString>, RunError> {
    let listed = place.files.list_until(place.context, ListingFields::Names, is_complete)?;
    let names = listed.into_iter().filter(|entry| !entry.is_apple_double()).map(|entry| entry.name);
    Ok(names.filter(|name| name.as_c_str() != CONTROL).collect())
}

fn judge_single(name: &CStr, listed: &[CString], is_found: bool) -> Answer {
    let is_listed = listed.iter().any(|entry| entry.as_c_str() == name);
    match (is_listed, is_found, listed.first()) {
        (true, true, _) => Answer::kept(""),
        (true, false, _) => Answer::changed("listed, but not found by its name"),
        (false, _, Some(other)) => Answer::changed(format!("listed as {:?}", other.to_string_lossy())),
        (false, _, None) => Answer::lost("accepted, but not listed"),
    }
}

/// Creates two files whose names are similar, and looks whether both exist.
pub fn pair(place: &mut PropertyFolder<'_>, names: [&CStr; 2]) -> Result<Answer, RunError> {
    let [first, second] = names;
    if let Err(error) = place.files.write(first, b"1", place.context) {
        return Answer::refused(error);
    }
    let is_one_file = place.context.server_facts(place.folder(), second)?.is_some();
    if is_one_file {
        return Ok(one_file().read_from(place.facts_source()));
    }
    if let Err(error) = place.files.write(second, b"2", place.context) {
        return Answer::refused(error);
    }
    place.reopen()?;
    let content = |name| place.files.read(name, 8, place.context);
    let are_apart = content(first)? == b"1" && content(second)? == b"2";
    let listed = listed_names(place, |listed| listed.len() > names.len())?;
    let are_listed = names.iter().all(|name| listed.iter().any(|entry| entry.as_c_str() == *name));
    Ok(match (are_apart, are_listed) {
        (true, true) => Answer::kept(""),
        (true, false) => Answer::changed("both exist, but are listed under other names"),
        (false, _) => one_file(),
    }
    .read_from(place.listing_source()))
}

fn one_file() -> Answer {
    Answer::lost("both names lead to one file, so that the second one replaces the first")
}

/// Creates a file below many folders with long names.
pub fn long_path(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let part = path_part();
    if let Err(error) = write_deep(place, &part) {
        return Answer::refused(error);
    }
    place.reopen()?;
    let deepest = open_deep(place, &part)?;
    let file = place.context.open(&deepest, FILE, Access::Read)?;
    let mut content = [0; CONTENT.len()];
    let length = place.context.read_full(&file, &mut content, 0)?;
    place.context.close(file)?;
    Ok(match content[..length] == *CONTENT {
        true => Answer::kept(format!("{} bytes below the folder of the check", deep_bytes(&part))),
        false => Answer::lost("the file is there without its content"),
    }
    .read_from(place.listing_source()))
}

fn deep_bytes(part: &CStr) -> usize {
    PATH_DEPTH * (part.count_bytes() + 1) + FILE.count_bytes()
}

fn write_deep(place: &PropertyFolder<'_>, part: &CStr) -> Result<(), RunError> {
    let mut folder = place.context.create_and_open_folder(place.folder(), part)?;
    for _ in 1..PATH_DEPTH {
        folder = place.context.create_and_open_folder(&folder, part)?;
    }
    let file = place.context.create(&folder, FILE)?;
    place.context.write_all(&file, CONTENT, 0)?;
    place.context.close(file)
}

fn open_deep(place: &PropertyFolder<'_>, part: &CStr) -> Result<Folder, RunError> {
    let mut folder = place.context.open_folder(place.folder(), part)?;
    for _ in 1..PATH_DEPTH {
        folder = place.context.open_folder(&folder, part)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_is_listed_in_another_form_is_changed() {
        let name = c"longhaul-a:b";
        let listed = |names: &[&CStr]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let judge = |names: &[&CStr], is_found| judge_single(name, &listed(names), is_found);
        assert_eq!(judge(&[name], true).result, KeepResult::Kept);
        let changed = judge(&[c"longhaul-a\u{f022}b"], true);
        assert_eq!(changed.detail, "listed as \"longhaul-a\\u{f022}b\"");
        assert_eq!(judge(&[], true).result, KeepResult::Lost);
        assert_eq!(judge(&[name], false).result, KeepResult::Changed);
    }

    #[test]
    fn reserved_characters_and_ends_are_mapped_over_smb() {
        assert!([c"a:b", c"a\\b", c"a|b", c"end.", c"end "].into_iter().all(is_mapped_over_smb));
        assert!(![c"file.txt", c"caf\u{e9}"].into_iter().any(is_mapped_over_smb));
    }
}
