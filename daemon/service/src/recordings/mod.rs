//! The stored recordings of a person's own programs: their files, and the check of the one that rounds replay.

mod check;
mod files;

pub use check::check_recording;
pub use files::{
    FOLDER, RecordingFileError, RecordingName, RecordingNameError, Recordings, is_recording_file,
};
