//! One burst: the writes of an hourly backup, and reading a sample of the data back.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};

use super::image::{
    ImageFolders, ImagePlan, ImageState, PARTIAL_SUFFIX, PROPERTY_LISTS, SEED, band_file_name, fill_blocks,
    plan, write_band,
};
use crate::error::{FoundBytes, RunError};
use crate::platform::Access;
use crate::timed_fs::{Buffer, OpenFile, TimedFs};
use crate::workloads::{Job, create_or_replace};
use longhaul_corpus::Content;
use longhaul_corpus::bands::{BLOCK_BYTES, Block};
use longhaul_model::draw::draw_below;
use longhaul_model::{ColdMethod, DamagePattern, DataAge, Figure, SyncKind, Unit, VerifiedData};

/// The maximum number of blocks in one overwrite: 512 KiB.
const MAX_RUN_BLOCKS: u64 = 8;
/// The number of overwrites between two full syncs.
const WRITES_PER_BARRIER: u64 = 16;
/// The number of block ranges that are read back.
const RESTORED_RUNS: u64 = 24;
/// The number of blocks in each range that is read back.
const RESTORE_RUN_BLOCKS: u64 = 16;
/// The size of a property list in bytes.
const PROPERTY_LIST_BYTES: usize = 2048;

/// A burst of writes on one image.
pub struct Burst {
    /// State of the image; updated by the burst.
    pub image: ImageState,
    /// Kind of sync that the system performed; `None` before the first full sync.
    pub sync: Option<SyncKind>,
    plan: ImagePlan,
    folders: ImageFolders,
    seed: u64,
    /// Blocks that this burst wrote, as pairs of band and block index.
    written_blocks: BTreeSet<(u64, u64)>,
}

impl Burst {
    /// Opens the image. `image.burst` must already be the number of this burst.
    pub fn open(job: &Job<'_>, image: ImageState) -> Result<Self, RunError> {
        let plan = plan(job);
        let folders = ImageFolders::open(job, &plan)?;
        Ok(Self { image, sync: None, plan, folders, seed: job.seed, written_blocks: BTreeSet::new() })
    }

    /// Runs the burst: random overwrites with full syncs and new property lists between them, then new bands.
    pub fn write(&mut self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let mut open: BTreeMap<u64, OpenFile> = BTreeMap::new();
        let mut dirty = BTreeSet::new();
        let mut bytes = 0;
        for turn in 0..self.plan.overwrites {
            bytes += self.overwrite(context, &mut open, turn, &mut dirty)?;
            if (turn + 1) % WRITES_PER_BARRIER == 0 {
                self.sync_bands(context, &open, &mut dirty)?;
                let list = PROPERTY_LISTS[(turn / WRITES_PER_BARRIER) as usize % PROPERTY_LISTS.len()];
                self.replace_property_list(context, list)?;
            }
        }
        self.sync_bands(context, &open, &mut dirty)?;
        open.into_values().try_for_each(|file| context.close(file))?;
        for _ in 0..self.plan.new_bands {
            let first = Block { band: self.image.next, index: 0, burst: self.image.burst };
            write_band(context, &self.folders, &self.plan, first)?;
            self.written_blocks.extend((0..self.plan.blocks()).map(|index| (self.image.next, index)));
            self.image.next += 1;
            bytes += self.plan.band_bytes;
        }
        let seconds = context.elapsed();
        Ok(vec![
            Figure::new("burst", Unit::Seconds, seconds),
            Figure::new("throughput", Unit::BytesPerSecond, bytes as f64 / seconds),
        ])
    }

    fn overwrite(
        &mut self,
        context: &TimedFs<'_>,
        open: &mut BTreeMap<u64, OpenFile>,
        turn: u64,
        dirty: &mut BTreeSet<u64>,
    ) -> Result<u64, RunError> {
        let draw = |stream, bound| draw_below(self.seed, stream, turn, bound);
        let band = self.image.first + draw(1, self.image.next - self.image.first);
        let count = 1 + draw(2, MAX_RUN_BLOCKS);
        let index = draw(3, self.plan.blocks() - count + 1);
        if let std::collections::btree_map::Entry::Vacant(vacant) = open.entry(band) {
            let size = Some(self.plan.band_bytes);
            vacant.insert(context.open_in_place(&self.folders.bands, &band_file_name(band), size)?);
        }
        let mut buffer = vec![];
        fill_blocks(&mut buffer, Block { band, index, burst: self.image.burst }, count);
        context.write_all(&open[&band], &buffer, index * BLOCK_BYTES as u64)?;
        self.written_blocks.extend((index..index + count).map(|index| (band, index)));
        dirty.insert(band);
        Ok(buffer.len() as u64)
    }

    fn sync_bands(
        &mut self,
        context: &TimedFs<'_>,
        open: &BTreeMap<u64, OpenFile>,
        dirty: &mut BTreeSet<u64>,
    ) -> Result<(), RunError> {
        for band in std::mem::take(dirty) {
            self.sync = Some(context.full_sync(&open[&band])?);
        }
        Ok(())
    }

    fn replace_property_list(&self, context: &TimedFs<'_>, name: &CStr) -> Result<(), RunError> {
        let partial = CString::new([name.to_bytes(), PARTIAL_SUFFIX.as_bytes()].concat())
            .expect("the name contains no NUL");
        let mut bytes = [0u8; PROPERTY_LIST_BYTES];
        Content::new(SEED, self.image.burst).fill(0, &mut bytes);
        let file = create_or_replace(context, &self.folders.bundle, &partial)?;
        context.write_all(&file, &bytes, 0)?;
        context.full_sync(&file)?;
        context.close(file)?;
        context.rename(&self.folders.bundle, &partial, name)
    }

