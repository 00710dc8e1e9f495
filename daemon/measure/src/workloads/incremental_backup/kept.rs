//! The content of the files of a backup that are kept on a target.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::checks::integrity::{KnownContent, SeededFile};
use crate::corpus::Content;
use crate::corpus::churn::{SourceFile, SourceTree};
use longhaul_model::{DamagePattern, Timestamp};

/// A generation of a source, and the time by which a file of it was written.
pub struct KeptGeneration<'a> {
    /// Source of the backup.
    pub source: SourceTree,
    /// Generation that the destination equals.
    pub generation: u64,
    /// Function that returns the time by which the files of a generation were written; `None` if it is not recorded.
    pub written_by: &'a dyn Fn(u64) -> Option<Timestamp>,
}

impl KeptGeneration<'_> {
    /// Returns the content of a file by its path in the destination; `None` if the generation has no such file.
    pub fn known_content(&self, path: &Path) -> Option<Box<dyn KnownContent>> {
        let source = self.source;
        let files = source.files_at(self.generation);
        let file = *files.iter().find(|file| path_of(&source, file) == path)?;
        let origins = move || {
            let earlier = (0..file.version).map(move |version| {
                (Content::new(source.content_seed(version), file.number), DamagePattern::OldVersion)
            });
            let others = files.clone().into_iter().filter(move |other| other.number != file.number);
            let others = others.map(move |other| {
                let name = source.name(other.number, other.renames).to_string_lossy().into_owned();
                (content_of(&source, &other), DamagePattern::OtherFile { name })
            });
            earlier.chain(others)
        };
        Some(Box::new(SeededFile {
            content: content_of(&source, &file),
            length: file.size,
            written: (self.written_by)(file.changed_generation),
            origins,
        }))
    }

    /// Returns the paths of all files.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        let source = self.source;
        source.files_at(self.generation).into_iter().map(move |file| path_of(&source, &file))
    }
}

fn content_of(source: &SourceTree, file: &SourceFile) -> Content {
    Content::new(source.content_seed(file.version), file.number)
}

fn path_of(source: &SourceTree, file: &SourceFile) -> PathBuf {
    let names = [source.folder(file.number), source.name(file.number, file.renames)];
    names.iter().map(|name| OsStr::from_bytes(name.to_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_version_of_an_edited_file_is_recognized() {
        let source = SourceTree { seed: 8, files: 200 };
        let kept = KeptGeneration { source, generation: 40, written_by: &|_| None };
        let files = source.files_at(40);
        let file = files.iter().find(|file| file.version > 0 && file.size >= 64).unwrap();
        let content = kept.known_content(&path_of(&source, file)).unwrap();
        let (mut old, mut now) = ([0; 64], [0; 64]);
        Content::new(source.content_seed(file.version - 1), file.number).fill(0, &mut old);
        content.expected(0, &old, &mut now);
        assert_eq!(content_of(&source, file).first_difference(0, &now), None);
        assert_eq!(content.origin(0, &old), Some(DamagePattern::OldVersion));
        assert_eq!(kept.files().count(), files.len());
    }
}
