//! The part that differs between systems: Linux has FUSE without a library; elsewhere nothing is mounted.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{PassThrough, mount};

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{PassThrough, mount};
