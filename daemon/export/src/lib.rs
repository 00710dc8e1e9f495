//! What longhaul keeps, as files that anyone can open, and the way back.
//!
//! [`runs`] writes the archive: everything that a verdict rests on, in its public form. [`read_history`] reads it again,
//! whichever of the three formats it is in, so that anyone recomputes every verdict from the file alone. [`operations`]
//! and [`events`] are for looking at, and are not read back.
//!
//! Pure but for its edges: a value goes to a `Write`, a file comes back as a value. No clock, no zone, no network.

mod archive;
mod error;
mod events;
mod operations;
mod read;
mod runs;
mod table;
mod window;
mod write;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use events::events;
pub use operations::operations;
pub use read::{Imported, LeftOut, Noun, read_bytes, read_history};
pub use runs::runs;
pub use window::{Window, WindowError};
pub use write::{Format, Output};

/// The schema of the archive that this program writes, and the newest that it reads. Columns and kinds of records may
/// be added within a schema: who reads it says what it does not know. A change of meaning is a new schema.
pub const SCHEMA: u64 = 1;
