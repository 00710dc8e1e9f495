//! longhaul: the command line program.

fn main() -> std::process::ExitCode {
    longhaul_cli::main(longhaul_daemon::demo)
}
