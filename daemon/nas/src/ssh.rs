//! Reads a NAS with the system's `ssh`, which has the keys and the known hosts of the user.

use std::io::ErrorKind;
use std::time::Instant;

use longhaul_measure::platform::{ToolFailure, ToolOutput, run_with_timeout};
use longhaul_model::{NasProblem, NasReading};

use crate::error::NasError;
use crate::parse::proc_files;

/// Exit code of `ssh` for its own errors; others are those of the command on the NAS.
const SSH_FAILED: i32 = 255;
/// The command on the NAS, which only reads.
const COMMAND: &str = "cat /proc/stat /proc/diskstats";
/// Longest part of an error message of `ssh` that is shown.
const MAX_ERROR_CHARS: usize = 200;

/// Reads a NAS until a deadline.
pub fn read(host: &str, deadline: Instant) -> Result<NasReading, NasError> {
    // `ssh` never asks for a password, forwards nothing, and leaves no connection behind: one that stays in the
    // background would keep the pipe for its errors open.
    let options = ["BatchMode=yes", "ClearAllForwardings=yes", "ForwardAgent=no", "ControlMaster=no"];
    let options = options.iter().flat_map(|option| ["-o", option]);
    let words: Vec<&str> = ["ssh", "-T"].into_iter().chain(options).chain(["--", host, COMMAND]).collect();
    let limit = deadline.saturating_duration_since(Instant::now());
    let output = run_with_timeout(&words, limit).map_err(|failure| not_run(failure, host))?;
    match output.exit_code {
        Some(0) | None => proc_files::read(&output.stdout)
            .map_err(|error| NasError::new(error.problem, format!("{error}, from ssh {host}"))),
        Some(code) => Err(refusal(code, &output, host)),
    }
}

fn not_run(failure: ToolFailure, host: &str) -> NasError {
    match failure {
        ToolFailure::NotStarted(ErrorKind::NotFound) => {
            NasError::new(NasProblem::NoCredentials, "the program `ssh` is not installed")
        }
        ToolFailure::NotStarted(kind) => {
            NasError::new(NasProblem::NoCredentials, format!("the program `ssh` cannot be started: {kind}"))
        }
        ToolFailure::TimedOut | ToolFailure::StillRunning => {
            NasError::new(NasProblem::Timeout, format!("ssh {host}: no answer in time"))
        }
        ToolFailure::OutputTooLong => {
            NasError::new(NasProblem::TooLarge, format!("ssh {host}: the answer has more than 1 MiB"))
        }
    }
}

fn refusal(code: i32, output: &ToolOutput, host: &str) -> NasError {
    let (errors, printed) =
        (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    // The last line is the reason; banners of the NAS come before it. A shell that refuses to log in prints its reason.
    let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned);
    let line = last(&errors).or_else(|| last(&printed)).unwrap_or_else(|| "it does not say why".to_owned());
    let line: String = line.chars().filter(|char| !char.is_control()).take(MAX_ERROR_CHARS).collect();
    let says = |reasons: &[&str]| reasons.iter().any(|reason| errors.contains(reason));
    let lacks_proc = errors.lines().any(|line| line.contains("/proc/") && line.contains("No such file"));
    if code != SSH_FAILED && lacks_proc {
        let message = format!("ssh {host}: {line}: the NAS has no /proc of Linux; read it through SNMP");
        return NasError::new(NasProblem::Nothing, message);
    }
    if code != SSH_FAILED {
        let message = format!("ssh {host}: {line}: the user must be allowed to run `{COMMAND}` there");
        return NasError::new(NasProblem::Refused, message);
    }
    let refusals = ["Permission denied", "Host key verification failed", "Too many authentication failures"];
    let (problem, next) = if says(&refusals) {
        (
            NasProblem::Refused,
            format!("`ssh {host}` has to work without a question: connect once by hand, and use a key"),
        )
    } else {
        let next = match line.contains("Connection refused") {
            true => "turn on ssh on the NAS, or correct `host` in [nas]",
            false => "turn the NAS on, or correct `host` in [nas]",
        };
        (NasProblem::Unreachable, next.to_owned())
    };
    NasError::new(problem, format!("ssh {host}: {line}: {next}"))
}
