//! The tools that people quote, reproduced: profiles that one engine runs, each as a workload of its own.
//!
//! A classic goes through the same context, arena, caps and verification as every task. It has no endpoints: a verdict
//! is about what somebody waits for, and nobody waits for a benchmark. Each comes twice: honest, with content that
//! nothing compresses, and `-as-original`, with the zeros that the original writes. The two are never pooled.

mod analysis;
mod blogbench;
mod files;
mod log;
mod names;
mod sets;
mod thread;
mod writes;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{LazyLock, Mutex};

use serde::{Deserialize, Serialize};

use super::{Job, Portion, Workload};
use crate::context::{Context, PhaseSpec};
use crate::corpus::draw::draw;
use crate::corpus::slices::turn;
use crate::error::RunError;
use crate::model::{CacheState, ColdBy, Endpoint, Figure, Run, Scale};
use crate::profile::{Phase, Profile, Program, Work, is_name};
use log::Log;
use sets::{Kept, Sets, State};
use thread::{Crew, Thread};

/// What ends the name of a classic that keeps the original's habits.
pub const AS_ORIGINAL: &str = "-as-original";

macro_rules! profiles {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../profiles/", $name, ".toml")))),*]
    };
}

/// Every classic, in the order in which they are listed.
const PROFILES: &[(&str, &str)] = profiles![
    "dd" "ioping" "sysbench-fileio" "aja" "blackmagic" "stibium" "blogbench" "bonnie" "lantest" "naspt"
    "filebench-networkfs" "filebench-fileserver" "filebench-varmail" "amorphous" "dbench-mix"
    "mail-search" "music-library" "big-folder" "remux"
];

/// In which manner a classic is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// With content that nothing compresses.
    Honest,
    /// With the zeros of the original.
    AsOriginal,
}

/// One classic.
pub struct Classic {
    name: &'static str,
    base: String,
    manner: Manner,
    /// What it does.
    pub profile: Profile,
}

static CLASSICS: LazyLock<Vec<Classic>> = LazyLock::new(|| {
    let both = PROFILES.iter().flat_map(|(name, text)| {
        let profile = Profile::parse(text).expect("the profiles that come with longhaul are tested");
        [Manner::Honest, Manner::AsOriginal].map(|manner| Classic {
            name: match manner {
                Manner::Honest => name,
                // Once for each classic, as long as the process lives.
                Manner::AsOriginal => format!("{name}{AS_ORIGINAL}").leak(),
            },
            base: (*name).to_owned(),
            manner,
            profile: profile.clone(),
        })
    });
    both.collect()
});

/// Every classic in both manners: a pair after a pair.
pub fn classics() -> &'static [Classic] {
    &CLASSICS
}

/// The classic with this name.
pub fn classic(name: &str) -> Option<&'static Classic> {
    CLASSICS.iter().find(|classic| classic.name == name)
}

/// Whether a path below the folder of classics is that of a file that one of them made.
pub fn owns(folder: &str, path: &Path) -> bool {
    let path = path.to_str().unwrap_or_default();
    folder == sets::FOLDER && (sets::owns(path) || blogbench::owns(path))
}

/// A profile of one's own, with the name that its runs are kept under.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnProfile {
    name: String,
    profile: Profile,
    manner: Manner,
}

impl OwnProfile {
    /// A profile under a name, which a manner may add to.
    ///
    /// # Errors
    ///
    /// If the name cannot be that of a folder, in words for a person.
    pub fn new(name: &str, profile: Profile, manner: Manner) -> Result<Self, String> {
        let advice = "call the file by 1 to 40 lower-case letters, digits and dashes";
        match is_name(name) {
            true => Ok(Self { name: format!("{name}{}", manner.suffix()), profile, manner }),
            false => Err(format!("`{name}` cannot be a profile's name: {advice}")),
        }
    }

    /// The name that its runs are kept under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The classic that it is, if it is meant by this name.
    pub fn classic(&self, name: &str) -> Option<Classic> {
        let Self { name: own, profile, manner } = self;
        (own == name).then(|| Classic {
            name: "own-profile",
            base: own.trim_end_matches(manner.suffix()).to_owned(),
            manner: *manner,
            profile: profile.clone(),
        })
    }
}

