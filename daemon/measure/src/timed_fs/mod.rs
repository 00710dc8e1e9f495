//! All file operations of workloads: timed, with a bounded rate, and cancellable.
//!
//! [`TimedFs::timed`] has the only pair of clock reads around an operation, with no lock, allocation or I/O
//! between the clock reads and the call. Other work happens outside this pair: paths are joined only for error
//! messages, and bytes are counted after the second clock read.

mod buffer;
mod check_calls;
mod context;
mod entry_limit;
mod files;
mod in_place;
mod parallel;
mod path_calls;
mod privacy;
mod rate_limit;
mod session;
mod stop_switch;

pub use buffer::Buffer;
pub(crate) use context::clock_pair_ns;
pub use context::{TimedFs, timed_fs_overhead_ns};
pub(crate) use entry_limit::{MAX_ENTRIES, collect_entries, limit_entries};
pub use files::{Folder, ListingBuffer, OpenFile};
pub use in_place::LINK_CHECK_FILES;
pub use path_calls::Answer;
pub(crate) use privacy::folder_open_error;
pub use session::{PhaseSpec, Reporter, Session};
pub use stop_switch::StopSwitch;
