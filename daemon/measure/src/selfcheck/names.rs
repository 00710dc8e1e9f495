//! Checks of a share's handling of file names: case, normalization, odd characters, length.

use std::ffi::{CStr, CString};

use crate::error::RunError;
use crate::platform::{self, ListingFields};

use super::check::{CheckAnswer, CheckOutcome, CheckedTarget, TargetCheck, TargetCheckMethod};
use super::scratch::{ListedEntry, ScratchFolder};
use super::scratch_names::{COMPOSED, DECOMPOSED, LOWER, ODD_NAMES, UPPER, WIDE_LETTER};

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck::named("case of names", TargetCheckMethod::Files(case))
        .linux("listed with the same case", "path_resolution(7), mount.cifs(8)")
        .macos("listed with the same case", "man getattrlist(2), VOL_CAP_FMT_CASE_PRESERVING"),
    TargetCheck::named("normalization of names", TargetCheckMethod::Files(normalization))
        .linux("found by its name, listed as written or in another form", "path_resolution(7)")
        .macos(
            "found by its name, listed as written or in another form",
            "Apple File System Reference, case and normalization",
        ),
    TargetCheck::named("odd characters in names", TargetCheckMethod::Files(odd_characters))
        .linux("each stored unchanged or refused", "path_resolution(7)")
        .macos(
            "each stored unchanged or refused",
            "SMBClient kernel/netsmb/smb_converter.c:302; xnu bsd/vfs/vfs_utfconv.c:778",
        ),
    TargetCheck::named("longest name", TargetCheckMethod::Files(longest_name))
        .linux("255 bytes", "NAME_MAX, limits.h(0p)")
        .macos("255 bytes", "xnu bsd/sys/syslimits.h:103, NAME_MAX"),
];

/// Length of the longest file name on Linux and macOS (`NAME_MAX`), in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Returns whether a listing contains a name.
fn is_listed(listed: &[ListedEntry], name: &CStr) -> bool {
    listed.iter().any(|entry| entry.name.as_c_str() == name)
}

fn case(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    scratch.write(UPPER, b"x", on.context)?;
    let is_sensitive = on.context.lookup(scratch.folder(), LOWER)?.is_none();
    let listed = scratch.list_until(on.context, ListingFields::Names, |listed| is_listed(listed, UPPER))?;
    let is_preserved = is_listed(&listed, UPPER);
    let sensitive = if is_sensitive { "case-sensitive" } else { "case-insensitive" };
    let preserved = if is_preserved { "case is preserved" } else { "case is not preserved" };
    Ok(CheckAnswer::new(CheckOutcome::from(is_preserved), format!("{sensitive}; {preserved}")))
}

fn normalization(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    scratch.write(COMPOSED, b"x", on.context)?;
    let shows_one = |listed: &[ListedEntry]| is_listed(listed, COMPOSED) || is_listed(listed, DECOMPOSED);
    let listed = scratch.list_until(on.context, ListingFields::Names, shows_one)?;
    let form = match (is_listed(&listed, COMPOSED), is_listed(&listed, DECOMPOSED)) {
        (true, _) => "listed as written",
        (false, true) => "listed in decomposed form",
        (false, false) => "not listed in any form",
    };
    let finds = |name| Ok::<bool, RunError>(on.context.lookup(scratch.folder(), name)?.is_some());
    let (itself, other) = (finds(COMPOSED)?, finds(DECOMPOSED)?);
    let other = if other { "also found by the other form" } else { "not found by the other form" };
    let is_found = itself && shows_one(&listed);
    let itself = if itself { "found by its name" } else { "not found by its name" };
    Ok(CheckAnswer::new(CheckOutcome::from(is_found), format!("{itself}; {form}; {other}")))
}

/// Result of creating a file with a certain name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameOutcome {
    Kept,
    Changed,
    /// The file could not be created, with the name of the error.
    Refused(String),
}

fn odd_characters(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    let outcomes = name_outcomes(on, scratch, &ODD_NAMES.map(|(name, _)| name))?;
    let named: Vec<_> = ODD_NAMES.iter().map(|(_, description)| *description).zip(outcomes).collect();
    Ok(judge_odd(&named))
}

