//! The content of the files of a backup that are kept on a target.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::checks::integrity::{KnownContent, SeededFile};
use longhaul_corpus::Content;
use longhaul_corpus::churn::{SourceFile, SourceTree};
use longhaul_model::{DamagePattern, Timestamp};

/// The files of a generation of a source.
pub struct KeptGeneration {
    source: SourceTree,
    /// Files, by number.
    files: Rc<[SourceFile]>,
}

impl KeptGeneration {
    /// Derives the files of the generation that a destination equals.
    pub fn new(source: SourceTree, generation: u64) -> Self {
        let mut files = source.files_at(generation);
        files.sort_unstable_by_key(|file| file.number);
        Self { source, files: files.into() }
    }

    /// Returns the content of a file by its path in the destination; `None` if the generation has no such file. `written_by`
    /// returns the time by which the files of a generation were written; `None` if it is not recorded.
    pub fn known_content(
        &self,
        path: &Path,
        written_by: impl FnOnce(u64) -> Option<Timestamp>,
    ) -> Option<Box<dyn KnownContent>> {
        let (source, file, files) = (self.source, self.file(path)?, Rc::clone(&self.files));
        let origins = move || {
            let earlier = (0..file.version).map(move |version| {
                (Content::new(source.content_seed(version), file.number), DamagePattern::OldVersion)
            });
            let files = Rc::clone(&files);
            let others = (0..files.len()).map(move |index| files[index]);
            let others = others.filter(move |other| other.number != file.number).map(move |other| {
                let name = SourceTree::name(other.number, other.renames).to_string_lossy().into_owned();
                (content_of(&source, &other), DamagePattern::OtherFile { name })
            });
            earlier.chain(others)
        };
        Some(Box::new(SeededFile {
            content: content_of(&source, &file),
            length: file.size,
            written: written_by(file.changed_generation),
            origins,
        }))
    }

    fn file(&self, path: &Path) -> Option<SourceFile> {
        let number = SourceTree::parse_path(path)?;
        let index = self.files.binary_search_by_key(&number, |file| file.number).ok()?;
        Some(self.files[index]).filter(|file| file.path() == path)
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(SourceFile::path)
    }
}

fn content_of(source: &SourceTree, file: &SourceFile) -> Content {
    Content::new(source.content_seed(file.version), file.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_version_of_an_edited_file_is_recognized() {
        let source = SourceTree { seed: 8, files: 200 };
        let kept = KeptGeneration::new(source, 40);
        let files = source.files_at(40);
        let file = files.iter().find(|file| file.version > 0 && file.size >= 64).unwrap();
        let content = kept.known_content(&file.path(), |_| None).unwrap();
        let (mut old, mut now) = ([0; 64], [0; 64]);
        Content::new(source.content_seed(file.version - 1), file.number).fill(0, &mut old);
        content.expected(0, &old, &mut now);
        assert_eq!(content_of(&source, file).first_difference(0, &now), None);
        assert_eq!(content.origin(0, &old), Some(DamagePattern::OldVersion));
        let renamed = SourceFile { renames: file.renames + 1, ..*file };
        assert!(kept.known_content(&renamed.path(), |_| None).is_none(), "a name that it does not have yet");
        assert_eq!(kept.paths().count(), files.len());
    }
}
