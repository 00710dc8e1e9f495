//! Values into text. Nothing is computed here but columns.

pub mod json;
pub mod line;
pub mod show;
pub mod summary;
pub mod table;
pub mod week;

pub use longhaul_report::units;
