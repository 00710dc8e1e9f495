//! Values into text. Nothing is computed here but columns.

pub mod classic;
pub mod journal;
pub mod line;
pub mod log;
pub mod sampling;
pub mod selfcheck;
pub mod show;
pub mod status;
pub mod summary;
pub mod table;
pub mod top;
pub mod week;

pub use longhaul_report::units;
