//! Errors that know the next step.

use std::error::Error;

/// An error that knows what the user can do about it. Its own text names the operation, the path and the problem;
/// causes are its [sources](Error::source).
pub trait Hint: Error {
    /// Returns the next step; `None` if there is none to name.
    fn hint(&self) -> Option<String>;

    /// Returns text, causes and next step in one line, for a place that has only one: a log, a status, a table.
    ///
    /// ```
    /// use longhaul_model::Hint;
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("the disk of /data is full")]
    /// struct DiskFull;
    ///
    /// impl Hint for DiskFull {
    ///     fn hint(&self) -> Option<String> {
    ///         Some("free up space on it".to_owned())
    ///     }
    /// }
    /// assert_eq!(DiskFull.one_line(), "the disk of /data is full: free up space on it");
    /// ```
    fn one_line(&self) -> String {
        let causes = std::iter::successors(self.source(), |&cause| cause.source()).map(ToString::to_string);
        let parts: Vec<String> = [self.to_string()].into_iter().chain(causes).chain(self.hint()).collect();
        parts.join(": ")
    }
}
