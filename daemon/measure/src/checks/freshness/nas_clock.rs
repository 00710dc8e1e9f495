//! Changes that are made on the NAS itself: the shell line that makes them, and their times on the clock of the NAS.
//!
//! The line needs no `date`: the NAS stamps every change with the modification time of a file or folder. The clock of
//! the NAS is compared with that of this machine by folders that are made through the share, which the NAS stamps, too.

use std::ffi::CStr;
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::item::{CONTENT_AFTER, CONTENT_BEFORE, Item};
use super::session::{FOLDER, FreshnessSession, MadeChange, NEW, OLD};
use crate::error::RunError;
use crate::platform::{self, monotonic_ns};
use crate::timed_fs::{Folder, TimedFs};
use longhaul_model::ChangeKind;

/// Folder whose modification time tells the clock: [`MAX_CHANGES`](super::session::MAX_CHANGES), so that it is
/// recognized like the folders of changes.
const CLOCK_FOLDER: &CStr = c"999";
/// Number of comparisons of the clocks.
const COMPARISONS: usize = 15;
/// Pause between two comparisons, longer than a step of the clock that stamps files.
const COMPARISON_INTERVAL: Duration = Duration::from_millis(23);
/// Largest step of the clock that stamps files, if it stamps fractions of a second (Linux: 1 to 10 ms).
const FINE_STEP_NS: i64 = 10_000_000;
/// Largest step if it does not (FAT: 2 s).
const COARSE_STEP_NS: i64 = 2_000_000_000;
/// Time after which no client shows attributes from before: SMB clients close a file a second late, and keep
/// attributes for a second.
const ATTRIBUTES_TIMEOUT: Duration = Duration::from_millis(2200);

/// Clock of the NAS minus the monotonic clock of this machine, in nanoseconds: an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Lower end.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
    /// Time by which a time stamp of the NAS can be older than its clock.
    pub step_ns: i64,
}

/// A time stamp that the NAS set between two times of the monotonic clock.
#[derive(Debug, Clone)]
struct Stamp {
    stamp_ns: i64,
    between: Range<u64>,
}

impl Stamp {
    /// Returns the smallest offset with which the NAS could set the stamp.
    const fn low_ns(&self) -> i64 {
        self.stamp_ns - self.between.end.cast_signed()
    }
}

impl ClockOffset {
    /// Returns the offset with which all these stamps were set; `None` without a stamp.
    ///
    /// The clock that stamps files advances in steps, and late ones on a busy machine. So a stamp is older than the clock
    /// by up to a step, or by as much as the stamps differ among each other.
    fn of_stamps(stamps: &[Stamp]) -> Option<Self> {
        let lows = || stamps.iter().map(Stamp::low_ns);
        let (lowest, low_ns) = (lows().min()?, lows().max()?);
        let step_ns = stamps.iter().map(|stamp| step_ns(stamp.stamp_ns)).min()?.max(low_ns - lowest);
        let high = |stamp: &Stamp| stamp.stamp_ns - stamp.between.start.cast_signed() + step_ns;
        Some(Self { low_ns, high_ns: stamps.iter().map(high).min()?, step_ns })
    }

    /// Returns the interval that contains both; `None` if they are further apart than clocks drift in minutes,
    /// because one of the clocks was set.
    pub fn hull(self, later: Self) -> Option<Self> {
        const MAX_DRIFT_NS: i64 = 50_000_000;
        let gap_ns = (later.low_ns - self.high_ns).max(self.low_ns - later.high_ns);
        let hull = Self {
            low_ns: self.low_ns.min(later.low_ns),
            high_ns: self.high_ns.max(later.high_ns),
            step_ns: self.step_ns.max(later.step_ns),
        };
        (gap_ns <= MAX_DRIFT_NS).then_some(hull)
    }

    /// Returns when a change was made that the NAS stamped.
    pub fn change(self, stamp_ns: i64) -> MadeChange {
        let unsigned = |ns: i64| u64::try_from(ns).unwrap_or(0);
        let began_ns = unsigned(stamp_ns - self.high_ns);
        let ago = Duration::from_nanos(monotonic_ns().saturating_sub(began_ns));
        let step_ns = self.step_ns.max(step_ns(stamp_ns));
        MadeChange {
            began_ns,
            ended_ns: unsigned(stamp_ns + step_ns - self.low_ns),
            at: platform::wall_clock() - ago,
        }
    }
}

