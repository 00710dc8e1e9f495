//! The files that workloads need: incompressible content and photos, made from a seed and never stored here.
//!
//! Pure: no clock and no file. The same seed gives the same bytes on every machine, so whatever was written can be
//! verified when it is read weeks later.

mod content;
mod decode;
mod jpeg;

pub use content::Content;
pub use decode::{DecodeError, Pixels, decode, thumbnail};
pub use jpeg::{CHUNK_BYTES, MAXIMUM_PHOTO_BYTES, MINIMUM_PHOTO_BYTES, Photo, photo_sizes};
