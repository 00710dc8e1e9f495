//! Arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use longhaul_recording::Source;
use longhaul_service::recordings::{RecordingName, RecordingNameError};

use super::{DurationArg, JsonArgs};

/// Arguments of `record`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RecordArgs {
    /// Subcommand to run instead of recording.
    #[command(subcommand)]
    pub command: Option<RecordCommand>,
    /// Record what all programs do through a second mount of this folder, until Ctrl-C: a path, or the name of a target.
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["import", "program", "on"])]
    pub folder: Option<PathBuf>,
    /// With --folder: the place of the second mount [default: a new folder in your home folder].
    #[arg(long, value_name = "MOUNT_POINT", requires = "folder", conflicts_with_all = ["import", "program", "on"])]
    pub at: Option<PathBuf>,
    /// With --folder: stop by itself after this time, such as 10m.
    #[arg(long = "for", value_name = "DURATION", requires = "folder", conflicts_with_all = ["import", "program", "on"])]
    pub duration: Option<DurationArg>,
    /// Read a trace that was made elsewhere; `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "program", requires = "on")]
    pub import: Option<PathBuf>,
    /// With --import: the kind of trace.
    #[arg(long, value_enum, default_value_t, requires = "import", conflicts_with_all = ["folder", "program"])]
    pub format: FormatArg,
    /// The folder whose operations are kept: a path, or the name of a target [default: the target or share of the current folder].
    #[arg(long, value_name = "FOLDER")]
    pub on: Option<PathBuf>,
    /// Name of the recording: letters, digits, hyphens [default: day-1, or the next that is free].
    #[arg(long, value_name = "NAME")]
    pub name: Option<RecordingName>,
    /// The program to record, with its arguments.
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// Kind of a trace.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default)]
pub enum FormatArg {
    /// By the first lines of the trace.
    #[default]
    Auto,
    /// Text of `strace -f -ttt -T -y`.
    Strace,
    /// Text of `fs_usage -w -f filesys` from a Mac.
    FsUsage,
    /// JSON of `eslogger` from a Mac.
    Eslogger,
    /// Log of Samba's module full_audit.
    SambaAudit,
    /// Transfer log of a Synology NAS.
    Synology,
    /// Connection log of a QNAP NAS.
    Qnap,
}

impl FormatArg {
    /// Returns the source of such a trace; `None` if its first lines tell it.
    pub const fn source(self) -> Option<Source> {
        match self {
            Self::Auto => None,
            Self::Strace => Some(Source::Strace),
            Self::FsUsage => Some(Source::FsUsage),
            Self::Eslogger => Some(Source::Eslogger),
            Self::SambaAudit => Some(Source::SambaAudit),
            Self::Synology => Some(Source::Synology),
            Self::Qnap => Some(Source::Qnap),
        }
    }
}

/// The subcommands of `record`.
#[derive(Subcommand)]
pub enum RecordCommand {
    /// List the recordings.
    List(JsonArgs),
    /// Show what is kept in a recording: what there was, what was done, and how long it took.
    Show(RecordShowArgs),
    /// Replay a recording in each round, as the task `your-day`.
    #[command(after_help = "Examples: longhaul record use day-1\n          longhaul record use example:git")]
    Use(RecordUseArgs),
    /// Remove a recording.
    Delete {
        /// Name of the recording.
        name: RecordingName,
    },
}

/// A recording to replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingChoice {
    /// A stored one.
    Stored(RecordingName),
    /// One that comes with the program.
    Example(String),
}

impl std::str::FromStr for RecordingChoice {
    type Err = RecordingNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("example:") {
            Some(name) => Ok(Self::Example(name.to_owned())),
            None => text.parse().map(Self::Stored),
        }
    }
}

/// Arguments of `record show`.
#[derive(Args)]
pub struct RecordShowArgs {
    /// Name of the recording.
    pub name: RecordingName,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print everything that the file has: each path (as a number) and each operation, one JSON object a line.
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
}

/// Arguments of `record use`.
#[derive(Args)]
pub struct RecordUseArgs {
    /// Name of the recording, or an example: example:rsync, example:git, example:thumbnails, example:search, example:catalogue,
    /// example:import.
    #[arg(required_unless_present = "none")]
    pub name: Option<RecordingChoice>,
    /// Replay none.
    #[arg(long, conflicts_with = "name")]
    pub none: bool,
}
