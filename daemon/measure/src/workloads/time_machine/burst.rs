//! One burst: what a backup writes between two hours, and the reading back of some of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};

use super::image::{
    Folders, Image, PARTIAL, PROPERTY_LISTS, Plan, SEED, band_file, fill_blocks, plan, write_band,
};
use crate::context::{Buffer, Context, OpenFile};
use crate::corpus::Content;
use crate::corpus::bands::{BLOCK_BYTES, Block};
use crate::corpus::draw::draw_below;
use crate::error::RunError;
use crate::model::{ColdBy, Figure, SyncKind, Unit};
use crate::platform::Access;
use crate::workloads::{Job, create_anew};

/// Blocks of one overwrite, at most: 512 KiB.
const LONGEST: u64 = 8;
/// Overwrites between two barriers.
const BETWEEN_BARRIERS: u64 = 16;
/// Stretches that are read back, and blocks of each.
const RESTORED: u64 = 24;
const STRETCH: u64 = 16;
/// Bytes of a property list.
const LIST_BYTES: usize = 2048;

/// A burst on one image.
pub struct Burst {
    /// The image as it becomes.
    pub image: Image,
    /// How writes were made durable; `None` before the first barrier.
    pub sync: Option<SyncKind>,
    plan: Plan,
    folders: Folders,
    seed: u64,
    /// What this burst wrote.
    written: BTreeSet<(u64, u64)>,
}

impl Burst {
    /// Opens the image; `image.burst` is this burst already.
    pub fn open(job: &Job<'_>, image: Image) -> Result<Self, RunError> {
        let plan = plan(job);
        let folders = Folders::open(job, &plan)?;
        Ok(Self { image, sync: None, plan, folders, seed: job.seed, written: BTreeSet::new() })
    }

