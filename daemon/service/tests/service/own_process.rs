//! Tests that need a process of their own: they measure it, or mount a file system.

use std::ffi::OsStr;
use std::process::Command;

/// Environment variable with the name of the test that runs in a process of its own.
const INSIDE: &str = "LONGHAUL_TEST_INSIDE";

/// Returns true in the test's own process. Otherwise runs the test again in one, which begins with the words of
/// `command`, and returns false. Panics if that fails.
pub fn in_own_process(test: impl Fn(), command: &[&str]) -> bool {
    // The test program lists its tests without its own name.
    let (_, name) = std::any::type_name_of_val(&test).split_once("::").unwrap();
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let mut words = command.iter().map(OsStr::new).chain([program.as_os_str()]);
    let output = Command::new(words.next().unwrap())
        .args(words)
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .env(INSIDE, name)
        .output()
        .unwrap();
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{name} failed in its own process ({command:?}):\n{printed}"
    );
    eprint!("{printed}");
    false
}
