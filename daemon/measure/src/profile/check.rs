//! Whether what a profile says has a meaning. What passes here cannot be wrong later.

use super::{Action, Amount, At, Bytes, Choose, Phase, Pick, Print, Profile, Share, Size, Step, Taken, Work};
use crate::corpus::sectors::SECTOR_BYTES;
use crate::corpus::slices::MOST_SLICES;
use crate::model::CacheState;
use crate::recorder::LANES;

/// The most files of a set, repetitions, folders.
const MOST: u64 = 10_000_000;
/// The most bytes of one call: each thread has a buffer of this size.
const MOST_BLOCK: u64 = 64 << 20;
/// The figures that each phase has, and those that an analysis or a program adds.
const FIGURES: [&str; 21] = [
    "seconds",
    "own",
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

type Said = Result<(), String>;

fn require(holds: bool, message: impl FnOnce() -> String) -> Said {
    if holds { Ok(()) } else { Err(message()) }
}

/// A name that is a folder on a target, or a phase: short, and safe on every file system.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=40).contains(&name.len()) && name.bytes().all(plain)
}

impl Profile {
    /// Says what has no meaning.
    pub(super) fn check(&self) -> Said {
        require(!self.summary.trim().is_empty(), || {
            "`summary` is empty: say in one line what is replayed".to_owned()
        })?;
        let by = self.quick;
        require(by.size >= 1 && by.count >= 1 && by.times >= 1 && (1.0..=1e6).contains(&by.seconds), || {
            "what [quick] divides by has to be 1 or more".to_owned()
        })?;
        require((1..=MOST_SLICES).contains(&self.slices), || {
            format!("`slices` has to be between 1 and {MOST_SLICES}")
        })?;
        self.files.iter().try_for_each(|(name, set)| {
            let at = |what: &str| format!("[files.{name}]: {what}");
            require(is_name(name), || at("a name has 1 to 40 lower-case letters, digits and dashes"))?;
            require((1..=MOST).contains(&set.count), || at("`count` has to be between 1 and 10000000"))?;
            require((1..=set.count.min(100_000)).contains(&set.folders), || {
                at("`folders` has to be between 1 and `count`")
            })?;
            require((0.0..=1.0).contains(&set.present), || at("`present` has to be between 0 and 1"))?;
            check_block(set.block).map_err(|what| at(&what))?;
            check_size(&set.size).map_err(|what| at(&what))
        })?;
        require(!self.phases.is_empty(), || "there is no [[phase]], so nothing would be done".to_owned())?;
        self.phases.iter().try_for_each(|phase| self.check_phase(phase))?;
        let mut names: Vec<&str> = self.phases.iter().map(|phase| phase.name.as_str()).collect();
        names.sort_unstable();
        require(names.is_sorted_by(|a, b| a < b), || "two phases have one name".to_owned())?;
        self.figures.iter().try_for_each(|print| self.check_print(print))
    }

    fn check_phase(&self, phase: &Phase) -> Said {
        let at = |what: String| format!("phase `{}`: {what}", phase.name);
        require(is_name(&phase.name), || {
            at("a name has 1 to 40 lower-case letters, digits and dashes".to_owned())
        })?;
        require(phase.work.is_empty() == phase.program.is_some(), || {
            at("it needs [[phase.work]], or a `program`, and not both".to_owned())
        })?;
        require(phase.program.is_some() == phase.seconds.is_some(), || {
            at("a `program` has `seconds`; steps have them in their [[phase.work]]".to_owned())
        })?;
        require(phase.seconds.is_none_or(|seconds| (0.1..=86_400.0).contains(&seconds)), || {
            at("`seconds` has to be between 0.1 and 86400".to_owned())
        })?;
        let threads = phase.work.iter().fold(0u64, |sum, work| sum.saturating_add(work.threads));
        require(threads < LANES as u64, || {
            at(format!("{threads} threads are too many: at most {}", LANES - 1))
        })?;
        phase.work.iter().try_for_each(|work| self.check_work(work)).map_err(at)?;
        let evicts = phase.cache != CacheState::Cold
            || phase.work.iter().all(|work| !self.changes(&work.files) || !work.steps.is_empty());
        require(evicts, || at("it cannot be cold".to_owned()))
    }