    /// Removes the oldest bands, as many as the burst added.
    pub fn remove_old_bands(&mut self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let keep_from = self.image.next - self.plan.bands;
        for band in self.image.first..keep_from {
            context.unlink(&self.folders.bands, &band_file_name(band))?;
        }
        self.image.first = keep_from;
        self.written_blocks.retain(|(band, _)| *band >= keep_from);
        Ok(vec![Figure::new("thin", Unit::Seconds, context.elapsed())])
    }

    /// Returns the block ranges to read back: band and first block of each, drawn from all remaining bands.
    pub fn sample(&self) -> Vec<(u64, u64)> {
        let last = self.plan.blocks().saturating_sub(RESTORE_RUN_BLOCKS);
        (0..RESTORED_RUNS)
            .map(|turn| {
                let band = self.image.first + draw_below(self.seed, 4, turn, self.plan.bands);
                (band, draw_below(self.seed, 5, turn, last + 1))
            })
            .collect()
    }

    /// Evicts the sampled bands from this machine's cache.
    ///
    /// Returns [`ColdMethod::Unverified`] if the system does not confirm the eviction.
    pub fn evict(&self, context: &TimedFs<'_>, sample: &[(u64, u64)]) -> Result<ColdMethod, RunError> {
        let bands: BTreeSet<u64> = sample.iter().map(|(band, _)| *band).collect();
        let mut all_gone = true;
        for band in bands {
            all_gone &=
                context.evict_by_name(&self.folders.bands, &band_file_name(band), self.plan.band_bytes)?;
        }
        Ok(if all_gone { ColdMethod::Evicted } else { ColdMethod::Unverified })
    }

    /// Reads the sample back, a megabyte at a time, and verifies every block. `age` returns the age of what a burst wrote.
    pub fn restore(
        &self,
        context: &TimedFs<'_>,
        sample: &[(u64, u64)],
        age: &dyn Fn(u64) -> DataAge,
    ) -> Result<Vec<Figure>, RunError> {
        let mut buffer = Buffer::new(RESTORE_RUN_BLOCKS as usize * BLOCK_BYTES);
        let mut bytes = 0;
        for (band, first) in sample {
            let file = context.open(&self.folders.bands, &band_file_name(*band), Access::Read)?;
            let length = context.read_full(&file, &mut buffer, first * BLOCK_BYTES as u64)?;
            let first = Block { band: *band, index: *first, burst: self.image.burst };
            let found = &buffer[..length];
            let blocks = self.verify(first, found).map_err(|wrong| wrong.into_error(&file, first, found))?;
            let is_whole = u64::from(first.index == 0 && length as u64 == self.plan.band_bytes);
            for block in &blocks {
                let (age, bytes) = (age(block.burst), BLOCK_BYTES as u64);
                context.add_verified(VerifiedData {
                    age,
                    bytes,
                    files: is_whole * u64::from(block.index == 0),
                });
            }
            context.close(file)?;
            bytes += length as u64;
        }
        let seconds = context.elapsed();
        Ok(vec![
            Figure::new("restore", Unit::Seconds, seconds),
            Figure::new("throughput", Unit::BytesPerSecond, bytes as f64 / seconds),
        ])
    }

    /// Compares bytes that start with the block `first` with what bursts wrote. Returns the blocks that were found.
    fn verify(&self, first: Block, bytes: &[u8]) -> Result<Vec<Block>, WrongBlock> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let damaged = |detail| WrongBlock { detail, outdated: None };
        if !rest.is_empty() || blocks.len() as u64 != RESTORE_RUN_BLOCKS.min(self.plan.blocks()) {
            let index = first.index;
            return Err(damaged(format!(
                "the file ends within the range of blocks that starts with block {index}"
            )));
        }
        let verify = |(position, block): (usize, &[u8; BLOCK_BYTES])| {
            let index = first.index + position as u64;
            let found = Block { index, ..first }.verify(SEED, block).map_err(damaged)?;
            if self.written_blocks.contains(&(first.band, index)) && found.burst != self.image.burst {
                let burst = self.image.burst;
                let detail = format!("block {index} does not have the data that burst {burst} wrote");
                return Err(WrongBlock { detail, outdated: Some(position) });
            }
            Ok(found)
        };
        blocks.iter().enumerate().map(verify).collect()
    }
}

/// A block with wrong content, among several that were read together.
struct WrongBlock {
    detail: String,
    /// Index of the block among those that were read, if it has content that was overwritten since.
    outdated: Option<usize>,
}

impl WrongBlock {
    /// Returns the error for the bytes `found`, which start with the block `first`.
    fn into_error(self, file: &OpenFile, first: Block, found: &[u8]) -> RunError {
        let position = self.outdated.unwrap_or(0);
        let pattern = self.outdated.map(|_| DamagePattern::OldVersion);
        let end = if pattern.is_some() { (position + 1) * BLOCK_BYTES } else { found.len() };
        RunError::damaged(file.path(), self.detail).with_pattern(FoundBytes {
            offset: (first.index + position as u64) * BLOCK_BYTES as u64,
            bytes: found[position * BLOCK_BYTES..end].to_vec(),
            pattern,
        })
    }
}
