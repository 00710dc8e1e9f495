//! Links the programs on Linux to a fixed place, and tells them the commit and the features that they are built from.

use std::path::Path;
use std::process::Command;

/// Features that users notice.
const FEATURES: [&str; 2] = ["parquet", "png"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // Elsewhere each worker would write its own copy of 216 kB of pointers at its start, half of the memory that an idle one
    // takes; libraries, heap and stacks are still placed at random.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rustc-env=LONGHAUL_VERSION={}", version());
}

/// Returns the version, and in brackets the commit, if this is a repository, and the features.
fn version() -> String {
    let number = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let feature = |name: &&str| std::env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some();
    let features = FEATURES.iter().copied().filter(feature).map(str::to_owned);
    let origin: Vec<String> =
        commit().map(|commit| format!("commit {commit}")).into_iter().chain(features).collect();
    if origin.is_empty() { number } else { format!("{number} ({})", origin.join(", ")) }
}

/// Returns the commit of the source; `None` outside a repository, as in the source archive of a release.
fn commit() -> Option<String> {
    // Each commit adds a line to it. A path that does not exist would make every build run this program again.
    let log = Path::new(".git/logs/HEAD");
    if !log.exists() {
        return None;
    }
    println!("cargo::rerun-if-changed={}", log.display());
    let output = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    Some(commit.trim().to_owned()).filter(|commit| output.status.success() && !commit.is_empty())
}
