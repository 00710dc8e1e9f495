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
        let parts = [self.to_string()].into_iter().chain(causes);
        [with_causes(parts)].into_iter().chain(self.hint()).collect::<Vec<_>>().join(": ")
    }
}

/// Returns the text of an error with its causes in one line. A cause that the text before it names already is left out.
///
/// ```
/// use longhaul_model::with_causes;
///
/// let chain = ["read /x: no such file. Give another one", "no such file"];
/// assert_eq!(with_causes(chain), "read /x: no such file. Give another one");
/// assert_eq!(with_causes(["the address of the service", "no such file"]), "the address of the service: no such file");
/// ```
pub fn with_causes(chain: impl IntoIterator<Item = impl ToString>) -> String {
    chain.into_iter().map(|cause| cause.to_string()).fold(String::new(), |text, cause| {
        match (text.is_empty(), text.contains(&cause)) {
            (true, _) => cause,
            (_, true) => text,
            _ => format!("{text}: {cause}"),
        }
    })
}
