//! The image: a folder of band files and a few property lists, as in a sparse bundle.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use serde::{Deserialize, Serialize};

use super::FOLDER;
use crate::context::{Context, Folder};
use crate::corpus::bands::{BLOCK_BYTES, Block, band_name};
use crate::error::RunError;
use crate::model::{Progress, Scale};
use crate::platform::Wanted;
use crate::workloads::{Job, create_anew, unlink_left_over};

/// The seed of every band.
pub const SEED: u64 = 0x626e_6473;
/// The property lists that a backup replaces.
pub const PROPERTY_LISTS: [&CStr; 3] =
    [c"Info.plist", c"com.apple.TimeMachine.Results.plist", c"com.apple.TimeMachine.SnapshotHistory.plist"];
/// Ends the name of a property list that is not whole yet.
pub const PARTIAL: &str = ".partial";

/// How large an image is, and how much a burst does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Bytes of a band.
    pub band_bytes: u64,
    /// Bands.
    pub bands: u64,
    /// Random overwrites of a burst.
    pub overwrites: u64,
    /// New bands of a burst; as many of the oldest are thinned.
    pub new_bands: u64,
}

/// The plan of a scale: about as much data whatever the band size is.
pub fn plan(job: &Job<'_>) -> Plan {
    let (image_bytes, overwrites) = match job.scale {
        Scale::Quick => (48 << 20, 48),
        Scale::Standard => (256 << 20, 400),
        Scale::Large => (1 << 30, 1600),
    };
    let band_bytes = (job.settings.band_bytes / BLOCK_BYTES as u64).max(16) * BLOCK_BYTES as u64;
    let bands = (image_bytes / band_bytes).max(2);
    Plan { band_bytes, bands, overwrites, new_bands: (bands / 8).max(1) }
}

impl Plan {
    fn name(&self) -> String {
        format!("{}-{}", self.band_bytes, self.bands)
    }

    /// Blocks of a band.
    pub fn blocks(&self) -> u64 {
        self.band_bytes / BLOCK_BYTES as u64
    }
}

/// How far an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Image {
    /// The oldest band.
    pub first: u64,
    /// One past the newest band; equal to `first` where there is no image yet.
    pub next: u64,
    /// The last burst that wrote to it.
    pub burst: u64,
    /// Whether a burst was interrupted, so that blocks may be half written.
    pub unfinished: bool,
}

/// What is kept in the manifest: by plan, the image.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Images {
    sets: BTreeMap<String, Image>,
}

impl Images {
    /// Reads the manifest.
    pub fn load(job: &Job<'_>) -> Result<Self, RunError> {
        Ok(job.arena.holding(FOLDER)?.unwrap_or_default())
    }

    /// The image of a plan.
    pub fn get(&self, plan: &Plan) -> Image {
        self.sets.get(&plan.name()).copied().unwrap_or_default()
    }

    /// Whether a run was interrupted, so that what it wrote may still be there.
    pub fn is_unfinished(&self) -> bool {
        self.sets.values().any(|image| image.unfinished)
    }

    /// Writes down how far the image of a plan is.
    pub fn keep(&mut self, job: &Job<'_>, plan: &Plan, image: Image) -> Result<(), RunError> {
        self.sets.insert(plan.name(), image);
        job.arena.keep(FOLDER, self, &job.preparation())
    }
}

/// The folders of an image.
pub struct Folders {
    /// Where the property lists are.
    pub bundle: Folder,
    /// Where the bands are.
    pub bands: Folder,
}

impl Folders {
    /// Opens them, and makes what is missing.
    pub fn open(job: &Job<'_>, plan: &Plan) -> Result<Self, RunError> {
        let context = job.preparation();
        let home = context.make_folder(&job.arena.folder()?, c"time-machine")?;
        let bundle = context.make_folder(&home, &text(plan.name()))?;
        let bands = context.make_folder(&bundle, c"bands")?;
        Ok(Self { bundle, bands })
    }
}

/// The name of a band's file.
pub fn band_file(band: u64) -> CString {
    text(band_name(band))
}

fn text(name: String) -> CString {
    CString::new(name).expect("names are made without NUL")
}

/// Whether a path in the folder of an image is that of a file of it.
pub fn owns(image: &str, path: &str) -> bool {
    let is_image = image.split_once('-').is_some_and(|(band_bytes, bands)| {
        let (Ok(band_bytes), Ok(bands)) = (band_bytes.parse(), bands.parse()) else { return false };
        Plan { band_bytes, bands, overwrites: 0, new_bands: 0 }.name() == image
    });
    let whole = path.strip_suffix(PARTIAL).unwrap_or(path);
    let is_list = PROPERTY_LISTS.iter().any(|list| list.to_bytes() == whole.as_bytes());
    is_image && (is_list || path.strip_prefix("bands/").is_some_and(|name| band_number(name).is_some()))
}

