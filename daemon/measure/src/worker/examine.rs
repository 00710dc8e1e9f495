//! What the doctor has a worker do: everything that a run needs, once, with one small file.

use std::ffi::CString;

use serde::{Deserialize, Serialize};

use crate::arena::{Arena, PROBE};
use crate::context::Context;
use crate::error::RunError;
use crate::model::SyncKind;
use crate::platform::{Access, UnknownAnswer, unknown_answers};

/// Bytes of the small file.
const BYTES: usize = 64 << 10;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examined {
    /// Free bytes on the target.
    pub free_bytes: u64,
    /// How the small file was made durable.
    pub sync: SyncKind,
    /// Seconds that all of it took.
    pub seconds: f64,
    /// What the system's tools answered the worker, where that is not known.
    #[serde(default)]
    pub unknown_answers: Vec<UnknownAnswer>,
}

/// Opens the arena, and in it makes, writes, syncs, reads, compares and removes a file.
pub fn examine(arena: &Arena, context: &Context<'_>) -> Result<Examined, RunError> {
    let began = std::time::Instant::now();
    let name = CString::new(PROBE).expect("the name holds no NUL");
    let name = name.as_c_str();
    let folder = arena.folder()?;
    // What a killed one left.
    if context.lookup(&folder, name)?.is_some() {
        context.unlink(&folder, name)?;
    }
    let content: Vec<u8> = (0..BYTES).map(|place| (place * 31 % 251) as u8).collect();
    let file = context.create(&folder, name)?;
    context.write_all(&file, &content, 0)?;
    let sync = context.full_sync(&file)?;
    context.close(file)?;
    let file = context.open(&folder, name, Access::Read)?;
    let mut read = vec![0; BYTES];
    let length = context.read_full(&file, &mut read, 0)?;
    context.close(file)?;
    context.unlink(&folder, name)?;
    if length != BYTES || read != content {
        let said = "a file reads back otherwise than it was written".to_owned();
        return Err(RunError::refused(
            arena.path(),
            said,
            "check the NAS and its disks before anything else",
        ));
    }
    Ok(Examined {
        free_bytes: arena.space(context)?.free_bytes,
        sync,
        seconds: began.elapsed().as_secs_f64(),
        unknown_answers: unknown_answers(),
    })
}
