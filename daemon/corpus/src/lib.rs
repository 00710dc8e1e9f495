//! Deterministic test data: everything that a workload reads is derived from a seed and can be verified weeks
//! later.
//!
//! The code is pure and uses neither clocks nor files. The same seed gives the same names, sizes and bytes on
//! every machine.
//!
//! ```
//! use longhaul_corpus::Content;
//!
//! let content = Content::new(7, 1);
//! let mut bytes = vec![0; 4096];
//! content.fill(8192, &mut bytes);
//! assert_eq!(content.first_difference(8192, &bytes), None);
//! bytes[100] ^= 1;
//! assert_eq!(content.first_difference(8192, &bytes), Some(8192 + 100));
//! ```

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
