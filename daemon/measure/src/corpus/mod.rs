//! Deterministic test data: everything that a workload reads is derived from a seed and can be verified weeks
//! later.
//!
//! The code is pure and uses neither clocks nor files. The same seed gives the same names, sizes and bytes on
//! every machine.

pub mod apple_double;
pub mod bands;
pub mod churn;
mod content;
mod decode;
mod jpeg;
pub mod names;
mod pool;
pub mod sectors;
pub mod slices;
pub mod tree;

pub use content::Content;
pub use decode::{DecodeError, decode, thumbnail};
pub use jpeg::{CHUNK_BYTES, MAXIMUM_PHOTO_BYTES, MINIMUM_PHOTO_BYTES, Photo, photo_sizes};
pub use pool::ContentPool;
