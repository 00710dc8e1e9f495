//! Tools of the operating system, asked as child processes that are never waited for beyond a limit.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// No tool that is asked here says more.
const LONGEST_ANSWER_BYTES: u64 = 1 << 20;

/// The questions whose child has not ended: a child that asks a dead share may ignore even SIGKILL for minutes
/// (SMBClient kernel/netsmb/smb_iod.c), and a second one would only hang beside it.
static UNANSWERED: Mutex<BTreeSet<Vec<String>>> = Mutex::new(BTreeSet::new());

/// What a command writes to its standard output; `None` if it cannot be started, says nothing within the limit, or if
/// the same command has not ended since it was last asked.
///
/// The exit status is not looked at: tools print what they know and then fail for the rest. When the limit is over the
/// child is killed, and reaped whenever it ends.
pub fn output_within(command: &[&str], limit: Duration) -> Option<Vec<u8>> {
    let question: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    if !unanswered().insert(question.clone()) {
        return None;
    }
    let Some((mut child, answer)) = start(command) else {
        unanswered().remove(&question);
        return None;
    };
    let output = answer.recv_timeout(limit).ok();
    if output.is_none() {
        // on failure it has ended already
        let _ = child.kill();
    }
    reap_when_it_ends(child, question);
    output
}

fn unanswered() -> std::sync::MutexGuard<'static, BTreeSet<Vec<String>>> {
    UNANSWERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the child and a thread that reads it to its end.
fn start(command: &[&str]) -> Option<(Child, Receiver<Vec<u8>>)> {
    let (program, arguments) = command.split_first()?;
    let quiet = || Stdio::null();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(quiet())
        .stdout(Stdio::piped())
        .stderr(quiet())
        .spawn()
        .ok()?;
    let pipe = child.stdout.take()?;
    let (sender, receiver) = channel();
    // without the thread the sender is gone, and the answer is that there is none
    let _ = Builder::new().name("tool output".to_owned()).spawn(move || {
        let mut output = Vec::new();
        if pipe.take(LONGEST_ANSWER_BYTES).read_to_end(&mut output).is_ok() {
            let _ = sender.send(output);
        }
    });
    Some((child, receiver))
}

/// Without the thread the child stays a zombie and its question closed: better than to block here.
fn reap_when_it_ends(mut child: Child, question: Vec<String>) {
    let _ = Builder::new().name("tool reaper".to_owned()).spawn(move || {
        let _ = child.wait();
        unanswered().remove(&question);
    });
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
    fn a_question_that_is_still_open_is_not_asked_again() {
        let question = ["/bin/sh", "-c", "printf asked"];
        unanswered().insert(question.map(str::to_owned).to_vec());
        assert_eq!(output_within(&question, LIMIT), None);
    }
}
