//! Opening a batch of photos, Preview-like: thumbnails of all, the first image in full, then switching between images;
//! and all of it once more, to see what the client keeps.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::OnceLock;

use super::{Job, Workload};
use crate::context::{Buffer, Context, Folder, PhaseSpec};
use crate::corpus::draw::shuffled;
use crate::corpus::slices::{MOST_SLICES, Sets};
use crate::corpus::{Photo, decode, photo_sizes, thumbnail};
use crate::error::RunError;
use crate::model::{CacheState, ColdBy, Endpoint, Figure, Operation, Presence, Progress, Scale, Unit};
use crate::platform::Access;
use crate::stats::{P95_NEEDS, median, quantile};

/// How much of each photo is read for its thumbnail: Exif lies in the first 64 KiB.
const HEAD_BYTES: usize = 64 << 10;
/// Bytes of one read call for a whole image.
const READ_BYTES: usize = 256 << 10;
/// How many photos are opened at the same time.
const WIDTH: usize = 8;
/// How many photos are made at the same time.
const BUILT_AT_ONCE: usize = 4;
/// Mean size of a photo: 155 of them make 415 MB.
pub const MEAN_BYTES: u64 = 415_000_000 / 155;

/// The workload.
pub struct PhotoBatch;

/// What the manifest says of its corpora.
fn kept(job: &Job<'_>) -> Result<Sets, RunError> {
    Ok(job.arena.holding(PhotoBatch.folder())?.unwrap_or_default())
}

/// How much is done at a scale.
struct Plan {
    photos: u64,
    switches: u32,
    switch_seconds: f64,
}

fn plan(scale: Scale) -> Plan {
    match scale {
        Scale::Quick => Plan { photos: 16, switches: 5, switch_seconds: 0.5 },
        Scale::Standard => Plan { photos: 155, switches: 20, switch_seconds: 2.0 },
        Scale::Large => Plan { photos: 620, switches: 20, switch_seconds: 2.0 },
    }
}

/// One slice: photos of one seed.
pub struct Album {
    seed: u64,
    sizes: Vec<u64>,
    folder: CString,
}

impl Album {
    /// The album of that slice.
    pub fn new(photos: u64, slice: u64) -> Self {
        let seed = 0x7068_6f00 + slice;
        let sizes = photo_sizes(seed, photos as usize, photos * MEAN_BYTES);
        Self { seed, sizes, folder: album_name(photos, slice) }
    }

    fn photo(&self, index: usize) -> Photo {
        Photo::new(self.seed, index as u32, self.sizes[index])
    }

    /// How many photos it has.
    pub fn photos(&self) -> usize {
        self.sizes.len()
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

fn album_name(photos: u64, slice: u64) -> CString {
    CString::new(format!("{photos}-{slice}")).expect("digits hold no NUL")
}

fn photo_name(index: usize) -> CString {
    CString::new(format!("IMG_{:04}.JPG", index + 1)).expect("digits hold no NUL")
}

/// What a person waits for: that all previews are there, and that the next image is.
const ENDPOINTS: [Endpoint; 4] = {
    const fn open(name: &'static str, cache: CacheState) -> Endpoint {
        Endpoint {
            name,
            activity: "opening a batch of photos",
            cache,
            figures: &[("open", "sidebar")],
            presence: Presence::Interactive,
            weight: 0.0625,
        }
    }
    const fn switch(name: &'static str, cache: CacheState) -> Endpoint {
        Endpoint {
            activity: "switching to the next photo",
            figures: &[("browse", "switch-median")],
            ..open(name, cache)
        }
    }
    [
        open("photos-cold", CacheState::Cold),
        open("photos-warm", CacheState::Warm),
        switch("switch-cold", CacheState::Cold),
        switch("switch-warm", CacheState::Warm),
    ]
};

impl Workload for PhotoBatch {
    fn name(&self) -> &'static str {
        "photo-batch"
    }

    fn summary(&self) -> &'static str {
        "opens 155 photos (415 MB) with thumbnails, switches between images, then all of it again"
    }

    fn is_paced(&self) -> bool {
        true
    }

