//! The disk image: a folder of band files and a few property lists, as in a sparse bundle.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};

use super::speed_test::{self, SpeedTest};
use crate::checks::integrity::WriteTimes;
use crate::error::RunError;
use crate::platform::ListingFields;
use crate::timed_fs::{Folder, TimedFs};
use crate::workloads::{Job, create_or_replace, unlink_leftover};
use longhaul_corpus::bands::{BLOCK_BYTES, Block, band_name};
use longhaul_corpus::names::to_cstring;
use longhaul_model::{Progress, Scale, Timestamp};

/// The name of the folder and of the manifest entry that both workloads share.
pub const FOLDER: &str = "time-machine";
/// The seed for the content of all bands.
pub const SEED: u64 = 0x626e_6473;
/// The property lists that a backup replaces.
pub const PROPERTY_LISTS: [&CStr; 3] =
    [c"Info.plist", c"com.apple.TimeMachine.Results.plist", c"com.apple.TimeMachine.SnapshotHistory.plist"];
/// The name suffix of a property list that is still being written.
pub const PARTIAL_SUFFIX: &str = ".partial";

/// The size of an image, and the work of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImagePlan {
    /// Size of one band in bytes.
    pub band_bytes: u64,
    /// Number of bands in the image.
    pub bands: u64,
    /// Number of random overwrites in a burst.
    pub overwrites: u64,
    /// Number of bands that a burst adds; the same number of the oldest bands is removed afterwards.
    pub new_bands: u64,
}

/// Returns the plan for the scale of a job. The image size hardly depends on the band size.
pub fn plan(job: &Job<'_>) -> ImagePlan {
    let (image_bytes, overwrites) = match job.scale {
        Scale::Quick => (48 << 20, 48),
        Scale::Standard => (256 << 20, 400),
        Scale::Large => (1 << 30, 1600),
    };
    let band_bytes = (job.settings.band_bytes / BLOCK_BYTES as u64).max(16) * BLOCK_BYTES as u64;
    let bands = (image_bytes / band_bytes).max(2);
    ImagePlan { band_bytes, bands, overwrites, new_bands: (bands / 8).max(1) }
}

impl ImagePlan {
    fn name(&self) -> String {
        format!("{}-{}", self.band_bytes, self.bands)
    }

    /// Returns the number of bytes that a run needs besides the image. The speed test removes its files before the burst.
    fn run_bytes(&self) -> u64 {
        speed_test::BYTES.max(self.new_bands * self.band_bytes)
    }

    /// Returns the number of blocks in a band.
    pub fn blocks(&self) -> u64 {
        self.band_bytes / BLOCK_BYTES as u64
    }
}

/// The state of an image, as stored in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImageState {
    /// Number of the oldest band.
    pub first: u64,
    /// Number of the newest band plus 1; equal to `first` if there is no image yet.
    pub next: u64,
    /// Number of the last burst that wrote to the image.
    pub burst: u64,
    /// True while a burst is in progress and after it was interrupted, so that blocks may be half written.
    pub unfinished: bool,
}

/// The manifest entry: the states of all images, by the name of their plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ImageManifest {
    sets: BTreeMap<String, ImageState>,
    /// True while a run is in progress and after it was interrupted: files of its speed test may be left.
    #[serde(default)]
    pub speed_files_left: bool,
    /// Times at which the bursts of each image were written.
    #[serde(default)]
    write_times: BTreeMap<String, WriteTimes>,
}

impl ImageManifest {
    /// Reads the states of all images from the sandbox's manifest.
    pub fn load(job: &Job<'_>) -> Result<Self, RunError> {
        Ok(job.sandbox.manifest_entry(FOLDER)?.unwrap_or_default())
    }

    /// Returns the state of the image with this plan.
    pub fn get(&self, plan: &ImagePlan) -> ImageState {
        self.sets.get(&plan.name()).copied().unwrap_or_default()
    }

    /// Iterates over all images: the name of each and its state.
    pub fn images(&self) -> impl Iterator<Item = (&str, ImageState)> {
        self.sets.iter().map(|(name, image)| (name.as_str(), *image))
    }

