//! Checks the values of a profile, so that later code can rely on them.

use super::bytes::ByteSize;
use super::printed_figure::{FigureSource, PrintedFigure};
use super::schema::{FileSharing, Phase, Profile, StepChoice, ThreadGroup};
use super::size::Size;
use super::step::{Action, Amount, BlockPosition, FileChoice, Step};
use longhaul_corpus::sectors::SECTOR_BYTES;
use longhaul_corpus::slices::MAX_SLICES;
use longhaul_measure::recorder::THREAD_SLOTS;

/// The maximum number of files in a set, and of repetitions.
const MAX_COUNT: u64 = 10_000_000;
/// The maximum size of one call in bytes: each thread has a buffer of this size.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// The names of all figures: those that each phase has, and those that an analysis or a program adds.
const KNOWN_FIGURES: [&str; 21] = [
    "seconds",
    "overhead",
    "rate",
    "read",
    "write",
    "spread",
    "drift",
    "dropped-24",
    "dropped-30",
    "dropped-60",
    "worst-frame",
    "mean-speed",
    "trimmed-speed",
    "slope-speed",
    "blogs",
    "visits",
    "articles-read",
    "articles-written",
    "files-written",
    "comments-written",
    "pictures-written",
];

type CheckResult = Result<(), String>;

fn require(condition: bool, message: impl FnOnce() -> String) -> CheckResult {
    if condition { Ok(()) } else { Err(message()) }
}

/// Returns whether a name is valid for a folder on a target or a phase: short, and safe on every file system.
pub(crate) fn is_valid_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=40).contains(&name.len()) && name.bytes().all(plain)
}

impl Profile {
    /// Checks all values of the profile.
    ///
    /// # Errors
    ///
    /// A message for the user about the first invalid value.
    pub(super) fn check(&self) -> CheckResult {
        require(!self.summary.trim().is_empty(), || {
            "`summary` is empty: describe the task in one line".to_owned()
        })?;
        let by = self.quick;
        require(by.size >= 1 && by.count >= 1 && by.times >= 1 && (1.0..=1e6).contains(&by.seconds), || {
            "every number in [quick] must be 1 or more".to_owned()
        })?;
        require((1..=MAX_SLICES).contains(&self.slices), || {
            format!("`slices` must be between 1 and {MAX_SLICES}")
        })?;
        self.files.iter().try_for_each(|(name, set)| {
            let at = |what: &str| format!("[files.{name}]: {what}");
            require(is_valid_name(name), || {
                at("the name must have 1 to 40 lower-case letters, digits or dashes")
            })?;
            require((1..=MAX_COUNT).contains(&set.count), || at("`count` must be between 1 and 10000000"))?;
            require((1..=set.count.min(100_000)).contains(&set.folders), || {
                at("`folders` must be between 1 and `count`")
            })?;
            require((0.0..=1.0).contains(&set.present), || at("`present` must be between 0 and 1"))?;
            check_block(set.block).map_err(|what| at(&what))?;
            check_size(&set.size).map_err(|what| at(&what))
        })?;
        require(!self.phases.is_empty(), || {
            "there is no [[phase]]: a profile needs at least one".to_owned()
        })?;
        self.phases.iter().try_for_each(|phase| self.check_phase(phase))?;
        let mut names: Vec<&str> = self.phases.iter().map(|phase| phase.name.as_str()).collect();
        names.sort_unstable();
        require(names.is_sorted_by(|a, b| a < b), || "two phases have the same name".to_owned())?;
        self.figures.iter().try_for_each(|print| self.check_figure(print))
    }

    fn check_phase(&self, phase: &Phase) -> CheckResult {
        let at = |what: String| format!("phase `{}`: {what}", phase.name);
        require(is_valid_name(&phase.name), || {
            at("the name must have 1 to 40 lower-case letters, digits or dashes".to_owned())
        })?;
        require(phase.work.is_empty() == phase.program.is_some(), || {
            at("it needs either [[phase.work]] or a `program`".to_owned())
        })?;
        require(phase.program.is_some() == phase.seconds.is_some(), || {
            at("`seconds` belongs to a `program`; for steps, set it in [[phase.work]]".to_owned())
        })?;
        require(phase.seconds.is_none_or(|seconds| (0.1..=86_400.0).contains(&seconds)), || {
            at("`seconds` must be between 0.1 and 86400".to_owned())
        })?;
        let threads = phase.work.iter().fold(0u64, |sum, work| sum.saturating_add(work.threads));
        require(threads < THREAD_SLOTS as u64, || {
            at(format!("{threads} threads are too many: the maximum is {}", THREAD_SLOTS - 1))
        })?;
        phase.work.iter().try_for_each(|work| self.check_work(work)).map_err(at)
    }

