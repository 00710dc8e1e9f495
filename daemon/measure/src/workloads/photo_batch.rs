//! Opens a batch of photos like Preview: thumbnails of all, the first photo in full, then switches between photos.
//!
//! Everything is then repeated, to measure the benefit of the client's cache.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::job::Job;
use super::leftovers::create_or_replace;
use super::workload::{ContentLookup, Workload};
use crate::checks::integrity::KnownContent;
use crate::error::RunError;
use crate::platform::Access;
use crate::timed_fs::{Buffer, Folder, PhaseSpec, TimedFs};
use longhaul_corpus::names::to_cstring;
use longhaul_corpus::slices::{SliceSets, parse_slice_name, slice_name};
use longhaul_corpus::{Photo, decode, photo_sizes, thumbnail};
use longhaul_model::draw::shuffled_indices;
use longhaul_model::{
    ColdMethod, DamagePattern, DataAge, Figure, MIN_VALUES_FOR_P95, Operation, PHOTO_BATCH, Progress, Scale,
    Timestamp, Unit, VerifiedData, median, quantile,
};

/// The number of bytes read from each photo for its thumbnail: Exif data is in the first 64 KiB.
const HEAD_BYTES: usize = 64 << 10;
/// The number of bytes in one read call when a whole photo is read.
const READ_BYTES: usize = 256 << 10;
/// The number of threads that open photos.
const READ_THREADS: usize = 8;
/// The number of threads that create photos.
const BUILD_THREADS: usize = 4;
/// The mean size of a photo in bytes: 155 photos have 415 MB.
pub const MEAN_PHOTO_BYTES: u64 = 415_000_000 / 155;

/// The workload that opens a batch of photos.
pub struct PhotoBatch;

/// Reads the state of this workload's slices from the manifest.
fn stored_slices(job: &Job<'_>) -> Result<SliceSets, RunError> {
    Ok(job.sandbox.manifest_entry(PhotoBatch.folder())?.unwrap_or_default())
}

/// The amount of work at one scale.
struct PhotoPlan {
    photos: u64,
    switches: u32,
    switch_seconds: f64,
}

fn plan(scale: Scale) -> PhotoPlan {
    match scale {
        Scale::Quick => PhotoPlan { photos: 16, switches: 5, switch_seconds: 0.5 },
        Scale::Standard => PhotoPlan { photos: 155, switches: 20, switch_seconds: 2.0 },
        Scale::Large => PhotoPlan { photos: 620, switches: 20, switch_seconds: 2.0 },
    }
}

/// One slice of the corpus: photos that are generated from one seed.
pub struct Album {
    seed: u64,
    sizes: Vec<u64>,
    folder: CString,
}

impl Album {
    /// Creates the description of the album of a slice.
    pub fn new(photos: u64, slice: u64) -> Self {
        let seed = 0x7068_6f00 + slice;
        let sizes = photo_sizes(seed, photos as usize, photos * MEAN_PHOTO_BYTES);
        Self { seed, sizes, folder: slice_name(photos, slice) }
    }

    fn photo(&self, index: usize) -> Photo {
        Photo::new(self.seed, index as u32, self.sizes[index])
    }

