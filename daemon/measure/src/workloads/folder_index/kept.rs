//! The files of all trees that are kept on a target, and their content.

use std::path::{Component, Path, PathBuf};

use super::slices::{stored_slices, tree};
use crate::checks::integrity::{KnownContent, SeededFile};
use crate::error::RunError;
use crate::workloads::Job;
use longhaul_corpus::Content;
use longhaul_corpus::names::as_os_str;
use longhaul_corpus::slices::{SliceSets, parse_slice_name, slice_name};
use longhaul_corpus::tree::Tree;
use longhaul_model::DamagePattern;

/// Returns the content of a file by its path in the workload's folder; `None` if it is no file of a tree.
pub fn known_content(trees: &SliceSets, path: &Path) -> Option<Box<dyn KnownContent>> {
    let mut parts = path.components();
    let (files, slice) = parse_slice_name(parts.next()?.as_os_str().to_str()?)?;
    let Component::Normal(name) = parts.next_back()? else { return None };
    let number = Tree::parse_number(name.as_encoded_bytes()).filter(|number| *number < files)?;
    let tree = tree(files, slice);
    let origins = move || {
        let others = (0..files).filter(move |other| *other != number);
        others.map(move |other| {
            let name = tree.name(other).to_string_lossy().into_owned();
            (Content::new(tree.seed, other), DamagePattern::OtherFile { name })
        })
    };
    let (content, written) = (Content::new(tree.seed, number), trees.get(files, slice).written_us);
    Some(Box::new(SeededFile { content, length: tree.size(number), written, origins }))
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