/// Creates a file with each name, lists the folder once, removes the files, and returns the outcome per name.
fn name_outcomes(
    on: &CheckedTarget<'_>,
    scratch: &ScratchFolder,
    names: &[&CStr],
) -> Result<Vec<NameOutcome>, RunError> {
    let refusals = names.iter().map(|name| create_error(on, scratch, name)).collect::<Result<Vec<_>, _>>()?;
    let created =
        || names.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none()).map(|(name, _)| *name);
    let is_complete = |listed: &[ListedEntry]| created().all(|name| is_listed(listed, name));
    let listed = scratch.list_until(on.context, ListingFields::Names, is_complete)?;
    // Each file is removed by the name it was created with, because the name in the listing may be a changed one.
    created().try_for_each(|name| scratch.unlink(name, on.context))?;
    let outcome = |(name, refusal): (&&CStr, Option<String>)| match refusal {
        Some(error) => NameOutcome::Refused(error),
        None if is_listed(&listed, name) => NameOutcome::Kept,
        None => NameOutcome::Changed,
    };
    Ok(names.iter().zip(refusals).map(outcome).collect())
}

/// Creates a file and closes it. Returns the name of the error if the file cannot be created.
fn create_error(
    on: &CheckedTarget<'_>,
    scratch: &ScratchFolder,
    name: &CStr,
) -> Result<Option<String>, RunError> {
    match on.context.create(scratch.folder(), name) {
        Ok(file) => on.context.close(file).map(|()| None),
        Err(RunError::Operation { source, .. }) => {
            Ok(Some(platform::error_name(&source).unwrap_or_else(|| source.kind().to_string())))
        }
        Err(other) => Err(other),
    }
}

fn judge_odd(outcomes: &[(&str, NameOutcome)]) -> CheckAnswer {
    let kept = outcomes.iter().filter(|(_, outcome)| *outcome == NameOutcome::Kept).count();
    let mut text = format!("{kept} of {} stored unchanged", outcomes.len());
    let refused = outcomes.iter().filter_map(|(description, outcome)| match outcome {
        NameOutcome::Refused(error) => Some(format!("{description} ({error})")),
        NameOutcome::Kept | NameOutcome::Changed => None,
    });
    let changed = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == NameOutcome::Changed)
        .map(|(description, _)| (*description).to_owned());
    let (refused, changed): (Vec<_>, Vec<_>) = (refused.collect(), changed.collect());
    for (word, list) in [("refused", &refused), ("changed", &changed)] {
        if !list.is_empty() {
            text += &format!("; {word}: {}", list.join(", "));
        }
    }
    CheckAnswer::new(CheckOutcome::from(changed.is_empty()), text)
}

fn longest_name(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    let mut fits = |length| accepts(on, scratch, "n".repeat(length));
    // Some encrypted folders accept at most 143 bytes, so the actual limit is searched for.
    let found = if fits(MAX_NAME_BYTES)? { MAX_NAME_BYTES } else { longest_accepted(&mut fits)? };
    let more = if fits(MAX_NAME_BYTES + 1)? { "256 are accepted" } else { "256 are refused" };
    let wide = accepts(on, scratch, WIDE_LETTER.repeat(MAX_NAME_BYTES))?;
    let wide = if wide { "accepted" } else { "refused" };
    let text = format!("{found} bytes; {more}; 255 letters of two bytes are {wide}");
    Ok(CheckAnswer::new(CheckOutcome::from(found == MAX_NAME_BYTES), text))
}

fn accepts(on: &CheckedTarget<'_>, scratch: &ScratchFolder, name: String) -> Result<bool, RunError> {
    let name = CString::new(name).expect("the name contains no NUL");
    Ok(name_outcomes(on, scratch, &[&name])? == [NameOutcome::Kept])
}

/// Returns the largest accepted length from 0 to 254, by binary search.
fn longest_accepted(fits: &mut impl FnMut(usize) -> Result<bool, RunError>) -> Result<usize, RunError> {
    let (mut fitting, mut too_long) = (0, MAX_NAME_BYTES);
    while too_long - fitting > 1 {
        let middle = (fitting + too_long) / 2;
        if fits(middle)? { fitting = middle } else { too_long = middle }
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_name_differs_and_refused_name_does_not() {
        let outcomes = [
            ("colon", NameOutcome::Refused("EINVAL".to_owned())),
            ("asterisk", NameOutcome::Kept),
            ("emoji", NameOutcome::Kept),
        ];
        let answer = judge_odd(&outcomes);
        assert_eq!(answer, CheckAnswer::ok("2 of 3 stored unchanged; refused: colon (EINVAL)"));
        let changed = judge_odd(&[("dot at the end", NameOutcome::Changed)]);
        assert_eq!(changed.verdict, CheckOutcome::Differs);
        assert!(changed.text.contains("changed: dot at the end"), "{}", changed.text);
    }

    #[test]
    fn longest_name_is_found_by_binary_search() {
        for longest in [0, 1, 143, 254] {
            let found = longest_accepted(&mut |length| Ok(length <= longest)).unwrap();
            assert_eq!(found, longest);
        }
    }
}
