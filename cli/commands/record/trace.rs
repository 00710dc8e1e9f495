//! Runs a program under strace and reads the trace while the program runs.
//!
//! The trace goes through a pipe, so that no file with names is ever on the disk. strace opens the pipe as
//! `/proc/PID/fd/NUMBER` of this process, so the traced program does not inherit it.

use std::ffi::OsString;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGQUIT};

const STRACE: &str = "strace";
/// Calls of interest: with a path, with a descriptor, and those that start and end processes. `-ttt` and `-T` are the times of a
/// call, `-y` the path of each descriptor, `-s 0` leaves out what is read and written.
const OPTIONS: [&str; 9] = ["-f", "-q", "-ttt", "-T", "-y", "-s", "0", "-e", "trace=%file,%desc,%process"];
/// Lets the program run at full speed between these calls: since strace 5.3.
const FILTER: &str = "--seccomp-bpf";
/// Ways to record without strace on Linux.
const ON_LINUX: &str = "Without strace: `longhaul record --folder SHARE` records what all programs do through a second mount, and \
                        `longhaul record --import FILE` reads a trace that was made elsewhere";
/// The way to record on other systems.
const ELSEWHERE: &str = "On a Mac, record with Apple's `sudo fs_usage -w -f filesys > trace.txt` while you work, press Ctrl-C, and read \
                         the trace: `longhaul record --import trace.txt --on FOLDER`";

/// The reason why a program was not traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// This system has no strace.
    #[error("programs are recorded with strace, which only Linux has. {ELSEWHERE}")]
    OtherSystem,
    /// strace is not installed.
    #[error("strace is not installed. Install it (package `strace`). {ON_LINUX}")]
    NoStrace,
    /// strace may not trace a program here.
    #[error(
        "strace cannot trace programs here: {message}. Containers and the setting kernel.yama.ptrace_scope can forbid it. {ON_LINUX}"
    )]
    Forbidden {
        /// Message of strace.
        message: String,
    },
    /// The operating system refused an operation.
    #[error("{operation}: {source}")]
    Refused {
        /// Operation that failed.
        operation: &'static str,
        /// Error returned by the operating system.
        source: io::Error,
    },
}

/// End of a program that ran under strace, and what was read of its trace.
pub struct TracedProgram<T> {
    /// The end of the program.
    pub status: ExitStatus,
    /// Result of reading the trace.
    pub read: T,
}

/// Runs a program and its descendants under strace, with the terminal of this process, until all have ended. `read` gets the
/// trace while they run.
///
/// # Errors
///
/// [`TraceError`] if the program cannot be traced.
pub fn trace<T>(
    program: &[OsString],
    read: impl FnOnce(&mut PipeReader) -> T,
) -> Result<TracedProgram<T>, TraceError> {
    let options = usable_options()?;
    let (mut reader, writer) = io::pipe().map_err(refused("make a pipe"))?;
    leave_signals_to_the_program().map_err(refused("handle Ctrl-C"))?;
    let output = format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd());
    let child = Command::new(STRACE)
        .args(options)
        .args(["-o", &output, "--"])
        .args(program)
        .spawn()
        .map_err(refused("start strace"))?;
    let ended = std::thread::spawn(move || wait(child, writer));
    let read = read(&mut reader);
    // What the reader left must be taken out of the pipe, because a full one would stop the program.
    let drained = io::copy(&mut reader.by_ref(), &mut io::sink());
    let status = ended.join().expect("waiting does not panic").map_err(refused("wait for strace"))?;
    drained.map_err(refused("read the trace"))?;
    Ok(TracedProgram { status, read })
}

/// Waits for the end of strace, which is the end of all traced programs. Only then the last writer of the pipe is closed.
fn wait(mut strace: Child, writer: PipeWriter) -> io::Result<ExitStatus> {
    let status = strace.wait();
    drop(writer);
    status
}

/// Ignores Ctrl-C in this process: it reaches all processes of the terminal, and the traced program decides what it does. What the
/// program did until then is recorded.
fn leave_signals_to_the_program() -> io::Result<()> {
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    Ok(())
}

/// Returns the options with which strace works here, after it traced itself.
fn usable_options() -> Result<Vec<&'static str>, TraceError> {
    if std::env::consts::OS != "linux" {
        return Err(TraceError::OtherSystem);
    }
    let fast: Vec<&str> = OPTIONS.into_iter().chain([FILTER]).collect();
    if try_options(&fast)?.is_ok() {
        return Ok(fast);
    }
    match try_options(&OPTIONS)? {
        Ok(()) => Ok(OPTIONS.to_vec()),
        Err(message) => Err(TraceError::Forbidden { message }),
    }
}

/// Traces `strace -V`. Returns the message of strace if that fails.
fn try_options(options: &[&str]) -> Result<Result<(), String>, TraceError> {
    let mut command = Command::new(STRACE);
    command.args(options).args(["-o", "/dev/null", "--", STRACE, "-V"]).stdin(Stdio::null());
    let output = command.output().map_err(|source| match source.kind() {
        ErrorKind::NotFound => TraceError::NoStrace,
        _ => refused("start strace")(source),
    })?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(Err(text.lines().last().unwrap_or("it ended without a message").trim().to_owned()))
}

fn refused(operation: &'static str) -> impl FnOnce(io::Error) -> TraceError {
    move |source| TraceError::Refused { operation, source }
}
