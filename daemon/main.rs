//! longhauld: the background service, and its worker processes.

fn main() -> std::process::ExitCode {
    longhaul_daemon::main(env!("LONGHAUL_VERSION"))
}