    fn check_work(&self, work: &Work) -> Said {
        let set = self.files.get(&work.files).ok_or_else(|| format!("there is no [files.{}]", work.files))?;
        require(work.threads >= 1, || "`threads` has to be 1 or more".to_owned())?;
        require(work.times.is_none() || work.seconds.is_none(), || {
            "`times` and `seconds` exclude each other".to_owned()
        })?;
        require(work.times.is_none_or(|times| (1..=MOST).contains(&times)), || {
            "`times` has to be between 1 and 10000000".to_owned()
        })?;
        require(work.seconds.is_none_or(|seconds| (0.1..=86_400.0).contains(&seconds)), || {
            "`seconds` has to be between 0.1 and 86400".to_owned()
        })?;
        require(work.per_second.is_none_or(|rate| (0.001..=1e6).contains(&rate)), || {
            "`per-second` has to be between 0.001 and 1000000".to_owned()
        })?;
        require(!work.steps.is_empty(), || "`steps` is empty".to_owned())?;
        let changing = [Action::Create, Action::Delete, Action::Append, Action::Rename];
        let shared = work.share == Share::All && work.threads > 1;
        require(!shared || !work.all_steps().any(|step| changing.contains(&step.action)), || {
            "threads that share all files cannot create, append, rename or delete".to_owned()
        })?;
        let weights = work.steps.iter().map(|step| step.weight).sum::<f64>();
        require(work.choose == Choose::All || weights > 0.0, || "no step has a weight".to_owned())?;
        work.all_steps().try_for_each(check_step)?;
        require(work.share == Share::All || work.threads <= set.count, || {
            format!("{} threads share {} files: some would have none", work.threads, set.count)
        })
    }

    fn check_print(&self, print: &Print) -> Said {
        let at = |what: String| format!("figure `{}`: {what}", print.name);
        require(self.phases.iter().any(|phase| phase.name == print.phase), || {
            at(format!("there is no phase `{}`", print.phase))
        })?;
        match print.taken() {
            None => Err(at(format!("`{}` is not known", print.of))),
            Some(Taken::Figure(name)) => require(FIGURES.contains(&name), || {
                at(format!("`{name}` is not known; there are {}", FIGURES.join(", ")))
            }),
            Some(Taken::Latency(_, statistic)) => require(statistic.unit() == print.unit.unit(), || {
                at(format!("`{}` cannot be printed in {}", print.of, print.unit.symbol()))
            }),
        }
    }
}

fn check_block(block: Bytes) -> Said {
    require((1..=MOST_BLOCK).contains(&block.0), || "`block` has to be between 1 byte and 64 MiB".to_owned())
}

fn check_size(size: &Size) -> Said {
    match size {
        Size::Named(_) | Size::Fixed(_) => Ok(()),
        Size::Each(sizes) => require(!sizes.is_empty(), || "the list of sizes is empty".to_owned()),
        Size::Between { from, to } => require(from <= to, || "`from` is larger than `to`".to_owned()),
        Size::Gamma { shape, .. } => {
            require((0.5..=100.0).contains(shape), || "`shape` has to be between 0.5 and 100".to_owned())
        }
    }
}

fn check_step(step: &Step) -> Said {
    let Step { block, at, amount, weight, every, action, pick } = step;
    check_block(*block)?;
    let overwrites = *action == Action::Write && *at != At::Next;
    require(!overwrites || block.0.is_multiple_of(SECTOR_BYTES), || {
        "what overwrites has a `block` that is a multiple of 512".to_owned()
    })?;
    require(*at == At::Next || *amount == Amount::Block, || {
        "a whole file is read and written in order".to_owned()
    })?;
    require((0.0..=1e9).contains(weight) && *every >= 1, || {
        "`weight` and `every` have to be positive".to_owned()
    })?;
    require(*pick != Some(Pick::All) || *action != Action::Delete, || {
        "files are deleted one by one".to_owned()
    })
}