impl Manner {
    /// What it adds to a name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Honest => "",
            Self::AsOriginal => AS_ORIGINAL,
        }
    }
}

/// The text of the profile of a classic.
pub fn text_of(name: &str) -> Option<&'static str> {
    PROFILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

impl Classic {
    /// The name of its profile, which both manners share.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// In which manner it is run.
    pub fn manner(&self) -> Manner {
        self.manner
    }

    /// What a round does of it: all, or as much as one of its slices.
    pub fn in_rounds(&self, scale: Scale) -> Profile {
        self.profile.at(scale).slice()
    }

    /// What a run does.
    fn part(&self, job: &Job<'_>) -> Profile {
        match job.settings.classics {
            Portion::Slice => self.in_rounds(job.scale),
            Portion::Whole => self.profile.at(job.scale),
        }
    }

    /// Which slice a run does, from 0; `None`: it does all.
    fn slice(&self, job: &Job<'_>) -> Option<u64> {
        let slices = self.profile.at(job.scale).slices;
        (job.settings.classics == Portion::Slice && slices > 1).then(|| turn(job.rotation, slices))
    }

    /// Where its files are, below the folder of classics.
    fn place(&self, job: &Job<'_>) -> String {
        let zeros = match self.manner {
            Manner::Honest => "",
            Manner::AsOriginal => "-zeros",
        };
        let slice = self.slice(job).map(|slice| format!("-slice-{slice}-of-{}", self.profile.slices));
        let slice = slice.unwrap_or_default();
        format!("{}-{}{zeros}{slice}", self.base, job.scale.name())
    }

    /// What the content of a set is made from; a NAS that stores equal blocks once finds none in two slices.
    fn seed(&self, job: &Job<'_>, set: &str) -> u64 {
        let seed = set.bytes().fold(0x636c_6173, |seed, byte| draw(seed, 0, u64::from(byte)));
        self.slice(job).map_or(seed, |slice| draw(seed, 1, slice))
    }

    fn phases(&self, job: &Job<'_>, (profile, sets): (&Profile, &Sets), turn: u64) -> Result<(), RunError> {
        for (number, phase) in profile.phases.iter().enumerate() {
            let cold_by = match phase.cache {
                CacheState::Cold => Some(make_cold(job, phase, sets)?),
                CacheState::Warm | CacheState::None => None,
            };
            let spec = PhaseSpec { name: &phase.name, cache: phase.cache, cold_by };
            let seed = draw(job.seed, 0x7068_6173, number as u64);
            job.session.phase(spec, |context| match phase.program {
                Some(Program::Blogbench) => {
                    blogbench::run(job, self, context, (seed, phase.seconds.unwrap_or_default()))
                }
                None => work(context, phase, sets, (turn + 1 + number as u64, seed)),
            })?;
        }
        Ok(())
    }

    fn tell(&self, job: &Job<'_>) {
        let content = match self.manner {
            Manner::Honest => "incompressible",
            Manner::AsOriginal => "zeros, as the original writes",
        };
        job.session.fact("content", content);
        let original = self.profile.original.as_deref().unwrap_or("a profile of one's own");
        job.session.fact("reproduces", original);
        if let Some(slice) = self.slice(job) {
            job.session.fact(Run::SLICE, format!("{} of {}", slice + 1, self.profile.slices));
        }
    }
}

