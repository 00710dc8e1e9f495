//! Checks of writing through mapped memory, and of creating a file by one of several threads.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::answer::Answer;
use super::names::{FILE, numbered};
use super::property_folder::PropertyFolder;
use crate::error::RunError;
use crate::platform::Access;

/// Length of the mapped file, in bytes.
const MAPPED_BYTES: usize = 4096;
/// Number of files that the threads create.
const RACES: u32 = 16;
/// Number of threads that try to create each file.
const THREADS: usize = 2;

pub fn memory_map(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    place.files.write(FILE, &[0; MAPPED_BYTES], context)?;
    let bytes: Vec<u8> = (0..MAPPED_BYTES).map(|offset| (offset * 31 % 251) as u8).collect();
    let file = match context.open(place.folder(), FILE, Access::ReadWrite) {
        Ok(file) => file,
        Err(error) => return Answer::refused(error),
    };
    let written = context.write_mapped(&file, &bytes);
    context.close(file)?;
    if let Err(error) = written {
        return Answer::refused(error);
    }
    place.reopen()?;
    let (found, source) = place.read_evicted(FILE, 0, MAPPED_BYTES)?;
    Ok(match found == bytes {
        true => Answer::kept(""),
        false => Answer::lost("accepted, but the file has another content"),
    }
    .read_from(source))
}

/// Lets two threads create each of several files, of which one must win.
pub fn exclusive_create(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let (folder, won) = (place.folder(), AtomicUsize::new(0));
    let numbers: Vec<u32> = (0..RACES).flat_map(|number| [number; THREADS]).collect();
    place.context.run_parallel(THREADS, &numbers, |context, number| {
        match context.create(folder, &numbered(*number)) {
            Ok(file) => {
                won.fetch_add(1, Relaxed);
                context.close(file)
            }
            Err(RunError::Operation { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    })?;
    Ok(match won.into_inner() {
        won if won == RACES as usize => Answer::kept("between two threads of one program"),
        won if won > RACES as usize => Answer::lost(format!("{won} threads created {RACES} files")),
        _ => Answer::not_tested("not every file could be created"),
    })
}
