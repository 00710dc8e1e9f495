//! Exports of many machines into one folder or bucket, and checks of such a collection (docs/fleet/README.md).

mod layout;

pub use layout::{FILE_NAME, FileKey};