    fn endpoints(&self) -> &'static [Endpoint] {
        &ENDPOINTS
    }

    fn owns(&self, path: &Path) -> bool {
        let Some((album, name)) = path.to_str().and_then(|path| path.split_once('/')) else { return false };
        let Some((photos, slice)) = album.split_once('-') else { return false };
        let (Ok(photos), Ok(slice)) = (photos.parse::<u64>(), slice.parse::<u64>()) else { return false };
        let number =
            name.strip_prefix("IMG_").and_then(|rest| rest.strip_suffix(".JPG")?.parse::<u64>().ok());
        let is_ours = |number: u64| {
            (1..=photos).contains(&number) && photo_name(number as usize - 1).to_bytes() == name.as_bytes()
        };
        album_name(photos, slice).to_bytes() == album.as_bytes()
            && slice < MOST_SLICES
            && number.is_some_and(is_ours)
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        let photos = plan(job.scale).photos;
        build(job, photos, job.slice())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let plan = plan(job.scale);
        let slice = job.slice();
        let album = Album::new(plan.photos, slice);
        let context = job.preparation();
        let folder = open_album(&context, job, &album)?;
        let mut albums = kept(job)?;
        let cold = albums.slice(plan.photos, slice).data_cold_by(job.now_us);
        let visit = Visit { plan: &plan, album: &album, folder: &folder, seed: job.seed };
        let result = visit.phases(job, cold);
        let state = albums.slice(plan.photos, slice);
        state.used_us = Some(job.now_us);
        state.evicted = result.is_ok() && evict(&context, &folder, &album)?;
        if result.as_ref().is_err_and(RunError::spoils_the_corpus) {
            state.built = 0;
        }
        job.arena.keep(self.folder(), &albums, &context)?;
        result
    }
}

fn open_album(context: &Context<'_>, job: &Job<'_>, album: &Album) -> Result<Folder, RunError> {
    let home = context.make_folder(&job.arena.folder()?, c"photo-batch")?;
    context.make_folder(&home, &album.folder)
}

/// Makes what is missing of a slice, a few photos at a time.
fn build(job: &Job<'_>, photos: u64, slice: u64) -> Result<(), RunError> {
    let mut albums = kept(job)?;
    let built = albums.slice(photos, slice).built;
    if built >= photos {
        return Ok(());
    }
    let album = Album::new(photos, slice);
    job.require_space(album.sizes[built as usize..].iter().sum())?;
    let context = job.preparation();
    job.arena.keep(PhotoBatch.folder(), &albums, &context)?;
    let folder = open_album(&context, job, &album)?;
    let mut progress = Progress {
        what: format!("album {slice} of photo-batch"),
        files: built,
        files_total: photos,
        bytes: album.sizes[..built as usize].iter().sum(),
        bytes_total: album.bytes(),
    };
    for first in (built..photos).step_by(BUILT_AT_ONCE) {
        let end = photos.min(first + BUILT_AT_ONCE as u64);
        make_photos(&context, &folder, &album, first as usize..end as usize)?;
        progress.files = end;
        progress.bytes = album.sizes[..end as usize].iter().sum();
        job.session.progress(&progress);
        let state = albums.slice(photos, slice);
        state.built = end;
        state.used_us = Some(job.now_us);
        if state.built % 16 == 0 || state.built == photos {
            state.evicted = state.built == photos && evict(&context, &folder, &album)?;
            job.arena.keep(PhotoBatch.folder(), &albums, &context)?;
        }
    }
    Ok(())
}

/// Makes photos of an album, several at a time: a share takes in more than one core draws.
pub fn make_photos(
    context: &Context<'_>,
    folder: &Folder,
    album: &Album,
    indices: std::ops::Range<usize>,
) -> Result<(), RunError> {
    let indices: Vec<usize> = indices.collect();
    context.spread(BUILT_AT_ONCE, &indices, |context, index| make_photo(context, folder, album, *index))
}

/// Makes one photo of an album, synced so that it can be evicted.
fn make_photo(context: &Context<'_>, folder: &Folder, album: &Album, index: usize) -> Result<(), RunError> {
    let file = super::create_anew(context, folder, &photo_name(index))?;
    let mut offset = 0;
    album.photo(index).write(&mut |bytes: &[u8]| {
        context.write_all(&file, bytes, offset)?;
        offset += bytes.len() as u64;
        Ok::<_, RunError>(())
    })?;
    context.sync(&file)?;
    context.close(file)
}

/// Evicts a whole album and says whether the kernel confirms that nothing stayed.
///
/// It is done when a slice is left, not before it is met: opening the files then would warm their attributes.
fn evict(context: &Context<'_>, folder: &Folder, album: &Album) -> Result<bool, RunError> {
    let mut all_gone = true;
    for (index, size) in album.sizes.iter().enumerate() {
        all_gone &= context.evict_named(folder, &photo_name(index), *size)?;
    }
    Ok(all_gone)
}

