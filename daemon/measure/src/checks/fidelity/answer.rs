//! The answer of a check, and how an error becomes one.

use crate::error::RunError;
use crate::selfcheck::error_text;
use longhaul_model::{Finding, KeepResult, Property, ReadBack};

/// Answer of the check of one property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub result: KeepResult,
    pub detail: String,
    read_back: ReadBack,
}

/// Errors that tell of the state of the share, and not of what it can keep.
const ENVIRONMENT_ERRORS: [i32; 9] = [
    libc::EIO,
    libc::ESTALE,
    libc::ENOTCONN,
    libc::ETIMEDOUT,
    libc::EHOSTDOWN,
    libc::EHOSTUNREACH,
    libc::EROFS,
    libc::EDQUOT,
    libc::ENXIO,
];

impl Answer {
    fn new(result: KeepResult, detail: impl Into<String>) -> Self {
        Self { result, detail: detail.into(), read_back: ReadBack::Client }
    }

    pub fn kept(detail: impl Into<String>) -> Self {
        Self::new(KeepResult::Kept, detail)
    }

    pub fn changed(detail: impl Into<String>) -> Self {
        Self::new(KeepResult::Changed, detail)
    }

    pub fn lost(detail: impl Into<String>) -> Self {
        Self::new(KeepResult::Lost, detail)
    }

    pub fn not_tested(detail: impl Into<String>) -> Self {
        Self::new(KeepResult::NotTested, detail)
    }

    /// Returns the answer for a refusal that has no error, because a call only reports that it is not supported.
    pub fn not_supported() -> Self {
        Self::new(KeepResult::Refused, "not supported")
    }

    /// Returns the answer for an error of the operation that sets a property.
    ///
    /// # Errors
    ///
    /// The same error if it tells of the state of the share: a share that is gone refuses nothing.
    pub fn refused(error: RunError) -> Result<Self, RunError> {
        match &error {
            RunError::Operation { source, .. } if !is_environment_error(source) => {
                Ok(Self::new(KeepResult::Refused, error_text(&error)))
            }
            _ => Err(error),
        }
    }

    /// Returns this answer with the place from which the value was read back.
    pub fn read_from(mut self, place: ReadBack) -> Self {
        self.read_back = place;
        self
    }

    /// Returns true if the answer tells that the target does not keep something.
    pub fn is_target_fault(&self) -> bool {
        matches!(self.result, KeepResult::Lost | KeepResult::Changed | KeepResult::Refused)
    }

    pub fn into_finding(self, property: Property) -> Finding {
        Finding { property, result: self.result, detail: self.detail, read_back: self.read_back }
    }
}

fn is_environment_error(source: &std::io::Error) -> bool {
    source.raw_os_error().is_some_and(|code| ENVIRONMENT_ERRORS.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Operation;
    use std::path::Path;

    fn failed(code: i32) -> RunError {
        let source = std::io::Error::from_raw_os_error(code);
        RunError::operation(Operation::Setxattr, Path::new("/nas/file"), source)
    }

    #[test]
    fn broken_share_refuses_nothing() {
        let refused = Answer::refused(failed(libc::ENOSPC)).unwrap();
        assert_eq!(
            (refused.result, refused.detail.as_str()),
            (KeepResult::Refused, "`setxattr` failed: ENOSPC")
        );
        assert!(Answer::refused(failed(libc::ENOTCONN)).is_err());
    }
}
