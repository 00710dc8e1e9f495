//! The files of a classic on a target: where they are, what is in them, which are there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::names::{file_name, file_number, folder_name, is_file_name, is_folder_name, text};
use super::writes::Writes;
use super::{Classic, Manner};
use crate::context::{Context, Folder};
use crate::corpus::sectors::{SECTOR_BYTES, Sectors};
use crate::error::RunError;
use crate::model::{ColdBy, Progress};
use crate::platform::{Access, Wanted};
use crate::profile::{FileSet, Profile};
use crate::workloads::{Job, create_anew, unlink_left_over};

/// The folder and manifest entry that all classics share.
pub const FOLDER: &str = "classics";
/// How many files are made at the same time.
const BUILT_AT_ONCE: usize = 4;
/// Files of this size are made durable one by one, so that they can be evicted; smaller ones would take hours.
const SYNCED_BYTES: u64 = 1 << 20;
/// Beyond this number files are not evicted one by one: opening them would warm what is to be cold.
const MOST_EVICTED: usize = 2000;
/// How many files are made before it is told.
const TOLD: usize = 64;

/// What the manifest says of one classic.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    /// The last turn that wrote: a preparation or a run.
    pub turn: u64,
    /// Sets that are whole.
    pub made: BTreeSet<String>,
    /// Whether a run was interrupted, so that parts may be half written.
    pub unfinished: bool,
}

/// What the manifest says of all classics, by place.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Kept {
    places: BTreeMap<String, State>,
}

impl Kept {
    /// Reads the manifest.
    pub fn load(job: &Job<'_>) -> Result<Self, RunError> {
        Ok(job.arena.holding(FOLDER)?.unwrap_or_default())
    }

    /// The state of a place.
    pub fn get(&self, place: &str) -> State {
        self.places.get(place).cloned().unwrap_or_default()
    }

    /// Writes down the state of a place.
    pub fn keep(&mut self, job: &Job<'_>, place: &str, state: &State) -> Result<(), RunError> {
        self.places.insert(place.to_owned(), state.clone());
        job.arena.keep(FOLDER, self, &job.preparation())
    }
}

/// One set of files, open.
pub struct Set {
    /// What it is.
    pub spec: FileSet,
    /// The numbers of the files that are there, as the last phase left them.
    pub present: Mutex<BTreeSet<u64>>,
    /// The turn that all its writes are of, where something is added to files.
    pub only_turn: Option<u64>,
    /// Whether every file that is there is whole.
    pub is_whole: bool,
    /// What is being written just now.
    pub writes: Writes,
    manner: Manner,
    seed: u64,
    folders: Vec<Folder>,
    /// Made beforehand: what is done between two calls makes the next one slower.
    names: Vec<CString>,
}

impl Set {
    /// Bytes of a file, unless something was added to it.
    pub fn bytes_of(&self, number: u64) -> u64 {
        self.spec.size.of(self.seed, number)
    }

    /// The name of a file.
    pub fn name_of(&self, number: u64) -> &CStr {
        &self.names[number as usize]
    }

    /// The folder of a file.
    pub fn folder_of(&self, number: u64) -> &Folder {
        &self.folders[(number % self.folders.len() as u64) as usize]
    }

    /// Makes the names in its folders durable.
    pub fn sync_folders(&self, context: &Context<'_>) -> Result<(), RunError> {
        self.folders.iter().try_for_each(|folder| context.sync_folder(folder).map(drop))
    }

    /// The numbers of its files, in the order in which their folders list them.
    pub fn listed(&self, context: &Context<'_>) -> Result<Vec<u64>, RunError> {
        let mut numbers = vec![];
        for folder in &self.folders {
            let number = |name: &CString| file_number(self.spec.names, self.seed, name);
            numbers.extend(names_in(context, folder)?.iter().filter_map(number));
        }
        Ok(numbers)
    }

    /// What its writes put into a file.
    pub fn fill(&self, number: u64, (turn, offset): (u64, u64), out: &mut [u8]) {
        match self.manner {
            Manner::Honest => self.sectors(number).fill(turn, offset, out),
            Manner::AsOriginal => out.fill(0),
        }
    }

