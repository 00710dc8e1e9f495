//! Exchange file: a stable, anonymized form of a weekly summary that another user's longhaul reads. The content of a
//! file is not trusted: it is validated when it is read.

mod file;
mod read;

pub use file::{
    Exchange, ExchangedComparison, ExchangedPair, ExchangedScores, ExchangedTarget, ExchangedTimes, KIND,
    SCHEMA, exchange,
};
pub use read::{ExchangeError, MAX_FILE_BYTES, read};
