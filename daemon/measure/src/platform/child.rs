//! Tools of the operating system, asked as child processes that are never waited for beyond a limit.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// No tool that is asked here says more.
const LONGEST_ANSWER_BYTES: u64 = 1 << 20;

/// The questions whose child has not ended: a child that asks a dead share may ignore even SIGKILL for minutes
/// (SMBClient kernel/netsmb/smb_iod.c), and a second one would only hang beside it.
static UNANSWERED: Mutex<BTreeSet<Vec<String>>> = Mutex::new(BTreeSet::new());

/// What a command wrote, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its standard error.
    pub complaint: Vec<u8>,
    /// Its exit code; `None` if a signal ended it, or if it went on after it had written everything.
    pub code: Option<i32>,
}

/// Why a command has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// It cannot be started.
    NotStarted(std::io::ErrorKind),
    /// It did not end within the limit, and was killed.
    TimedOut,
    /// The same command was asked before and has not ended, though it was killed.
    StillRunning,
    /// It wrote more than any tool that is asked here.
    TooLong,
}

/// What a command writes to its standard output; `None` if it has no answer.
pub fn output_within(command: &[&str], limit: Duration) -> Option<Vec<u8>> {
    ask(command, limit).ok().map(|answer| answer.output)
}

/// Asks a command, for as long as the limit at most.
///
/// The exit code decides nothing here: tools print what they know and then fail for the rest. When the limit is over the
/// child is killed, and reaped whenever it ends.
pub fn ask(command: &[&str], limit: Duration) -> Result<Answer, NoAnswer> {
    let until = Instant::now() + limit;
    let question: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    if !unanswered().insert(question.clone()) {
        return Err(NoAnswer::StillRunning);
    }
    let (mut child, pipes) = start(command).inspect_err(|_| {
        unanswered().remove(&question);
    })?;
    let read = written(pipes, until);
    if read.is_err() {
        // on failure it has ended already
        let _ = child.kill();
    }
    let ended = reap_when_it_ends(child, question);
    let (output, complaint) = read?;
    let code = ended.recv_timeout(until.saturating_duration_since(Instant::now())).ok().flatten();
    Ok(Answer { output, complaint, code })
}

/// What was written to the two pipes, once both are closed.
fn written(pipes: Pipes, until: Instant) -> Result<(Vec<u8>, Vec<u8>), NoAnswer> {
    let next = |pipe: &Receiver<Vec<u8>>| {
        let left = until.saturating_duration_since(Instant::now());
        pipe.recv_timeout(left).map_err(|_| NoAnswer::TimedOut)
    };
    let output = next(&pipes[0])?;
    if output.len() as u64 > LONGEST_ANSWER_BYTES {
        return Err(NoAnswer::TooLong);
    }
    Ok((output, next(&pipes[1])?))
}

fn unanswered() -> std::sync::MutexGuard<'static, BTreeSet<Vec<String>>> {
    UNANSWERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a child writes to its standard output and to its standard error.
type Pipes = [Receiver<Vec<u8>>; 2];

/// Starts the child, and two threads that read what it writes.
fn start(command: &[&str]) -> Result<(Child, Pipes), NoAnswer> {
    let not_started = |error: std::io::Error| NoAnswer::NotStarted(error.kind());
    let (program, arguments) =
        command.split_first().ok_or(NoAnswer::NotStarted(std::io::ErrorKind::NotFound))?;
    let mut child = Command::new(program)
        .args(arguments)
        // its words are compared: they have to be the ones that were written by its makers
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    let pipes = [read_all(child.stdout.take()), read_all(child.stderr.take())];
    Ok((child, pipes))
}

/// Reads a pipe up to one byte more than an answer may have; whoever writes on into it is ended by that.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    // without the thread the sender is gone, and the answer is that there is none
    let _ = Builder::new().name("tool output".to_owned()).spawn(move || {
        let mut written = Vec::new();
        let read = pipe.map(|pipe| pipe.take(LONGEST_ANSWER_BYTES + 1).read_to_end(&mut written));
        if matches!(read, Some(Ok(_))) {
            let _ = sender.send(written);
        }
    });
    receiver
}

/// Gives the exit code when the child ends. Without the thread the child stays a zombie and its question closed: better
/// than to block here.
fn reap_when_it_ends(mut child: Child, question: Vec<String>) -> Receiver<Option<i32>> {
    let (sender, receiver) = channel();
    let _ = Builder::new().name("tool reaper".to_owned()).spawn(move || {
        let code = child.wait().ok().and_then(|status| status.code());
        unanswered().remove(&question);
        let _ = sender.send(code);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn what_a_tool_prints_is_its_answer_even_when_it_fails() {
        let answer = output_within(&["/bin/sh", "-c", "printf yes; exit 3"], LIMIT);
        assert_eq!(answer.as_deref(), Some(&b"yes"[..]));
    }

    #[test]
    fn a_tool_that_is_not_there_has_no_answer_however_often_it_is_asked() {
        for _ in 0..2 {
            assert_eq!(output_within(&["/nonexistent/tool"], LIMIT), None);
        }
        assert_eq!(output_within(&[], LIMIT), None);
        assert!(!unanswered().contains(&vec!["/nonexistent/tool".to_owned()]));
    }

    #[test]
    fn a_tool_that_hangs_is_left_behind() {
        let begin = Instant::now();
        assert_eq!(output_within(&["/bin/sleep", "600"], Duration::from_millis(50)), None);
        assert!(begin.elapsed() < LIMIT);
    }

    #[test]
    fn an_answer_comes_with_its_complaint_and_exit_code() {
        let answer = ask(&["/bin/sh", "-c", "printf yes; printf no >&2; exit 112"], LIMIT);
        let expected = Answer { output: b"yes".to_vec(), complaint: b"no".to_vec(), code: Some(112) };
        assert_eq!(answer, Ok(expected));
    }

    #[test]
    fn a_question_that_is_answered_can_be_asked_at_once_again() {
        for _ in 0..20 {
            assert!(ask(&["/bin/sh", "-c", "printf again"], LIMIT).is_ok());
        }
    }

    #[test]
    fn a_question_that_is_still_open_is_not_asked_again() {
        let question = ["/bin/sh", "-c", "printf asked"];
        unanswered().insert(question.map(str::to_owned).to_vec());
        assert_eq!(ask(&question, LIMIT), Err(NoAnswer::StillRunning));
    }
}
