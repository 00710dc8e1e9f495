//! The content that a file on a target has, as far as longhaul knows it.

use longhaul_corpus::Content;
use longhaul_model::{DamagePattern, Timestamp};

/// The content of a file that a workload wrote.
pub trait KnownContent {
    /// Returns the size of the file in bytes.
    fn length(&self) -> u64;

    /// Fills `out` with the content from byte `offset` on. Where several contents are valid, it is the one that is
    /// closest to `found`, which has the same length and place.
    fn expected(&self, offset: u64, found: &[u8], out: &mut [u8]);

    /// Returns the origin of bytes that do not belong at byte `offset`: an earlier version of the file, or another file.
    /// `None` if they are from neither.
    fn origin(&self, offset: u64, found: &[u8]) -> Option<DamagePattern>;

    /// Returns the time at which the data was written; `None` if that is not recorded.
    fn written(&self) -> Option<Timestamp>;
}

/// A file with seeded content. `origins` returns the contents that bytes of it may come from, with their pattern.
pub struct SeededFile<F> {
    /// Content of the file.
    pub content: Content,
    /// Size of the file in bytes.
    pub length: u64,
    /// Time at which the file was written; `None` if that is not recorded.
    pub written: Option<Timestamp>,
    /// Function that returns the contents of earlier versions and of other files.
    pub origins: F,
}

impl<F, I> KnownContent for SeededFile<F>
where
    F: Fn() -> I,
    I: Iterator<Item = (Content, DamagePattern)>,
{
    fn length(&self) -> u64 {
        self.length
    }

    fn expected(&self, offset: u64, _: &[u8], out: &mut [u8]) {
        self.content.fill(offset, out);
    }

    fn origin(&self, offset: u64, found: &[u8]) -> Option<DamagePattern> {
        let mut origins = (self.origins)();
        let is_origin = |content: &Content| content.first_difference(offset, found).is_none();
        origins.find(|(content, _)| is_origin(content)).map(|(_, pattern)| pattern)
    }

    fn written(&self) -> Option<Timestamp> {
        self.written
    }
}