    /// Returns the number of photos in the album.
    pub fn photos(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the total size of the album's photos in bytes.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

fn photo_name(index: usize) -> CString {
    to_cstring(format!("IMG_{:04}.JPG", index + 1))
}

/// Place of a photo: its album, and its index in it.
struct PhotoPlace {
    photos: u64,
    slice: u64,
    index: usize,
}

/// Parses the path of a photo in the workload's folder; `None` if no photo has this path.
fn parse_path(path: &Path) -> Option<PhotoPlace> {
    let (album, name) = path.to_str()?.split_once('/')?;
    let (photos, slice) = parse_slice_name(album)?;
    let number = name.strip_prefix("IMG_")?.strip_suffix(".JPG")?.parse::<u64>().ok()?;
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    let is_ours = number <= photos && photo_name(index).to_bytes() == name.as_bytes();
    is_ours.then_some(PhotoPlace { photos, slice, index })
}

/// A photo of an album, as it was written.
struct KnownPhoto {
    album: Album,
    index: usize,
    written: Option<Timestamp>,
}

impl KnownContent for KnownPhoto {
    fn length(&self) -> u64 {
        self.album.sizes[self.index]
    }

    fn expected(&self, offset: u64, _: &[u8], out: &mut [u8]) {
        fill_photo(&self.album.photo(self.index), offset, out);
    }

    fn origin(&self, offset: u64, found: &[u8]) -> Option<DamagePattern> {
        let mut bytes = vec![0; found.len()];
        let mut is_origin = |index: &usize| {
            let end = offset + found.len() as u64;
            *index != self.index && end <= self.album.sizes[*index] && {
                fill_photo(&self.album.photo(*index), offset, &mut bytes);
                bytes == found
            }
        };
        let other = (0..self.album.photos()).find(|index| is_origin(index))?;
        Some(DamagePattern::OtherFile { name: photo_name(other).to_string_lossy().into_owned() })
    }

    fn written(&self) -> Option<Timestamp> {
        self.written
    }
}

/// Fills `out` with the bytes of a photo from an offset on.
fn fill_photo(photo: &Photo, offset: u64, out: &mut [u8]) {
    let (mut position, end) = (0, offset + out.len() as u64);
    // The error only ends the writing.
    let _ = photo.write(&mut |bytes: &[u8]| {
        let next = position + bytes.len() as u64;
        let (from, to) = (offset.max(position), end.min(next));
        if from < to {
            let source = &bytes[(from - position) as usize..(to - position) as usize];
            out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
        }
        position = next;
        if position < end { Ok(()) } else { Err(()) }
    });
}

impl Workload for PhotoBatch {
    fn name(&self) -> &'static str {
        PHOTO_BATCH.name()
    }

    fn is_paced(&self) -> bool {
        PHOTO_BATCH.is_paced()
    }

    fn owns(&self, path: &Path) -> bool {
        parse_path(path).is_some()
    }

    fn known_contents(&self, job: &Job<'_>) -> Result<ContentLookup, RunError> {
        let albums = stored_slices(job)?;
        let lookup = move |path: &Path| -> Option<Box<dyn KnownContent>> {
            let PhotoPlace { photos, slice, index } = parse_path(path)?;
            let written = albums.get(photos, slice).written_us;
            Some(Box::new(KnownPhoto { album: Album::new(photos, slice), index, written }))
        };
        Ok(Box::new(lookup))
    }

    fn kept_files(&self, job: &Job<'_>) -> Result<Vec<PathBuf>, RunError> {
        let built: Vec<_> = stored_slices(job)?.built_files().collect();
        let path = |album: &CStr, index: u64| {
            Path::new(&*album.to_string_lossy()).join(&*photo_name(index as usize).to_string_lossy())
        };
        let files = built.into_iter().flat_map(|(photos, slice, built)| {
            let album = slice_name(photos, slice);
            (0..built).map(move |index| path(&album, index))
        });
        Ok(files.collect())
    }

    fn set_all_used(&self, job: &Job<'_>, now: Timestamp) -> Result<(), RunError> {
        let mut albums = stored_slices(job)?;
        albums.set_all_used(now);
        job.sandbox.record_entry(self.folder(), &albums, &job.untimed())
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        let photos = plan(job.scale).photos;
        build(job, photos, job.current_slice())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let plan = plan(job.scale);
        let slice = job.current_slice();
        let album = Album::new(plan.photos, slice);
        let context = job.untimed();
        let mut albums = stored_slices(job)?;
        let state = albums.get(plan.photos, slice);
        // Before the first phase: a run can end at any moment, and caches hold parts of the album until it is evicted.
        albums.slice(plan.photos, slice).set_used(job.now);
        job.sandbox.record_entry(self.folder(), &albums, &context)?;
        let folder = open_album(&context, job, &album)?;
        let age = DataAge::between(state.written_us, job.now);
        let visit = AlbumVisit { plan: &plan, album: &album, folder: &folder, seed: job.seed, age };
        let result = visit.run_phases(job, state.data_cold_method(job.now));
        let state = albums.slice(plan.photos, slice);
        match &result {
            Ok(()) => state.evicted = evict(&context, &folder, &album)?,
            Err(error) if error.invalidates_corpus() => state.built = 0,
            Err(_) => {}
        }
        job.sandbox.record_entry(self.folder(), &albums, &context)?;
        result
    }
}

fn open_album(context: &TimedFs<'_>, job: &Job<'_>, album: &Album) -> Result<Folder, RunError> {
    let home = context.create_and_open_folder(&job.sandbox.folder()?, c"photo-batch")?;
    context.create_and_open_folder(&home, &album.folder)
}

/// Creates the missing photos of a slice, a few at a time.
///
/// The progress is stored in the manifest after every 16 photos, so that an interrupted preparation can continue.
fn build(job: &Job<'_>, photos: u64, slice: u64) -> Result<(), RunError> {
    let mut albums = stored_slices(job)?;
    let built = albums.slice(photos, slice).built;
    if built >= photos {
        return Ok(());
    }
    let album = Album::new(photos, slice);
    job.require_space(album.sizes[built as usize..].iter().sum())?;
    let context = job.untimed();
    job.sandbox.record_entry(PhotoBatch.folder(), &albums, &context)?;
    let folder = open_album(&context, job, &album)?;
    let mut progress = Progress {
        item: format!("album {slice} of photo-batch"),
        files: built,
        files_total: photos,
        bytes: album.sizes[..built as usize].iter().sum(),
        bytes_total: album.bytes(),
    };
    for first in (built..photos).step_by(BUILD_THREADS) {
        let end = photos.min(first + BUILD_THREADS as u64);
        make_photos(&context, &folder, &album, first as usize..end as usize)?;
        progress.files = end;
        progress.bytes = album.sizes[..end as usize].iter().sum();
        job.session.progress(&progress);
        let state = albums.slice(photos, slice);
        state.built = end;
        state.used_us = Some(job.now);
        state.written_us = Some(job.now);
        if state.built % 16 == 0 || state.built == photos {
            state.evicted = state.built == photos && evict(&context, &folder, &album)?;
            job.sandbox.record_entry(PhotoBatch.folder(), &albums, &context)?;
        }
    }
    Ok(())
}

/// Creates photos of an album in several threads: one core generates photos more slowly than a share can store
/// them.
pub fn make_photos(
    context: &TimedFs<'_>,
    folder: &Folder,
    album: &Album,
    indices: std::ops::Range<usize>,
) -> Result<(), RunError> {
    let indices: Vec<usize> = indices.collect();
    context.run_parallel(BUILD_THREADS, &indices, |context, index| make_photo(context, folder, album, *index))
}

/// Creates one photo of an album and syncs it, because only clean pages can be evicted.
fn make_photo(context: &TimedFs<'_>, folder: &Folder, album: &Album, index: usize) -> Result<(), RunError> {
    let file = create_or_replace(context, folder, &photo_name(index))?;
    let mut offset = 0;
    album.photo(index).write(&mut |bytes: &[u8]| {
        context.write_all(&file, bytes, offset)?;
        offset += bytes.len() as u64;
        Ok::<_, RunError>(())
    })?;
    context.sync(&file)?;
    context.close(file)
}

/// Evicts a whole album from this machine's cache and returns whether the kernel confirms that nothing remained.
///
/// An album is evicted after its use and not before its next use: opening the files then would warm their
/// attributes.
fn evict(context: &TimedFs<'_>, folder: &Folder, album: &Album) -> Result<bool, RunError> {
    let mut all_gone = true;
    for (index, size) in album.sizes.iter().enumerate() {
        all_gone &= context.evict_by_name(folder, &photo_name(index), *size)?;
    }
    Ok(all_gone)
}

/// The parameters of one run on one album.
struct AlbumVisit<'a> {
    plan: &'a PhotoPlan,
    album: &'a Album,
    folder: &'a Folder,
    seed: u64,
    age: DataAge,
}