/// One visit to one album.
struct Visit<'a> {
    plan: &'a Plan,
    album: &'a Album,
    folder: &'a Folder,
    seed: u64,
}

impl Visit<'_> {
    fn phases(&self, job: &Job<'_>, cold: ColdBy) -> Result<(), RunError> {
        let session = job.session;
        session.fact("photos", format!("{} files, {} bytes", self.plan.photos, self.album.bytes()));
        session.phase(PhaseSpec::cold("open", cold), |context| self.open(context))?;
        session.phase(PhaseSpec::cold("browse", cold), |context| self.browse(context))?;
        session.phase(PhaseSpec::warm("open"), |context| self.open(context))?;
        session.phase(PhaseSpec::warm("browse"), |context| self.browse(context))
    }

    /// Reads the head of every photo and decodes its thumbnail; the first photo is read and decoded in full.
    fn open(&self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let window = OnceLock::new();
        let indices: Vec<usize> = (0..self.album.sizes.len()).collect();
        context.spread(WIDTH, &indices, |context, index| {
            self.show_thumbnail(context, *index)?;
            if *index == 0 {
                let bytes = self.show_photo(context, 0)?;
                window.get_or_init(|| context.elapsed());
                self.verify(0, &bytes)?;
            }
            Ok(())
        })?;
        let sidebar = context.elapsed();
        Ok(vec![
            Figure::new("window", Unit::Seconds, window.get().copied().unwrap_or(sidebar)),
            Figure::new("sidebar", Unit::Seconds, sidebar),
        ])
    }

    fn show_thumbnail(&self, context: &Context<'_>, index: usize) -> Result<(), RunError> {
        let name = photo_name(index);
        let mut head = Buffer::new(HEAD_BYTES);
        let file = context.open(self.folder, &name, Access::Read)?;
        let length = context.read_full(&file, &mut head, 0)?;
        context.close(file)?;
        let decoded = context.compute(Operation::Decode, || decode(&head[thumbnail(&head[..length])?]));
        decoded.map(drop).map_err(|error| self.not_an_image(&name, &error))
    }

    /// Reads a whole photo and decodes it.
    fn show_photo(&self, context: &Context<'_>, index: usize) -> Result<Buffer, RunError> {
        let name = photo_name(index);
        let file = context.open(self.folder, &name, Access::Read)?;
        let mut bytes = Buffer::new(self.album.sizes[index] as usize);
        let mut length = 0;
        for piece in bytes.chunks_mut(READ_BYTES) {
            length += context.read_full(&file, piece, length as u64)?;
        }
        context.close(file)?;
        bytes.truncate(length);
        let decoded = context.compute(Operation::Decode, || decode(&bytes));
        decoded.map_err(|error| self.not_an_image(&name, &error))?;
        Ok(bytes)
    }

    fn not_an_image(&self, name: &CStr, error: &dyn std::fmt::Display) -> RunError {
        RunError::damaged(&self.folder.join(name), format!("it does not decode: {error}"))
    }

    fn verify(&self, index: usize, bytes: &[u8]) -> Result<(), RunError> {
        match self.album.photo(index).matches(bytes) {
            None => Ok(()),
            Some(offset) => Err(RunError::damaged(
                &self.folder.join(&photo_name(index)),
                format!("byte {offset} is not what was written"),
            )),
        }
    }

    /// Switches to images that were not shown before, on a fixed schedule; the latency counts from the scheduled
    /// instant, so that a slow switch also delays the ones behind it, as it does for a person.
    fn browse(&self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let order = shuffled(self.seed, 0x6272_6f77, self.album.sizes.len() as u64);
        let mut latencies = vec![];
        for (turn, index) in
            order.iter().filter(|index| **index != 0).take(self.plan.switches as usize).enumerate()
        {
            let scheduled = turn as f64 * self.plan.switch_seconds;
            context.wait_until(scheduled)?;
            let bytes = self.show_photo(context, *index as usize)?;
            latencies.push(context.elapsed() - scheduled);
            self.verify(*index as usize, &bytes)?;
        }
        let figure = |name, value: Option<f64>| value.map(|value| Figure::new(name, Unit::Seconds, value));
        let slowest = latencies.iter().copied().reduce(f64::max);
        let figures = [
            figure("switch-median", median(&latencies)),
            figure("switch-p95", quantile(&latencies, 0.95).filter(|_| latencies.len() >= P95_NEEDS)),
            figure("switch-slowest", slowest),
        ];
        Ok(figures.into_iter().flatten().collect())
    }
}
