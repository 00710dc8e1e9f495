//! The bundled presets: well-known benchmark tools and tasks that readers asked for, as workloads.
//!
//! Presets have no metrics, because a verdict is about times that a user waits for, and users do not wait for
//! benchmarks.
//!
//! By default, the content is incompressible. Some presets also have an `-as-original` variant, which writes the
//! zeros that the original tool writes. Results of the two variants are never pooled.

use std::path::Path;
use std::sync::LazyLock;

use longhaul_corpus::slices::slice_for_rotation;
use longhaul_measure::error::RunError;
use longhaul_measure::workloads::{Job, SliceSelection, Workload};
use longhaul_model::{Run, Scale};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content_mode::ContentMode;
use crate::engine::{self, PresetRun};
use crate::profile::{Profile, is_valid_name};

macro_rules! profiles {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../profiles/", $name, ".toml")))),*]
    };
}

/// The name and TOML source of every bundled profile, in display order.
const PROFILES: &[(&str, &str)] = profiles![
    "dd" "ioping" "sysbench-fileio" "aja" "blackmagic" "stibium" "blogbench" "bonnie"
    "mail-search" "music-library" "big-folder" "remux"
];

/// The presets with an `-as-original` variant: their published figures were measured with files full of zeros.
const PRESETS_WITH_ORIGINAL: [&str; 2] = ["dd", "blogbench"];

/// A profile that runs as a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preset {
    name: String,
    profile_name: String,
    content_mode: ContentMode,
    /// Profile that this preset runs.
    pub profile: Profile,
}

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let in_modes = PROFILES.iter().flat_map(|(name, text)| {
        let profile = Profile::parse(text).expect("the profiles that come with longhaul are tested");
        let has_original =
            |mode: &ContentMode| *mode == ContentMode::Incompressible || PRESETS_WITH_ORIGINAL.contains(name);
        let modes = [ContentMode::Incompressible, ContentMode::AsOriginal].into_iter().filter(has_original);
        modes.map(move |mode| Preset::new(name, profile.clone(), mode))
    });
    in_modes.collect()
});

/// Returns all presets, each followed by its `-as-original` variant if there is one.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the bundled preset with this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Returns the TOML source of a bundled profile; `None` if there is no profile with this name.
pub fn profile_source(name: &str) -> Option<&'static str> {
    PROFILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

impl Preset {
    fn new(profile_name: &str, profile: Profile, content_mode: ContentMode) -> Self {
        let name = format!("{profile_name}{}", content_mode.suffix());
        Self { name, profile_name: profile_name.to_owned(), content_mode, profile }
    }

    /// Creates a preset that runs a user's profile. [`ContentMode::AsOriginal`] adds a suffix to the name.
    ///
    /// # Errors
    ///
    /// A message for the user if the name is not a valid folder name.
    pub fn custom(name: &str, profile: Profile, content_mode: ContentMode) -> Result<Self, String> {
        let advice = "name the file with 1 to 40 lower-case letters, digits and dashes";
        match is_valid_name(name) {
            true => Ok(Self::new(name, profile, content_mode)),
            false => Err(format!("`{name}` is not a valid profile name: {advice}")),
        }
    }

    /// Returns the form for [`Settings::custom_profile`](longhaul_measure::workloads::Settings::custom_profile).
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a preset is plain data")
    }

    /// Returns this preset with its profile for a scale.
    pub fn scaled_to(&self, scale: Scale) -> Self {
        Self { profile: self.profile.scaled_to(scale), ..self.clone() }
    }

    /// Returns the name of the profile, which both content modes share.
    pub fn profile_name(&self) -> &str {
        &self.profile_name
    }

    /// Returns the content that this preset writes.
    pub fn content_mode(&self) -> ContentMode {
        self.content_mode
    }

    /// Returns the profile that a round runs: one slice, or the whole profile if it has no slices.
    pub fn round_profile(&self, scale: Scale) -> Profile {
        self.profile.scaled_to(scale).one_slice()
    }

    /// Returns the slice that a run uses, from 0; `None` if the run covers the whole profile.
    fn current_slice(&self, job: &Job<'_>) -> Option<u64> {
        let slices = self.profile.scaled_to(job.scale).slices;
        (job.settings.preset_slices == SliceSelection::One && slices > 1)
            .then(|| slice_for_rotation(job.rotation, slices))
    }

    /// Returns the run that a job asks for.
    fn run_of<'a>(&self, job: &'a Job<'a>) -> PresetRun<'a> {
        let zeros = match self.content_mode {
            ContentMode::Incompressible => "",
            ContentMode::AsOriginal => "-zeros",
        };
        let slice = self.current_slice(job);
        let slice_suffix = slice.map(|slice| format!("-slice-{slice}-of-{}", self.profile.slices));
        let slice_suffix = slice_suffix.unwrap_or_default();
        PresetRun {
            job,
            profile: match job.settings.preset_slices {
                SliceSelection::One => self.round_profile(job.scale),
                SliceSelection::All => self.profile.scaled_to(job.scale),
            },
            content_mode: self.content_mode,
            folder: format!("{}-{}{zeros}{slice_suffix}", self.profile_name, job.scale.name()),
            slice,
        }
    }

    fn add_facts(&self, job: &Job<'_>) {
        let content = match self.content_mode {
            ContentMode::Incompressible => "incompressible",
            ContentMode::AsOriginal => "zeros, as the original writes",
        };
        job.session.add_fact("content", content);
        let original = self.profile.original.as_deref().unwrap_or("custom profile");
        job.session.add_fact("original", original);
        if let Some(slice) = self.current_slice(job) {
            job.session.add_fact(Run::SLICE_FACT, format!("{} of {}", slice + 1, self.profile.slices));
        }
    }
}

impl Workload for Preset {
    fn name(&self) -> &str {
        &self.name
    }

    fn folder(&self) -> &str {
        engine::FOLDER
    }

    fn is_paced(&self) -> bool {
        let works = || self.profile.phases.iter().flat_map(|phase| &phase.work);
        let programs = self.profile.phases.iter().any(|phase| phase.program.is_some());
        programs || works().any(|work| work.seconds.is_some() || work.per_second.is_some())
    }

    fn owns(&self, path: &Path) -> bool {
        engine::owns(path)
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        self.run_of(job).prepare()
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        self.add_facts(job);
        self.run_of(job).run()
    }
}
