//! Ends the service when another version of it was installed, or says that it has to be restarted.

use longhaul_measure::worker::VERSION;

use super::Service;
use crate::program::{ProgramFile, Takeover};
use crate::round::Stop;
use crate::schedule::skip::Reason;

/// How often the program file is looked at while no round is near.
const LOOK_EVERY_NS: i64 = 180 * 1_000_000_000;
/// The word of the problem that a replaced program is, and of the reason of a round that is not made for it.
const REPLACED: &str = "replaced";

/// How the service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was told to stop.
    Stopped,
    /// Another version is in the place of its program, and a service manager starts that.
    Replaced,
}

impl Service {
    /// Looks at the program file, unless it did so a few minutes ago.
    pub(super) fn look_at_program(&mut self) {
        let now_ns = self.clock.glance().continuous_ns;
        if self.program_seen_ns.is_none_or(|seen_ns| now_ns - seen_ns >= LOOK_EVERY_NS) {
            self.give_way();
        }
    }

    /// Looks at the program file. Returns why no round may begin, if the service ends for another version.
    pub(super) fn give_way(&mut self) -> Option<Reason> {
        self.program_seen_ns = Some(self.clock.glance().continuous_ns);
        let file = self.program_file.as_ref()?;
        let is_told = self.worker_version.borrow().is_some();
        match if is_told { file.replaced() } else { file.look() } {
            Takeover::Continue => self.desk.relieve(REPLACED),
            Takeover::Warn => self.desk.complain(REPLACED, warning(file), self.clock.glance().wall_us),
            Takeover::End => {
                tracing::info!(path = %file.path().display(), "another version was installed: it takes over");
                self.end = End::Replaced;
                self.desk.order(|orders| orders.stop = true);
                return Some(Reason::new(
                    REPLACED,
                    "another version of longhauld was installed and takes over",
                ));
            }
        }
        None
    }

    /// Returns why the round in progress says nothing, if one of its workers is another version.
    pub(super) fn version_stop(&self) -> Option<Stop> {
        let version = self.worker_version.borrow();
        let version = version.as_ref()?;
        Some(Stop::Void(format!(
            "{REPLACED}: another version was installed: a worker is longhaul {version}, the service {VERSION}"
        )))
    }
}

fn warning(file: &ProgramFile) -> String {
    format!(
        "longhauld was replaced by another version: restart it. It runs on as version {VERSION}, and a round whose workers \
         {} starts as another version is void",
        file.path().display()
    )
}
