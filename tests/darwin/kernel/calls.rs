//! The calls, under the names that the `libc` crate gives them.

pub use super::attributes::{getattrlistat, getattrlistbulk};
pub use super::events::{kevent, kqueue};
pub use super::mounts::getfsstat;
pub use super::process::{clock_gettime, fcntl, gethostuuid, getrusage, mincore, proc_pid_rusage};
pub use super::values::{sysctl, sysctlbyname};