    fn check_work(&self, work: &ThreadGroup) -> CheckResult {
        let set = self.files.get(&work.files).ok_or_else(|| format!("there is no [files.{}]", work.files))?;
        require(work.threads >= 1, || "`threads` must be 1 or more".to_owned())?;
        require(work.times.is_none() || work.seconds.is_none(), || {
            "set either `times` or `seconds`, not both".to_owned()
        })?;
        require(work.times.is_none_or(|times| (1..=MAX_COUNT).contains(&times)), || {
            "`times` must be between 1 and 10000000".to_owned()
        })?;
        require(work.seconds.is_none_or(|seconds| (0.1..=86_400.0).contains(&seconds)), || {
            "`seconds` must be between 0.1 and 86400".to_owned()
        })?;
        require(work.per_second.is_none_or(|rate| (0.001..=1e6).contains(&rate)), || {
            "`per-second` must be between 0.001 and 1000000".to_owned()
        })?;
        require(!work.steps.is_empty(), || "`steps` is empty".to_owned())?;
        let changing = [Action::Create, Action::Delete, Action::Append, Action::Rename];
        let shared = work.share == FileSharing::All && work.threads > 1;
        require(!shared || !work.all_steps().any(|step| changing.contains(&step.action)), || {
            "threads that share all files cannot create, append, rename or delete".to_owned()
        })?;
        let weights = work.steps.iter().map(|step| step.weight).sum::<f64>();
        require(work.choose == StepChoice::All || weights > 0.0, || {
            "with `choose = \"one\"`, at least one step needs a `weight` above 0".to_owned()
        })?;
        let uses = |action: Action| work.all_steps().any(|step| step.action == action);
        let makes_folders = uses(Action::MakeFolder) || uses(Action::RemoveFolder);
        require(!makes_folders || work.choose == StepChoice::All, || {
            "with `choose = \"one\"`, `make-folder` and `remove-folder` would not come in pairs".to_owned()
        })?;
        require(!uses(Action::Create) || set.present < 1.0 || self.is_emptied(&work.files), || {
            "`create` would find no file that is missing: set `present` below 1, or delete files first"
                .to_owned()
        })?;
        work.all_steps().try_for_each(check_step)?;
        check_sectors(work)?;
        require(work.share == FileSharing::All || work.threads <= set.count, || {
            format!("{} threads cannot share {} files: some threads would have none", work.threads, set.count)
        })
    }

    /// Returns whether any phase deletes files of a set.
    fn is_emptied(&self, files: &str) -> bool {
        let work = self.phases.iter().flat_map(|phase| &phase.work).filter(|work| work.files == files);
        work.flat_map(ThreadGroup::all_steps).any(|step| step.action == Action::Delete)
    }

    fn check_figure(&self, print: &PrintedFigure) -> CheckResult {
        let at = |what: String| format!("figure `{}`: {what}", print.name);
        require(self.phases.iter().any(|phase| phase.name == print.phase), || {
            at(format!("there is no phase `{}`", print.phase))
        })?;
        match print.source() {
            None => Err(at(format!("`{}` is not a known source", print.source))),
            Some(FigureSource::Figure(name)) => require(KNOWN_FIGURES.contains(&name), || {
                at(format!("`{name}` is not a known figure; known figures: {}", KNOWN_FIGURES.join(", ")))
            }),
            Some(FigureSource::Latency(_, statistic)) => {
                require(statistic.unit() == print.unit.base_unit(), || {
                    at(format!("`{}` cannot be printed in {}", print.source, print.unit.symbol()))
                })
            }
        }
    }
}

fn check_block(block: ByteSize) -> CheckResult {
    require((1..=MAX_BLOCK_BYTES).contains(&block.0), || {
        "`block` must be between 1 byte and 64 MiB".to_owned()
    })
}

fn check_size(size: &Size) -> CheckResult {
    match size {
        Size::Named(_) | Size::Fixed(_) => Ok(()),
        Size::Each(sizes) => require(!sizes.is_empty(), || "the list of sizes is empty".to_owned()),
        Size::Between { from, to } => require(from <= to, || "`from` is larger than `to`".to_owned()),
        Size::Gamma { shape, .. } => {
            require((0.5..=100.0).contains(shape), || "`shape` must be between 0.5 and 100".to_owned())
        }
    }
}

/// Checks that threads which write single blocks write whole sectors. A sector that is written in part keeps old content
/// behind the new one, which a later read would call damaged.
///
/// All steps share the position in a file, so this also depends on the blocks of steps that only move it.
fn check_sectors(work: &ThreadGroup) -> CheckResult {
    let moves = |step: &&Step| matches!(step.action, Action::Read | Action::Write | Action::Evict);
    let by_block = || work.all_steps().filter(|step| step.amount == Amount::Block).filter(moves);
    let writes = by_block().any(|step| step.action == Action::Write);
    require(!writes || by_block().all(|step| step.block.0.is_multiple_of(SECTOR_BYTES)), || {
        "where single blocks are written, each `block` that is written, read or evicted must be a multiple of 512: \
         use \"1 MiB\" or \"10 KiB\" instead of \"1 MB\" or \"10 KB\""
            .to_owned()
    })
}

fn check_step(step: &Step) -> CheckResult {
    let Step { block, at, amount, weight, every, action, pick } = step;
    check_block(*block)?;
    require(*at == BlockPosition::Next || *amount == Amount::Block, || {
        "a whole file is read or written in order: use `at` only with single blocks".to_owned()
    })?;
    require((0.0..=1e9).contains(weight) && *every >= 1, || {
        "`weight` must be between 0 and 1000000000, and `every` 1 or more".to_owned()
    })?;
    require(*pick != Some(FileChoice::All) || *action != Action::Delete, || {
        "`pick = \"all\"` does not work with `delete`: files are deleted one by one".to_owned()
    })
}