    /// Records that a burst is written now. Bands that are made again have the last burst, so an earlier time of it no longer
    /// holds.
    pub fn record_burst(&mut self, plan: &ImagePlan, burst: u64, now: Timestamp) {
        let times = self.write_times.entry(plan.name()).or_default();
        times.forget_from(burst);
        times.record(burst, now);
    }

    /// Returns the time by which a burst was written; `now` for those after the last recorded one, which were written less
    /// than a day ago. `None` if nothing was recorded yet.
    pub fn written_by(&self, plan: &ImagePlan, burst: u64, now: Timestamp) -> Option<Timestamp> {
        self.write_times.get(&plan.name()).map(|times| times.written_by(burst).unwrap_or(now))
    }

    /// Stores the state of an image in the manifest.
    pub fn store(&mut self, job: &Job<'_>, plan: &ImagePlan, image: ImageState) -> Result<(), RunError> {
        self.sets.insert(plan.name(), image);
        job.sandbox.record_entry(FOLDER, self, &job.untimed())
    }
}

/// Open handles of the folders of an image.
pub struct ImageFolders {
    /// Folder of the property lists.
    pub bundle: Folder,
    /// Folder of the bands.
    pub bands: Folder,
}

impl ImageFolders {
    /// Opens the folders of an image; creates missing folders.
    pub fn open(job: &Job<'_>, plan: &ImagePlan) -> Result<Self, RunError> {
        let context = job.untimed();
        let home = context.create_and_open_folder(&job.sandbox.folder()?, c"time-machine")?;
        let bundle = context.create_and_open_folder(&home, &to_cstring(plan.name()))?;
        let bands = context.create_and_open_folder(&bundle, c"bands")?;
        Ok(Self { bundle, bands })
    }
}

/// Returns the file name of a band.
pub fn band_file_name(band: u64) -> CString {
    to_cstring(band_name(band))
}

/// Returns whether `image` is the name of an image folder and `path` a file that an image has.
pub fn owns(image: &str, path: &str) -> bool {
    let is_image = plan_of_name(image).is_some();
    let final_path = path.strip_suffix(PARTIAL_SUFFIX).unwrap_or(path);
    let is_list = PROPERTY_LISTS.iter().any(|list| list.to_bytes() == final_path.as_bytes());
    is_image && (is_list || path.strip_prefix("bands/").is_some_and(|name| band_number(name).is_some()))
}

/// Returns the plan of the image with this name, without the work of its bursts; `None` for other names.
pub fn plan_of_name(image: &str) -> Option<ImagePlan> {
    let (band_bytes, bands) = image.split_once('-')?;
    let (band_bytes, bands) = (band_bytes.parse().ok()?, bands.parse().ok()?);
    let plan = ImagePlan { band_bytes, bands, overwrites: 0, new_bands: 0 };
    (plan.name() == image).then_some(plan)
}

/// Returns the number of the band with this file name; `None` for other names.
pub fn band_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|band| band_name(*band) == name)
}

/// Creates the image if it is missing, and recreates it if a burst was interrupted. Removes what an interrupted speed test left.
pub fn prepare(job: &Job<'_>) -> Result<(), RunError> {
    let plan = plan(job);
    let mut images = ImageManifest::load(job)?;
    let image = images.get(&plan);
    if images.speed_files_left {
        SpeedTest::open(job)?.remove(&job.untimed())?;
        images.speed_files_left = false;
    }
    if image.next > image.first && !image.unfinished {
        job.require_space(plan.run_bytes())?;
        return recreate_unusable_bands(job, &mut images, image);
    }
    // Stored before any band is removed, so that an interrupted preparation is not mistaken for a complete image.
    images.store(job, &plan, ImageState { unfinished: true, ..image })?;
    let context = job.untimed();
    let folders = ImageFolders::open(job, &plan)?;
    remove_bands(&context, &folders)?;
    job.require_space(plan.bands * plan.band_bytes + plan.run_bytes())?;
    let mut progress = Progress {
        item: "image of time-machine".to_owned(),
        files: 0,
        files_total: plan.bands,
        bytes: 0,
        bytes_total: plan.bands * plan.band_bytes,
    };
    for band in 0..plan.bands {
        write_band(&context, &folders, &plan, Block { band, index: 0, burst: image.burst })?;
        progress.files += 1;
        progress.bytes += plan.band_bytes;
        job.session.progress(&progress);
    }
    images.record_burst(&plan, image.burst, job.now);
    images.store(job, &plan, ImageState { first: 0, next: plan.bands, burst: image.burst, unfinished: false })
}

