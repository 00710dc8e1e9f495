//! Answers in the form that the kernel expects.

use std::io;
use std::time::Duration;

use fuser::{Errno, Generation, ReplyEmpty, ReplyEntry, ReplyXattr};

use super::answers::FoundEntry;

/// Time for which the kernel keeps names and attributes: none, so that each call of a program arrives.
pub const NOT_CACHED: Duration = Duration::ZERO;

/// Answers with a file.
pub fn entry(answer: io::Result<FoundEntry>, reply: ReplyEntry) {
    match answer {
        Ok(found) => reply.entry(&NOT_CACHED, &found.attributes, Generation(found.entry.generation)),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers that a request is done, or failed.
pub fn empty(answer: io::Result<()>, reply: ReplyEmpty) {
    match answer {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers with the value of an extended attribute or a list of names, or with its size if the requested size is 0.
pub fn value(answer: io::Result<Vec<u8>>, size: u32, reply: ReplyXattr) {
    match answer {
        Err(error) => reply.error(error.into()),
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
    }
}