impl AlbumVisit<'_> {
    fn run_phases(&self, job: &Job<'_>, cold: ColdMethod) -> Result<(), RunError> {
        let session = job.session;
        session.add_fact("photos", format!("{} files, {} bytes", self.plan.photos, self.album.bytes()));
        session.phase(PhaseSpec::cold("open", cold), |context| self.open_photos(context))?;
        session.phase(PhaseSpec::cold("browse", cold), |context| self.browse(context))?;
        session.phase(PhaseSpec::warm("open"), |context| self.open_photos(context))?;
        session.phase(PhaseSpec::warm("browse"), |context| self.browse(context))
    }

    /// Reads the start of every photo and decodes its thumbnail; reads and decodes the first photo in full.
    fn open_photos(&self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let first_photo = OnceLock::new();
        let indices: Vec<usize> = (0..self.album.sizes.len()).collect();
        context.run_parallel(READ_THREADS, &indices, |context, index| {
            self.show_thumbnail(context, *index)?;
            if *index == 0 {
                let bytes = self.show_photo(context, 0)?;
                first_photo.get_or_init(|| context.elapsed());
                self.verify(context, 0, &bytes)?;
            }
            Ok(())
        })?;
        let all_thumbnails = context.elapsed();
        Ok(vec![
            Figure::new("first-photo", Unit::Seconds, first_photo.get().copied().unwrap_or(all_thumbnails)),
            Figure::new("all-thumbnails", Unit::Seconds, all_thumbnails),
        ])
    }

    fn show_thumbnail(&self, context: &TimedFs<'_>, index: usize) -> Result<(), RunError> {
        let name = photo_name(index);
        let mut head = Buffer::new(HEAD_BYTES);
        let file = context.open(self.folder, &name, Access::Read)?;
        let length = context.read_full(&file, &mut head, 0)?;
        context.close(file)?;
        let decoded = context.compute(Operation::Decode, || decode(&head[thumbnail(&head[..length])?]));
        decoded.map(drop).map_err(|error| self.decode_error(&name, &error).with_found(0, &head[..length]))
    }

    /// Reads a whole photo, decodes it and returns its bytes.
    fn show_photo(&self, context: &TimedFs<'_>, index: usize) -> Result<Buffer, RunError> {
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
        decoded.map_err(|error| self.decode_error(&name, &error).with_found(0, &bytes))?;
        Ok(bytes)
    }

    fn decode_error(&self, name: &CStr, error: &dyn std::fmt::Display) -> RunError {
        RunError::damaged(&self.folder.join(name), format!("the photo cannot be decoded: {error}"))
    }

    fn verify(&self, context: &TimedFs<'_>, index: usize, bytes: &[u8]) -> Result<(), RunError> {
        match self.album.photo(index).first_difference(bytes) {
            None => {
                context.add_verified(VerifiedData { age: self.age, bytes: bytes.len() as u64, files: 1 });
                Ok(())
            }
            Some(offset) => Err(RunError::damaged(
                &self.folder.join(&photo_name(index)),
                format!("byte {offset} differs from what was written"),
            )
            .with_found(0, bytes)),
        }
    }

    /// Switches to photos that were not shown before, on a fixed schedule.
    ///
    /// Latencies are measured from the scheduled time, so that a slow switch also delays the next ones, as it
    /// does for a user.
    fn browse(&self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let order = shuffled_indices(self.seed, 0x6272_6f77, self.album.sizes.len() as u64);
        let mut latencies = vec![];
        for (turn, index) in
            order.iter().filter(|index| **index != 0).take(self.plan.switches as usize).enumerate()
        {
            let scheduled = turn as f64 * self.plan.switch_seconds;
            context.wait_until(scheduled)?;
            let bytes = self.show_photo(context, *index as usize)?;
            latencies.push(context.elapsed() - scheduled);
            self.verify(context, *index as usize, &bytes)?;
        }
        let figure = |name, value: Option<f64>| value.map(|value| Figure::new(name, Unit::Seconds, value));
        let slowest = latencies.iter().copied().reduce(f64::max);
        let figures = [
            figure("switch-median", median(&latencies)),
            figure(
                "switch-p95",
                quantile(&latencies, 0.95).filter(|_| latencies.len() >= MIN_VALUES_FOR_P95),
            ),
            figure("switch-slowest", slowest),
        ];
        Ok(figures.into_iter().flatten().collect())
    }
}