/// Recreates bands that are missing or must not be written in place, and stores their number as a fact of the run.
///
/// A band with a second hard link may belong to a user's backup. If link counts are not reliable on the target,
/// all bands are recreated.
fn recreate_unusable_bands(
    job: &Job<'_>,
    images: &mut ImageManifest,
    image: ImageState,
) -> Result<(), RunError> {
    let (plan, context) = (plan(job), job.untimed());
    let folders = ImageFolders::open(job, &plan)?;
    let is_reliable = context.has_reliable_link_counts(&job.sandbox.folder()?)?;
    let (bands, reason) = match is_reliable {
        false => ((image.first..image.next).collect(), "link counts are not reliable here".to_owned()),
        true => unusable_bands(&context, &folders, image)?,
    };
    if bands.is_empty() {
        return Ok(());
    }
    if is_reliable {
        // Removing a band that is missing or has another name frees no space.
        job.require_space(bands.len() as u64 * plan.band_bytes + plan.run_bytes())?;
    }
    images.store(job, &plan, ImageState { unfinished: true, ..image })?;
    for band in &bands {
        write_band(&context, &folders, &plan, Block { band: *band, index: 0, burst: image.burst })?;
    }
    job.session.add_fact("recreated-bands", format!("{} bands ({reason})", bands.len()));
    images.record_burst(&plan, image.burst, job.now);
    images.store(job, &plan, image)
}

/// Returns the bands that are missing or must not be written in place, and the reason for the first of them.
fn unusable_bands(
    context: &TimedFs<'_>,
    folders: &ImageFolders,
    image: ImageState,
) -> Result<(Vec<u64>, String), RunError> {
    let (mut bands, mut first_reason) = (vec![], None);
    for band in image.first..image.next {
        let reason = match context.in_place_refusal(&folders.bands, &band_file_name(band)) {
            Err(error) if error.is_not_found() => Some("it is missing".to_owned()),
            other => other?,
        };
        if let Some(reason) = reason {
            bands.push(band);
            first_reason.get_or_insert(reason);
        }
    }
    Ok((bands, first_reason.unwrap_or_default()))
}

fn remove_bands(context: &TimedFs<'_>, folders: &ImageFolders) -> Result<(), RunError> {
    let mut names = vec![];
    context.list(&folders.bands, ListingFields::Names, &mut Default::default(), |entry| {
        names.extend(entry.name.to_str().ok().and_then(band_number));
        Ok::<_, RunError>(())
    })?;
    names.into_iter().try_for_each(|band| unlink_leftover(context, &folders.bands, &band_file_name(band)))
}

/// Creates the band of a block, writes it with one call per megabyte and syncs it.
pub fn write_band(
    context: &TimedFs<'_>,
    folders: &ImageFolders,
    plan: &ImagePlan,
    block: Block,
) -> Result<longhaul_model::SyncKind, RunError> {
    let file = create_or_replace(context, &folders.bands, &band_file_name(block.band))?;
    let mut buffer = vec![];
    for first in (0..plan.blocks()).step_by(16) {
        let end = (first + 16).min(plan.blocks());
        fill_blocks(&mut buffer, Block { index: first, ..block }, end - first);
        context.write_all(&file, &buffer, first * BLOCK_BYTES as u64)?;
    }
    let kind = context.full_sync(&file)?;
    context.close(file)?;
    Ok(kind)
}

/// Fills the buffer with the content of `count` blocks, starting with `first`.
pub fn fill_blocks(buffer: &mut Vec<u8>, first: Block, count: u64) {
    buffer.resize(count as usize * BLOCK_BYTES, 0);
    let (blocks, _) = buffer.as_chunks_mut::<BLOCK_BYTES>();
    for (position, bytes) in blocks.iter_mut().enumerate() {
        Block { index: first.index + position as u64, ..first }.fill(SEED, bytes);
    }
}