    /// Overwrites, barriers, new bands, property lists.
    pub fn write(&mut self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let mut open: BTreeMap<u64, OpenFile> = BTreeMap::new();
        let mut dirty = BTreeSet::new();
        let mut bytes = 0;
        for turn in 0..self.plan.overwrites {
            bytes += self.overwrite(context, &mut open, turn, &mut dirty)?;
            if (turn + 1) % BETWEEN_BARRIERS == 0 {
                self.barrier(context, &open, &mut dirty)?;
                let list = PROPERTY_LISTS[(turn / BETWEEN_BARRIERS) as usize % PROPERTY_LISTS.len()];
                self.replace_list(context, list)?;
            }
        }
        self.barrier(context, &open, &mut dirty)?;
        open.into_values().try_for_each(|file| context.close(file))?;
        for _ in 0..self.plan.new_bands {
            write_band(context, &self.folders, &self.plan, (self.image.next, self.image.burst))?;
            self.written.extend((0..self.plan.blocks()).map(|index| (self.image.next, index)));
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
        context: &Context<'_>,
        open: &mut BTreeMap<u64, OpenFile>,
        turn: u64,
        dirty: &mut BTreeSet<u64>,
    ) -> Result<u64, RunError> {
        let draw = |stream, bound| draw_below(self.seed, stream, turn, bound);
        let band = self.image.first + draw(1, self.image.next - self.image.first);
        let count = 1 + draw(2, LONGEST);
        let index = draw(3, self.plan.blocks() - count + 1);
        if let std::collections::btree_map::Entry::Vacant(vacant) = open.entry(band) {
            let size = Some(self.plan.band_bytes);
            vacant.insert(context.open_in_place(&self.folders.bands, &band_file(band), size)?);
        }
        let mut buffer = vec![];
        fill_blocks(&mut buffer, Block { band, index, burst: self.image.burst }, count);
        context.write_all(&open[&band], &buffer, index * BLOCK_BYTES as u64)?;
        self.written.extend((index..index + count).map(|index| (band, index)));
        dirty.insert(band);
        Ok(buffer.len() as u64)
    }

    fn barrier(
        &mut self,
        context: &Context<'_>,
        open: &BTreeMap<u64, OpenFile>,
        dirty: &mut BTreeSet<u64>,
    ) -> Result<(), RunError> {
        for band in std::mem::take(dirty) {
            self.sync = Some(context.full_sync(&open[&band])?);
        }
        Ok(())
    }

    fn replace_list(&self, context: &Context<'_>, name: &CStr) -> Result<(), RunError> {
        let partial = CString::new([name.to_bytes(), PARTIAL.as_bytes()].concat()).expect("no NUL");
        let mut bytes = [0u8; LIST_BYTES];
        Content::new(SEED, self.image.burst).fill(0, &mut bytes);
        let file = create_anew(context, &self.folders.bundle, &partial)?;
        context.write_all(&file, &bytes, 0)?;
        context.full_sync(&file)?;
        context.close(file)?;
        context.rename((&self.folders.bundle, &partial), (&self.folders.bundle, name))
    }

    /// Removes the oldest bands, as many as are new.
    pub fn thin(&mut self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let keep_from = self.image.next - self.plan.bands;
        for band in self.image.first..keep_from {
            context.unlink(&self.folders.bands, &band_file(band))?;
        }
        self.image.first = keep_from;
        self.written.retain(|(band, _)| *band >= keep_from);
        Ok(vec![Figure::new("thin", Unit::Seconds, context.elapsed())])
    }

    /// What is read back: the beginning of each stretch, drawn from all bands that are left.
    pub fn sample(&self) -> Vec<(u64, u64)> {
        let last = self.plan.blocks().saturating_sub(STRETCH);
        (0..RESTORED)
            .map(|turn| {
                let band = self.image.first + draw_below(self.seed, 4, turn, self.plan.bands);
                (band, draw_below(self.seed, 5, turn, last + 1))
            })
            .collect()
    }

    /// Makes the sampled bands cold, as far as this machine's own cache is concerned.
    pub fn evict(&self, context: &Context<'_>, sample: &[(u64, u64)]) -> Result<ColdBy, RunError> {
        let bands: BTreeSet<u64> = sample.iter().map(|(band, _)| *band).collect();
        let mut all_gone = true;
        for band in bands {
            all_gone &= context.evict_named(&self.folders.bands, &band_file(band), self.plan.band_bytes)?;
        }
        Ok(if all_gone { ColdBy::Evicted } else { ColdBy::Unverified })
    }

    /// Reads the sample back, a megabyte at a time, and verifies every block of it.
    pub fn restore(&self, context: &Context<'_>, sample: &[(u64, u64)]) -> Result<Vec<Figure>, RunError> {
        let mut buffer = Buffer::new(STRETCH as usize * BLOCK_BYTES);
        let mut bytes = 0;
        for (band, first) in sample {
            let file = context.open(&self.folders.bands, &band_file(*band), Access::Read)?;
            let length = context.read_full(&file, &mut buffer, first * BLOCK_BYTES as u64)?;
            self.verify((*band, *first), &buffer[..length])
                .map_err(|detail| RunError::damaged(file.path(), detail))?;
            context.close(file)?;
            bytes += length as u64;
        }
        let seconds = context.elapsed();
        Ok(vec![
            Figure::new("restore", Unit::Seconds, seconds),
            Figure::new("throughput", Unit::BytesPerSecond, bytes as f64 / seconds),
        ])
    }

    fn verify(&self, (band, first): (u64, u64), bytes: &[u8]) -> Result<(), String> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        if !rest.is_empty() || blocks.len() as u64 != STRETCH.min(self.plan.blocks()) {
            return Err(format!("it ends within the stretch of blocks that begins with {first}"));
        }
        for (place, block) in blocks.iter().enumerate() {
            let index = first + place as u64;
            let found = Block { band, index, burst: self.image.burst }.check(SEED, block)?;
            if self.written.contains(&(band, index)) && found.burst != self.image.burst {
                return Err(format!("block {index} lost what burst {} wrote", self.image.burst));
            }
        }
        Ok(())
    }
}
