//! Shows messages on the desktop, with the tool that each system has for it.
//!
//! A library would need D-Bus (zbus: 60 crates more) on Linux, and a signed application bundle on macOS, where
//! `osascript` needs none.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use longhaul_model::Priority;

use crate::message::{Message, shortened};
use crate::outcome::Delivery;

/// Maximum time that the tool may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Interval at which the tool is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Longest text; desktops show a few lines.
const TEXT_BYTES: usize = 300;
/// Script that shows its two arguments. They are arguments so that no text becomes a part of the script.
const SCRIPT: &str =
    "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

/// Shows a message.
pub fn send(message: &Message) -> Delivery {
    let text = shortened(&message.text, TEXT_BYTES);
    let mut command = if std::env::consts::OS == "macos" {
        let mut command = Command::new("/usr/bin/osascript");
        command.args(["-e", SCRIPT, &message.title, &text]);
        command
    } else {
        let mut command = Command::new("notify-send");
        let urgency = urgency(message.kind.priority());
        command.args(["--app-name=longhaul", "--urgency", urgency, "--", &message.title, &text]);
        command
    };
    show(&mut command)
}

/// Runs the tool and returns its outcome.
pub fn show(command: &mut Command) -> Delivery {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match child.and_then(|child| wait(child, LIMIT)) {
        Ok(Some(status)) if status.success() => Delivery::Accepted,
        Ok(Some(status)) => Delivery::failed(format!("{program}: {status}")),
        Ok(None) => Delivery::Unanswered { reason: format!("{program} did not end") },
        Err(error) => Delivery::failed(format!("{program} cannot be started: {error}")),
    }
}

/// Waits for a child, and kills it at the limit. `None`: it was killed.
fn wait(mut child: Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the urgency as notify-send names it.
const fn urgency(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "critical",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_follows_from_the_exit_of_the_tool() {
        assert_eq!(show(&mut Command::new("true")), Delivery::Accepted);
        assert!(matches!(show(&mut Command::new("false")), Delivery::Failed { .. }));
        let missing = show(&mut Command::new("/nonexistent/notify-send"));
        assert!(missing.reason().is_some_and(|reason| reason.contains("cannot be started")), "{missing:?}");
    }

    #[test]
    fn tool_that_hangs_is_killed() {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait(child, Duration::from_millis(50)).unwrap(), None);
    }
}
