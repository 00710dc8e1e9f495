//! Reasons why a round cannot be run or stored.

use longhaul_model::Hint;

/// The reason why a round cannot be run or stored.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The round itself could not be stored.
    #[error("{}", .0.one_line())]
    Store(Box<longhaul_store::Error>),
    /// A run could not be stored. It is included here so that it is not lost.
    #[error("{}. The run that could not be stored, as JSON: {run}", source.one_line())]
    NotStored {
        /// Error returned by the database.
        source: Box<longhaul_store::Error>,
        /// The run as JSON.
        run: String,
    },
}

impl From<longhaul_store::Error> for RoundError {
    fn from(error: longhaul_store::Error) -> Self {
        Self::Store(Box::new(error))
    }
}
