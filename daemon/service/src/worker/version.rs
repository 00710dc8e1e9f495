//! A worker process that is another version of longhaul than its supervisor, as after an upgrade.

use longhaul_measure::worker::Ending;

use super::endings::other_version;
use super::link::Link;
use super::{State, Watch, Worker};

impl Worker {
    /// Lets a process of another version go. It did nothing wrong, and is not counted as one that ended by itself.
    pub(super) fn refuse(&mut self, mut link: Link, version: &str, watch: &mut Watch<'_>) -> Ending {
        tracing::warn!(target_name = %self.target.name, version, "a worker is another version of longhaul");
        watch.observer.other_version(&self.target.name, version);
        link.dismiss();
        self.state = State::Leaving(link);
        other_version(&self.target.name, version)
    }
}