impl Workload for Classic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        // Of a profile of one's own nobody asks here.
        classic(self.name).map_or("", |classic| &classic.profile.summary)
    }

    fn folder(&self) -> &'static str {
        sets::FOLDER
    }

    fn endpoints(&self) -> &'static [Endpoint] {
        &[]
    }

    fn is_paced(&self) -> bool {
        let works = || self.profile.phases.iter().flat_map(|phase| &phase.work);
        let programs = self.profile.phases.iter().any(|phase| phase.program.is_some());
        programs || works().any(|work| work.seconds.is_some() || work.per_second.is_some())
    }

    fn owns(&self, path: &Path) -> bool {
        owns(sets::FOLDER, path)
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        let (profile, place) = (self.part(job), self.place(job));
        if profile.phases.iter().flat_map(|phase| &phase.work).any(Work::writes) {
            job.require_writing_in_place()?;
        }
        let mut kept = Kept::load(job)?;
        let mut state = kept.get(&place);
        if state.unfinished {
            state.made.clear();
        }
        // A turn for the preparation, and one for each phase.
        state.turn += 1 + profile.phases.len() as u64;
        kept.keep(job, &place, &state)?;
        let sets = Sets::open(job, self, (&profile, state.turn))?;
        let missing: Vec<&String> = profile.files.keys().filter(|name| !state.made.contains(*name)).collect();
        for name in &missing {
            sets::remove(job, sets.get(name))?;
        }
        blogbench::remove(job, self)?;
        job.require_space(needed(&profile, &state))?;
        for name in missing {
            sets::build(job, sets.get(name), (name, state.turn))?;
            if !profile.changes(name) {
                state.made.insert(name.clone());
            }
        }
        state.unfinished = false;
        kept.keep(job, &place, &state)
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let (profile, place) = (self.part(job), self.place(job));
        self.tell(job);
        let mut kept = Kept::load(job)?;
        let mut state = kept.get(&place);
        state.unfinished = true;
        kept.keep(job, &place, &state)?;
        let sets = Sets::open(job, self, (&profile, state.turn))?;
        let result = self.phases(job, (&profile, &sets), state.turn);
        for (_, set) in sets.sets.iter().filter(|(name, _)| profile.changes(name)) {
            sets::remove(job, set)?;
        }
        blogbench::remove(job, self)?;
        result?;
        state.unfinished = false;
        kept.keep(job, &place, &state)
    }
}

/// Bytes that have to be free: what sets take that are not there yet.
fn needed(profile: &Profile, state: &State) -> u64 {
    let there: u64 = profile
        .files
        .iter()
        .filter(|(name, _)| state.made.contains(*name))
        .map(|(_, set)| set.bytes(0))
        .fold(0, u64::saturating_add);
    profile.cost().space.saturating_sub(there)
}

/// Empties this machine's cache of the files of a phase.
fn make_cold(job: &Job<'_>, phase: &Phase, sets: &Sets) -> Result<ColdBy, RunError> {
    let mut names: Vec<&str> = phase.work.iter().map(|work| work.files.as_str()).collect();
    names.dedup();
    let mut cold_by = ColdBy::Evicted;
    for name in names {
        if sets::evict(job, sets.get(name))? != ColdBy::Evicted {
            cold_by = ColdBy::Unverified;
        }
    }
    Ok(cold_by)
}

/// All threads of a phase, at the same time, and what came of them.
fn work(
    context: &Context<'_>,
    phase: &Phase,
    sets: &Sets,
    (turn, seed): (u64, u64),
) -> Result<Vec<Figure>, RunError> {
    let failed = AtomicBool::new(false);
    let crew = Crew { turn, seed, failed: &failed, keeps_each: phase.analysis.is_some() };
    let threads: Vec<(&Work, u64)> =
        phase.work.iter().flat_map(|work| (0..work.threads).map(move |place| (work, place))).collect();
    let logs = Mutex::new(vec![]);
    let at_work = |context: &Context<'_>, (work, place): &(&Work, u64)| {
        let log = Thread::new(&crew, context, (work, sets.get(&work.files)), *place).work()?;
        logs.lock().expect("nobody panics with it").push(log);
        Ok(())
    };
    match &threads[..] {
        [one] => at_work(context, one)?,
        many => context.spread(many.len(), many, at_work)?,
    }
    let elapsed = context.elapsed();
    let logs = logs.into_inner().expect("nobody panicked with it");
    let Some(log) = logs.into_iter().reduce(Log::merge) else { return Ok(vec![]) };
    let mut figures = log.figures(elapsed, threads.len() as u64);
    if let (Some(analysis), Some(each)) = (phase.analysis, &log.each) {
        figures.extend(analysis::figures(analysis, each));
    }
    Ok(figures)
}