/// Returns the step of the clock that set a time stamp. Whole seconds mean that fractions are not stored: a stamp with
/// fractions is whole once in a million.
const fn step_ns(stamp_ns: i64) -> i64 {
    if stamp_ns % 1_000_000_000 == 0 { COARSE_STEP_NS } else { FINE_STEP_NS }
}

/// Compares the clocks by folders that are made in the folder of a session.
pub fn compare_clocks(session: &Folder, context: &TimedFs<'_>) -> Result<ClockOffset, RunError> {
    let mut stamps = vec![];
    for _ in 0..COMPARISONS {
        let before_ns = monotonic_ns();
        context.create_folder(session, CLOCK_FOLDER)?;
        let between = before_ns..monotonic_ns();
        let stamp_ns = context.getattr(session, CLOCK_FOLDER)?.modified_ns;
        context.remove_folder(session, CLOCK_FOLDER)?;
        stamps.push(Stamp { stamp_ns, between });
        context.pause(COMPARISON_INTERVAL)?;
    }
    Ok(ClockOffset::of_stamps(&stamps).expect("at least one comparison was made"))
}

/// Returns when each change was made, by the clock of the NAS; `None` if the server does not have the change.
pub fn stamps_ns(items: &[Item<'_>], context: &TimedFs<'_>) -> Result<Vec<Option<i64>>, RunError> {
    context.pause(ATTRIBUTES_TIMEOUT)?;
    // Opening makes NFS ask for attributes. After it, Linux shows its own time for a file on SMB that it once wrote,
    // until the file is really closed.
    let confirmed = items.iter().map(|item| item.is_confirmed(context)).collect::<Result<Vec<_>, _>>()?;
    context.pause(ATTRIBUTES_TIMEOUT)?;
    let stamp =
        |(item, is_confirmed): (&Item<'_>, bool)| is_confirmed.then(|| item.stamp_ns(context)).transpose();
    items.iter().zip(confirmed).map(stamp).collect()
}

impl Item<'_> {
    /// Returns the time at which the NAS made the change, in nanoseconds of its clock.
    fn stamp_ns(&self, context: &TimedFs<'_>) -> Result<i64, RunError> {
        let changed = match self.kind {
            ChangeKind::NewFile | ChangeKind::LookedUpName => context.getattr(self.folder, NEW)?,
            ChangeKind::GrownFile | ChangeKind::ChangedContent => context.getattr(self.folder, OLD)?,
            ChangeKind::Deletion | ChangeKind::Rename => context.getattr(self.session, self.name)?,
        };
        Ok(changed.modified_ns)
    }

    /// Returns the shell command that makes the change, to be run in the folder of the session.
    fn shell_command(place: usize, kind: ChangeKind) -> String {
        let print = |content: &[u8]| format!("printf '{}\\n'", String::from_utf8_lossy(content).trim_end());
        match kind {
            ChangeKind::NewFile | ChangeKind::LookedUpName => {
                format!("{} >{place}/new", print(CONTENT_BEFORE))
            }
            ChangeKind::GrownFile => format!("{} >>{place}/old", print(CONTENT_AFTER)),
            ChangeKind::ChangedContent => format!("{} >{place}/old", print(CONTENT_AFTER)),
            ChangeKind::Deletion => format!("rm {place}/old"),
            ChangeKind::Rename => format!("mv {place}/old {place}/new"),
        }
    }
}

/// Returns one line for a POSIX shell on the NAS that makes each change at its time, in whole seconds: some shells have
/// no shorter sleep. `folder` is the folder of the target there.
pub fn shell_line(session: &FreshnessSession, times: &[Duration], folder: &str) -> String {
    let mut order: Vec<(u64, usize)> =
        times.iter().map(Duration::as_secs).zip(0..session.kinds.len()).collect();
    order.sort_unstable();
    let quoted = format!("{folder}/{}/{}/{}", session.sandbox, FOLDER, session.folder_name());
    let mut line = format!("cd '{}' && umask 022", quoted.replace('\'', r"'\''"));
    let mut now = 0;
    for (seconds, place) in order {
        if seconds > now {
            line += &format!("; sleep {}", seconds - now);
            now = seconds;
        }
        line += &format!("; {}", Item::shell_command(place, session.kinds[place]));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const HOUR: i64 = 3_600_000 * MS;

    fn stamp(stamp_ns: i64, between: Range<i64>) -> Stamp {
        Stamp { stamp_ns, between: between.start.cast_unsigned()..between.end.cast_unsigned() }
    }

    fn offset(low_ns: i64, high_ns: i64) -> ClockOffset {
        ClockOffset { low_ns, high_ns, step_ns: FINE_STEP_NS }
    }

    #[test]
    fn clocks_hours_apart_are_compared_by_the_stamps_of_the_nas() {
        // The clock of the NAS is an hour and 7 ms ahead, and its stamps are up to 9 ms old.
        let first = stamp(HOUR + 101 * MS, 100 * MS..104 * MS);
        let second = stamp(HOUR + 210 * MS, 201 * MS..205 * MS);
        let found = ClockOffset::of_stamps(&[first, second]).unwrap();
        assert_eq!((found.low_ns, found.high_ns), (HOUR + 5 * MS, HOUR + 11 * MS));
        let change = found.change(HOUR + 1_000 * MS + 1);
        assert_eq!((change.began_ns, change.ended_ns), (989 * 1_000_000 + 1, 1_005 * 1_000_000 + 1));
    }

    #[test]
    fn late_steps_of_the_clock_widen_the_offset() {
        // The second stamp is 40 ms old.
        let stamps = [stamp(HOUR + 100 * MS, 100 * MS..101 * MS), stamp(HOUR + 160 * MS, 200 * MS..201 * MS)];
        let found = ClockOffset::of_stamps(&stamps).unwrap();
        assert_eq!(found, ClockOffset { low_ns: HOUR - MS, high_ns: HOUR, step_ns: 40 * MS });
    }

    #[test]
    fn whole_seconds_have_a_step_of_two_seconds() {
        let found = ClockOffset::of_stamps(&[stamp(HOUR, 100..200)]).unwrap();
        assert_eq!((found.low_ns, found.high_ns), (HOUR - 200, HOUR - 100 + COARSE_STEP_NS));
    }

    #[test]
    fn clock_that_was_set_is_noticed() {
        let before = offset(1_000, 2_000);
        assert_eq!(before.hull(offset(MS, MS + 1_000)), Some(offset(1_000, MS + 1_000)));
        assert_eq!(before.hull(offset(90 * MS, 91 * MS)), None);
        assert_eq!(before.hull(offset(-90 * MS, -89 * MS)), None);
    }

    #[test]
    fn shell_line_makes_every_change_in_the_order_of_time() {
        let session = FreshnessSession {
            id: 1,
            sandbox: ".longhaul-m-smb".to_owned(),
            kinds: ChangeKind::ALL.to_vec(),
        };
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join("it's mine");
        let session_folder = site.join(".longhaul-m-smb/freshness/0000000000000001");
        for place in 0..6 {
            std::fs::create_dir_all(session_folder.join(place.to_string())).unwrap();
        }
        for place in [2, 3, 4, 5] {
            std::fs::write(session_folder.join(format!("{place}/old")), CONTENT_BEFORE).unwrap();
        }
        let line = shell_line(&session, &[1, 0, 0, 0, 0, 0].map(Duration::from_secs), site.to_str().unwrap());
        assert!(line.ends_with("; sleep 1; printf 'before the change\\n' >0/new"), "{line}");
        let status = std::process::Command::new("/bin/sh").args(["-c", &line]).status().unwrap();
        assert!(status.success());
        let content = |name: &str| std::fs::read(session_folder.join(name)).ok();
        for name in ["0/new", "1/new", "5/new"] {
            assert_eq!(content(name).as_deref(), Some(CONTENT_BEFORE), "{name}");
        }
        assert_eq!(content("2/old"), Some([CONTENT_BEFORE, CONTENT_AFTER].concat()));
        assert_eq!(content("3/old").as_deref(), Some(CONTENT_AFTER));
        assert_eq!((content("4/old"), content("5/old")), (None, None));
    }
}
