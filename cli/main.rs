//! longhaul: the command line program.

fn main() -> std::process::ExitCode {
    longhaul_cli::main(env!("LONGHAUL_VERSION"), longhaul_daemon::demo)
}