fn band_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|band| band_name(*band) == name)
}

/// Makes the image where it is missing, and anew where a burst was interrupted.
pub fn prepare(job: &Job<'_>) -> Result<(), RunError> {
    let plan = plan(job);
    let mut images = Images::load(job)?;
    let image = images.get(&plan);
    if image.next > image.first && !image.unfinished {
        job.require_space(plan.new_bands * plan.band_bytes)?;
        return make_linked_anew(job, &mut images, image);
    }
    images.keep(job, &plan, Image { unfinished: true, ..image })?;
    let context = job.preparation();
    let folders = Folders::open(job, &plan)?;
    remove_bands(&context, &folders)?;
    job.require_space((plan.bands + plan.new_bands) * plan.band_bytes)?;
    let mut progress = Progress {
        what: "image of time-machine".to_owned(),
        files: 0,
        files_total: plan.bands,
        bytes: 0,
        bytes_total: plan.bands * plan.band_bytes,
    };
    for band in 0..plan.bands {
        write_band(&context, &folders, &plan, (band, image.burst))?;
        progress.files += 1;
        progress.bytes += plan.band_bytes;
        job.session.progress(&progress);
    }
    images.keep(job, &plan, Image { first: 0, next: plan.bands, burst: image.burst, unfinished: false })
}

/// Makes those bands anew that may not be written in place, and tells how many: all of them where link counts cannot be
/// trusted, else those that a tool has linked elsewhere.
fn make_linked_anew(job: &Job<'_>, images: &mut Images, image: Image) -> Result<(), RunError> {
    let (plan, context) = (plan(job), job.preparation());
    let folders = Folders::open(job, &plan)?;
    let (bands, reason) = match context.reports_links(&job.arena.folder()?)? {
        false => ((image.first..image.next).collect(), "no link counts here".to_owned()),
        true => linked_bands(&context, &folders, image)?,
    };
    if bands.is_empty() {
        return Ok(());
    }
    images.keep(job, &plan, Image { unfinished: true, ..image })?;
    for band in &bands {
        write_band(&context, &folders, &plan, (*band, image.burst))?;
    }
    job.session.fact("made-anew", format!("{} bands ({reason})", bands.len()));
    images.keep(job, &plan, image)
}

/// The bands that are not longhaul's alone, and why the first of them is not.
fn linked_bands(
    context: &Context<'_>,
    folders: &Folders,
    image: Image,
) -> Result<(Vec<u64>, String), RunError> {
    let (mut bands, mut first) = (vec![], None);
    for band in image.first..image.next {
        if let Some(reason) = context.why_not_in_place(&folders.bands, &band_file(band))? {
            bands.push(band);
            first.get_or_insert(reason);
        }
    }
    Ok((bands, first.unwrap_or_default()))
}

fn remove_bands(context: &Context<'_>, folders: &Folders) -> Result<(), RunError> {
    let mut names = vec![];
    context.list(&folders.bands, Wanted::Names, &mut Default::default(), |entry| {
        names.extend(entry.name.to_str().ok().and_then(band_number));
        Ok::<_, RunError>(())
    })?;
    names.into_iter().try_for_each(|band| unlink_left_over(context, &folders.bands, &band_file(band)))
}

/// Writes a whole band, a megabyte a call, and syncs it.
pub fn write_band(
    context: &Context<'_>,
    folders: &Folders,
    plan: &Plan,
    (band, burst): (u64, u64),
) -> Result<crate::model::SyncKind, RunError> {
    let file = create_anew(context, &folders.bands, &band_file(band))?;
    let mut buffer = vec![];
    for first in (0..plan.blocks()).step_by(16) {
        let end = (first + 16).min(plan.blocks());
        fill_blocks(&mut buffer, Block { band, index: first, burst }, end - first);
        context.write_all(&file, &buffer, first * BLOCK_BYTES as u64)?;
    }
    let kind = context.full_sync(&file)?;
    context.close(file)?;
    Ok(kind)
}

/// Makes the bytes of `count` blocks from `first` on.
pub fn fill_blocks(buffer: &mut Vec<u8>, first: Block, count: u64) {
    buffer.resize(count as usize * BLOCK_BYTES, 0);
    let (blocks, _) = buffer.as_chunks_mut::<BLOCK_BYTES>();
    for (place, bytes) in blocks.iter_mut().enumerate() {
        Block { index: first.index + place as u64, ..first }.fill(SEED, bytes);
    }
}
