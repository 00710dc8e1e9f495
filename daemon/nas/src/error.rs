//! Reasons why a NAS cannot be read.

use longhaul_model::NasProblem;

/// Reason why a NAS cannot be read, for the user. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NasError {
    /// Kind of the problem, which is stored.
    pub problem: NasProblem,
    /// Operation, address and next step.
    pub message: String,
}

impl NasError {
    /// Creates an error.
    pub fn new(problem: NasProblem, message: impl Into<String>) -> Self {
        Self { problem, message: message.into() }
    }

    /// Creates the error for secrets that cannot be read on this computer.
    pub(crate) fn no_credentials(error: &impl ToString) -> Self {
        Self::new(NasProblem::NoCredentials, error.to_string())
    }
}
