//! The files of all trees that are kept on a target, and their content.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::slices::{parse_slice_name, slice_name, stored_slices, tree};
use crate::checks::integrity::{KnownContent, SeededFile};
use crate::corpus::Content;
use crate::corpus::tree::Tree;
use crate::error::RunError;
use crate::workloads::Job;
use longhaul_model::DamagePattern;

/// Returns the content of a file by its path in the workload's folder; `None` if it is no file of a tree.
pub fn known_content(job: &Job<'_>, path: &Path) -> Result<Option<Box<dyn KnownContent>>, RunError> {
    let mut parts = path.components();
    let slice = parts.next().and_then(|part| parse_slice_name(part.as_os_str().to_str()?));
    let Some((files, slice)) = slice else { return Ok(None) };
    let tree = tree(files, slice);
    let number = parts.next_back().and_then(|part| match part {
        Component::Normal(name) => Tree::parse_number(name.as_encoded_bytes()),
        _ => None,
    });
    let Some(number) = number.filter(|number| *number < files) else { return Ok(None) };
    let written = stored_slices(job)?.slice(files, slice).written_us;
    let origins = move || {
        let others = (0..files).filter(move |other| *other != number);
        others.map(move |other| {
            let name = tree.name(other).to_string_lossy().into_owned();
            (Content::new(tree.seed, other), DamagePattern::OtherFile { name })
        })
    };
    let content = Content::new(tree.seed, number);
    Ok(Some(Box::new(SeededFile { content, length: tree.size(number), written, origins })))
}

/// Returns the paths of all files that were created.
pub fn kept_files(job: &Job<'_>) -> Result<Vec<PathBuf>, RunError> {
    let mut files = vec![];
    for (size, slice, built) in stored_slices(job)?.built_files() {
        let (tree, root) = (tree(size, slice), slice_name(size, slice));
        files.extend((0..built).map(|number| {
            let (folder, name) = (tree.folder(number), tree.name(number));
            [&root].into_iter().chain(&folder).chain([&name]).map(|name| as_os_str(name)).collect::<PathBuf>()
        }));
    }
    Ok(files)
}

fn as_os_str(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
