//! Freshness: one worker (the writer) changes files in its sandbox, other workers (the watchers) look for the changes
//! through their own mounts.
//!
//! The files of a session are in a folder with a random name in the writer's sandbox. A watcher that finds this
//! folder below its own path leads to the same folder of the server, which needs no other test. Each change has a
//! folder of its own, because looking at one thing in a folder may refresh what the client believes about another.
//!
//! A watcher only reads, and makes the calls of an ordinary program: it keeps no file open between two polls and
//! empties no cache.

mod item;
mod nas_clock;
mod session;
mod watcher;
mod writer;

pub use nas_clock::{ClockOffset, shell_line};
pub use session::{FOLDER, FreshnessSession, MAX_CHANGES, MadeChange, View, WatchLimit, WatchedChange, owns};
pub use watcher::Watcher;
pub use writer::Writer;

#[cfg(test)]
mod tests;