    /// Compares what was read with what turns up to this one wrote.
    pub fn verify(&self, number: u64, (turn, offset): (u64, u64), bytes: &[u8]) -> Result<(), RunError> {
        let wrong = match self.manner {
            Manner::Honest => self.first_difference(number, (turn, offset), bytes),
            Manner::AsOriginal => first_not_zero(bytes).map(|index| offset + index as u64),
        };
        match wrong {
            None => Ok(()),
            Some(place) => {
                let path = self.folder_of(number).join(self.name_of(number));
                Err(RunError::damaged(&path, format!("byte {place} is not what was written")))
            }
        }
    }

    /// In a file that is not whole, sectors that nobody has written are zeros.
    fn first_difference(&self, number: u64, (turn, offset): (u64, u64), bytes: &[u8]) -> Option<u64> {
        let mut begin = 0;
        loop {
            let place =
                self.sectors(number).first_difference(turn, offset + begin, &bytes[begin as usize..])?;
            let sector = &bytes[(place - offset) as usize..];
            let sector = &sector[..sector.len().min(SECTOR_BYTES as usize)];
            let is_begin = place.is_multiple_of(SECTOR_BYTES);
            if self.is_whole || !is_begin || first_not_zero(sector).is_some() {
                return Some(place);
            }
            begin = place - offset + sector.len() as u64;
        }
    }

    fn sectors(&self, file: u64) -> Sectors {
        Sectors { seed: self.seed, file }
    }

    fn count_present(&self) -> u64 {
        (self.spec.count as f64 * self.spec.present) as u64
    }
}

/// `None` if all bytes are zero; equal slices, the common case, cost one `memcmp` a piece.
fn first_not_zero(bytes: &[u8]) -> Option<usize> {
    const ZEROS: [u8; 4096] = [0; 4096];
    if bytes.chunks(ZEROS.len()).all(|piece| *piece == ZEROS[..piece.len()]) {
        return None;
    }
    bytes.iter().position(|byte| *byte != 0)
}

/// Whether a path below the folder of classics is that of a file of a set: `dd-standard/large/d00000/00000000`.
pub fn owns(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let [place, set, folder, file] = parts[..] else { return false };
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let file = file.strip_suffix("-moved").unwrap_or(file);
    is_name(place) && is_name(set) && is_folder_name(folder) && is_file_name(file)
}

/// The sets of one classic on one target.
pub struct Sets {
    /// By name.
    pub sets: BTreeMap<String, Set>,
}

impl Sets {
    /// Opens the folders of all sets, and makes what is missing of them.
    pub fn open(
        job: &Job<'_>,
        classic: &Classic,
        (profile, turn): (&Profile, u64),
    ) -> Result<Self, RunError> {
        let context = job.preparation();
        let place = home(job, &classic.place(job))?;
        let sets = profile.files.iter().map(|(name, spec)| {
            let home = context.make_folder(&place, &text(name.clone()))?;
            let folders = (0..spec.folders).map(|number| context.make_folder(&home, &folder_name(number)));
            let seed = classic.seed(job, name);
            let set = Set {
                spec: spec.clone(),
                present: Mutex::default(),
                only_turn: profile.grows(name).then_some(turn),
                is_whole: !profile.changes(name),
                writes: Writes::default(),
                manner: classic.manner,
                seed,
                folders: folders.collect::<Result<_, _>>()?,
                names: (0..spec.count).map(|number| file_name(spec.names, seed, number)).collect(),
            };
            set.present.lock().expect("nobody panicked with it").extend(0..set.count_present());
            Ok((name.clone(), set))
        });
        Ok(Self { sets: sets.collect::<Result<_, RunError>>()? })
    }

    /// The set with this name, which the profile was checked to have.
    pub fn get(&self, name: &str) -> &Set {
        &self.sets[name]
    }
}

/// The folder of one classic.
pub fn home(job: &Job<'_>, place: &str) -> Result<Folder, RunError> {
    let context = job.preparation();
    let classics = context.make_folder(&job.arena.folder()?, &text(FOLDER.to_owned()))?;
    context.make_folder(&classics, &text(place.to_owned()))
}

