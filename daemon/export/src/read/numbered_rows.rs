//! Records of one kind, collected while a file is read.

use super::records::Fields;

/// A record with its number and its position in the file.
pub(super) struct NumberedRow<T> {
    pub(super) number: i64,
    pub(super) at: u64,
    pub(super) record: T,
}

/// Records of one kind with their numbers and their positions in the file.
pub(super) struct NumberedRows<T> {
    pub(super) rows: Vec<NumberedRow<T>>,
    /// Number of rows of this kind that were skipped because they are invalid.
    pub(super) rejected: u64,
}

impl<T> Default for NumberedRows<T> {
    fn default() -> Self {
        Self { rows: vec![], rejected: 0 }
    }
}

impl<T> NumberedRows<T> {
    pub(super) fn add(
        &mut self,
        at: u64,
        fields: &Fields<'_>,
        read: Result<T, String>,
    ) -> Result<(), String> {
        match read.and_then(|record| Ok((fields.number()?, record))) {
            Ok((number, record)) => {
                self.rows.push(NumberedRow { number, at, record });
                Ok(())
            }
            Err(why) => {
                self.rejected += 1;
                Err(why)
            }
        }
    }
}
