//! Checks which properties of files a target keeps, changes, refuses or loses.
//!
//! Each property has a folder of its own in the sandbox, which is renamed before anything is read back: what the
//! client remembers by path is of no use then. Attributes are asked of the server where the system has a call for it,
//! content is read after it was evicted from memory. What may still come from the client is marked: see
//! [`ReadBack`](longhaul_model::ReadBack).

mod answer;
mod attributes;
mod content;
mod file_names;
mod large_folder;
mod links;
mod locks;
mod names;
mod open_files;
mod property_folder;
mod space;

pub use names::{FOLDER, owns};
pub use property_folder::{PropertyFolder, remove};

use crate::error::RunError;
use crate::platform::{ACCESS_CONTROL_LIST, RESOURCE_FORK};
use crate::selfcheck::error_text;
use crate::timed_fs::{OpenFile, TimedFs};
use answer::Answer;
use longhaul_model::{Finding, Property};
use std::path::Path;

/// Returns the finding for a property that cannot be tested on any target of this system; `None` if it can be.
pub fn untestable(property: Property) -> Option<Finding> {
    let reason = match property {
        Property::ResourceFork if RESOURCE_FORK.is_none() => "Linux has no resource forks",
        Property::AccessControlList if ACCESS_CONTROL_LIST.is_none() => {
            "this version has no check of it on macOS"
        }
        _ => return None,
    };
    Some(Finding::not_tested(property, reason))
}

/// Locks a range of a new file until the file is closed. The error is the finding if the target refuses it.
///
/// # Errors
///
/// If the target cannot be used.
pub fn hold_lock(place: &PropertyFolder<'_>) -> Result<Result<OpenFile, Finding>, RunError> {
    let held = locks::hold(place)?;
    Ok(held.map_err(|answer| answer.into_finding(Property::LockAcrossMounts)))
}

/// Tries the lock that another target holds in its sandbox of this name. Returns nothing if this target does not lead to
/// the file.
///
/// # Errors
///
/// If the file cannot be used.
pub fn try_lock(context: &TimedFs<'_>, target: &Path, sandbox: &str) -> Result<Option<Finding>, RunError> {
    let tried = locks::try_elsewhere(context, target, sandbox)?;
    Ok(tried.map(|answer| answer.into_finding(Property::LockAcrossMounts)))
}

/// Checks one property in its folder.
///
/// # Errors
///
/// If the user or the supervisor stopped the check.
pub fn check(property: Property, place: &mut PropertyFolder<'_>) -> Result<Finding, RunError> {
    let answer = match answer(property, place) {
        Ok(answer) if answer.is_target_fault() && !place.is_intact() => {
            Answer::not_tested("another program removed the files of the check")
        }
        Ok(answer) if answer.is_target_fault() && place.is_full() => {
            Answer::not_tested("the share has no free space")
        }
        Ok(answer) => answer,
        Err(RunError::Stopped(reason)) => return Err(RunError::Stopped(reason)),
        Err(error) => Answer::not_tested(error_text(&error)),
    };
    Ok(answer.into_finding(property))
}

fn answer(property: Property, place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    match property {
        Property::Permissions => attributes::permissions(place),
        Property::ModificationTime => attributes::modification_time(place),
        Property::BirthTime => attributes::birth_time(place),
        Property::TinyAttribute => attributes::sized_attribute(place, 1),
        Property::SmallAttribute => attributes::sized_attribute(place, 4 << 10),
        Property::LargeAttribute => attributes::sized_attribute(place, 64 << 10),
        Property::FinderTags => attributes::finder_tags(place),
        Property::FinderInfo => attributes::finder_info(place),
        Property::ResourceFork => attributes::optional_attribute(place, RESOURCE_FORK),
        Property::AccessControlList => attributes::optional_attribute(place, ACCESS_CONTROL_LIST),
        Property::NormalizationPair => file_names::pair(place, names::NORMALIZATION_PAIR),
        Property::CasePair => file_names::pair(place, names::CASE_PAIR),
        Property::LongPath => file_names::long_path(place),
        Property::HardLink => links::hard_link(place),
        Property::SymbolicLink => links::symbolic_link(place),
        Property::SparseFile => space::sparse_file(place),
        Property::Preallocation => space::preallocation(place),
        Property::LargeFile => space::large_file(place),
        Property::LockWithinMount => locks::within_mount(place),
        Property::RenameOverOpen => open_files::rename_over_open(place),
        Property::DeleteWhileOpen => open_files::delete_while_open(place),
        Property::MemoryMap => content::memory_map(place),
        Property::ExclusiveCreate => content::exclusive_create(place),
        Property::LargeFolder => large_folder::check(place),
        name => match names::single_name(name) {
            Some(name) => file_names::single(place, &name),
            None => Ok(Answer::not_tested("this version of longhaul has no check of it")),
        },
    }
}

#[cfg(test)]
mod tests;