/// Makes the files of a set that have to be there, and removes all that an earlier run left.
pub fn build(job: &Job<'_>, set: &Set, (name, turn): (&str, u64)) -> Result<(), RunError> {
    remove(job, set)?;
    let context = job.preparation();
    let numbers: Vec<u64> = (0..set.count_present()).collect();
    let total = if numbers.is_empty() { 0 } else { set.spec.bytes(set.seed) };
    let mut progress = Progress {
        what: format!("files of {name}"),
        files: 0,
        files_total: numbers.len() as u64,
        bytes: 0,
        bytes_total: total,
    };
    for some in numbers.chunks(TOLD) {
        context.spread(BUILT_AT_ONCE, some, |context, number| make_file(context, set, (*number, turn)))?;
        progress.files += some.len() as u64;
        progress.bytes += some.iter().map(|number| set.bytes_of(*number)).sum::<u64>();
        job.session.progress(&progress);
    }
    Ok(())
}

fn make_file(context: &Context<'_>, set: &Set, (number, turn): (u64, u64)) -> Result<(), RunError> {
    let bytes = set.bytes_of(number);
    let file = create_anew(context, set.folder_of(number), set.name_of(number))?;
    let block = set.spec.block.0.min(bytes) as usize;
    let mut buffer = vec![0; block];
    let mut offset = 0;
    while offset < bytes {
        let length = block.min((bytes - offset) as usize);
        set.fill(number, (turn, offset), &mut buffer[..length]);
        context.write_all(&file, &buffer[..length], offset)?;
        offset += length as u64;
    }
    if bytes >= SYNCED_BYTES {
        context.sync(&file)?;
    }
    context.close(file)
}

/// Removes every file of a set.
pub fn remove(job: &Job<'_>, set: &Set) -> Result<(), RunError> {
    let context = job.preparation();
    for folder in &set.folders {
        let there = names_in(&context, folder)?;
        let mut ours = there.iter().filter(|name| is_ours(name));
        ours.try_for_each(|name| unlink_left_over(&context, folder, name))?;
    }
    Ok(())
}

/// What a folder lists, through a handle of its own: one that was listed before stands at the end.
fn names_in(context: &Context<'_>, folder: &Folder) -> Result<Vec<CString>, RunError> {
    let mut there = vec![];
    let listed = context.open_folder(folder, c".")?;
    context.list(&listed, Wanted::Names, &mut Default::default(), |entry| {
        there.push(entry.name.to_owned());
        Ok::<_, RunError>(())
    })?;
    Ok(there)
}

fn is_ours(name: &CStr) -> bool {
    name.to_str().is_ok_and(|name| owns(&format!("x/x/d00000/{name}")))
}

/// Makes the files of a set cold, as far as this machine's own cache is concerned.
pub fn evict(job: &Job<'_>, set: &Set) -> Result<ColdBy, RunError> {
    let context = job.preparation();
    let present = set.present.lock().expect("nobody panicked with it").clone();
    if present.len() > MOST_EVICTED {
        return Ok(ColdBy::Unverified);
    }
    let mut all_gone = true;
    for number in present {
        let (folder, name) = (set.folder_of(number), set.name_of(number));
        let file = context.open(folder, name, Access::Both)?;
        context.sync(&file)?;
        context.close(file)?;
        all_gone &= context.evict_named(folder, name, set.bytes_of(number))?;
    }
    Ok(if all_gone { ColdBy::Evicted } else { ColdBy::Unverified })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_set_makes_are_owned() {
        assert!(owns("dd-standard/large/d00000/00000000"));
        assert!(owns("dd-quick-zeros/large/d00012/0000ab01-moved"));
        for other in [
            "dd/large/d00000/0",
            "dd/large/diary/00000000",
            "dd/large/00000000",
            "",
            "../large/d00000/00000000",
        ] {
            assert!(!owns(other), "{other}");
        }
    }

    #[test]
    fn a_byte_that_is_not_zero_is_found() {
        let mut bytes = vec![0; 10_000];
        assert_eq!(first_not_zero(&bytes), None);
        bytes[9_999] = 1;
        assert_eq!(first_not_zero(&bytes), Some(9_999));
    }
}
