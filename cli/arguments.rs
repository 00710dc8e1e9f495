//! The command line: its options and its help, with the commands in groups.

mod demo;
mod fidelity;
mod fleet;
mod freshness;
mod init;
mod integrity;
mod latency;
mod merge;
mod nas;
mod notify;
mod preset;
mod record;
mod report;
mod selfcheck;
mod service;
mod telemetry;
mod usage;
mod values;
mod what_if;
mod why;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use longhaul_model::{Scale, TASKS, TargetName};

pub use demo::DemoArgs;
pub use fidelity::FidelityArgs;
pub use fleet::FleetArgs;
pub use freshness::{FreshnessArgs, FreshnessCommand, HelperArgs, MeasureArgs};
pub use init::{InitArgs, parse_gigabytes};
pub use integrity::IntegrityArgs;
pub use latency::{HistoryArgs, LatencyArgs, StallArgs};
pub use merge::{MergeArgs, MergeCheckArgs, MergeCommand, MergeFormat};
pub use nas::NasCommand;
pub use notify::NotifyCommand;
pub use preset::{PresetArgs, PresetCommand};
pub use record::{FormatArg, RecordArgs, RecordCommand, RecordShowArgs, RecordingChoice};
pub use report::{ExportArgs, ExportKind, PairArg, ReportArgs, ReportFormat};
pub use selfcheck::SelfCheckArgs;
pub use service::{DryRunArgs, LogsArgs, ServiceCommand, UninstallArgs};
pub use telemetry::TelemetryCommand;
pub use usage::{UsageArgs, UsageCommand, parse_times};
pub use values::{DurationArg, JsonArgs, NamedPath, day, whole_number};
pub use what_if::WhatIfArgs;
pub use why::WhyArgs;

use values::{SCALES, named};

/// Find out which protocol is faster for your work on your NAS, and whether the difference is real.
#[derive(Parser)]
#[command(name = "longhaul", version, max_term_width = 100)]
pub struct Cli {
    /// Options that every command accepts.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command to run; without one, an overview is printed.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Heading of the options that every command accepts, in the help of a command.
const GLOBAL_HEADING: &str = "Global options";

/// Options that every command accepts.
#[derive(Args, Clone)]
pub struct GlobalArgs {
    /// Path of the database [default: in the platform's data folder].
    #[arg(long, global = true, value_name = "PATH", help_heading = GLOBAL_HEADING)]
    pub database: Option<PathBuf>,
    /// Path of the configuration file [default: config.toml in the platform's configuration folder, if it exists].
    #[arg(long, global = true, value_name = "PATH", help_heading = GLOBAL_HEADING)]
    pub config: Option<PathBuf>,
}

/// The command to run.
#[derive(Subcommand)]
pub enum Command {
    /// Choose what to compare, see what it costs, and write the configuration.
    #[command(after_help = "Example: longhaul init --target smb=/Volumes/media --target nfs=/Users/me/nfs")]
    Init(InitArgs),
    /// Check everything that measuring needs, as the service sees it. Prints one line per check, with a fix for
    /// each problem.
    #[command(after_help = "Example: longhaul doctor --json > doctor.json")]
    Doctor(JsonArgs),
    /// Show the service: problems first, then targets and rounds.
    #[command(after_help = "Example: longhaul status --watch")]
    Status(StatusArgs),
    /// Print the address of the dashboard. Opened within a minute, the page can also pause and start rounds.
    #[command(after_help = "Example: open \"$(longhaul dashboard)\"")]
    Dashboard,
    /// Show the dashboard with made-up weeks of four targets. Nothing is measured, and nothing is kept.
    #[command(after_help = "Example: longhaul demo")]
    Demo(DemoArgs),
    /// Measure now: randomized rounds of all tasks on all targets.
    #[command(after_help = workload_help())]
    Run(RunArgs),
    /// Try longhaul: two short rounds on the local disk and on each target given.
    #[command(after_help = "Example: longhaul try --target nas=/Volumes/media")]
    Try(TryArgs),
    /// Run a benchmark tool that people quote (dd, blogbench, AJA, ...) or a profile of your own.
    #[command(after_help = "Example: longhaul preset blackmagic --target smb --published")]
    Preset(PresetArgs),
    /// Record what your own programs do on a share, without names, to replay it on every target.
    #[command(
        after_help = "Examples: longhaul record -- git status\n          longhaul record --folder smb --for 10m"
    )]
    Record(RecordArgs),
    /// List the mounts that can be measured, or remove longhaul's data from a target.
    #[command(after_help = "Example: longhaul targets clean smb")]
    Targets(TargetsArgs),
    /// Print the weekly report: the answer first, then each task.
    #[command(after_help = "Example: longhaul report --anonymous --output week.md")]
    Report(ReportArgs),
    /// List runs, or show one run in full.
    #[command(after_help = "Example: longhaul runs 17")]
    Runs(RunsArgs),
    /// Show how fast the shares responded to small requests, and the traffic on them.
    #[command(after_help = "Example: longhaul latency --since 12h --by hour")]
    Latency(LatencyArgs),
    /// List the times when a share did not respond for more than a second.
    #[command(after_help = "Example: longhaul stalls --since 30d --target nfs")]
    Stalls(StallArgs),
    /// List events that may change results, such as system updates and reconnects.
    #[command(after_help = "Example: longhaul events --since 30d")]
    Events(HistoryArgs),
    /// Show where the time of each task goes: this computer, the network, the NAS or its disk.
    #[command(after_help = "Example: longhaul why --target smb")]
    Why(WhyArgs),
    /// Predict how long each task would take with another network or disk in the NAS.
    #[command(after_help = "Example: longhaul what-if --rtt 20ms --bandwidth 50mbit")]
    WhatIf(WhatIfArgs),
    /// Show how long it takes until a change made elsewhere is visible through a share.
    #[command(after_help = "Example: longhaul freshness measure")]
    Freshness(FreshnessArgs),
    /// Show how many times a week you do each task, as counted on the mounts, or correct it.
    #[command(after_help = "Example: longhaul usage set folder-openings=200")]
    Usage(UsageArgs),
    /// Check which properties of files the targets keep, change, refuse or lose silently.
    #[command(after_help = "Example: longhaul fidelity --target smb=/Volumes/media")]
    Fidelity(FidelityArgs),
    /// Show how much data was read back and compared with what was written, and what differed.
    #[command(after_help = "Example: longhaul integrity --check --target smb=/Volumes/media")]
    Integrity(IntegrityArgs),
    /// Export the stored data for other programs; reports can be made from it again.
    #[command(after_help = "Example: longhaul export runs --format json --output runs.jsonl")]
    Export(ExportArgs),
    /// Merge the results that many machines shared.
    #[command(
        after_help = "Examples: longhaul merge results/*.json --output page.html\n          longhaul merge check mine.json"
    )]
    Merge(MergeArgs),
    /// Install, remove or control the background service.
    #[command(subcommand, after_help = "Example: longhaul service install")]
    Service(ServiceCommand),
    /// Pause rounds. A round in progress is cut short.
    #[command(after_help = "Example: longhaul pause --for 2h")]
    Pause(PauseArgs),
    /// Resume rounds.
    #[command(after_help = "Example: longhaul resume")]
    Resume,
    /// Start a round as soon as none is in progress.
    #[command(after_help = "Example: longhaul round && longhaul status --watch")]
    Round,
    /// Check the configuration, or print a commented sample.
    #[command(after_help = "Example: longhaul config --print")]
    Config(ConfigArgs),
    /// Check what the NAS reports about its disks and processors.
    #[command(subcommand, after_help = "Example: longhaul nas check")]
    Nas(NasCommand),
    /// Send a test message to the notification channels.
    #[command(subcommand, after_help = "Example: longhaul notify test phone")]
    Notify(NotifyCommand),
    /// Check the OpenTelemetry collector, or send stored rounds again.
    #[command(subcommand, after_help = "Example: longhaul telemetry check")]
    Telemetry(TelemetryCommand),
    /// Make every system call that longhaul uses once, and print a table to paste into an issue.
    #[command(after_help = "Example: longhaul selfcheck --target smb=/Volumes/media")]
    Selfcheck(SelfCheckArgs),
    /// Print the answer for SwiftBar, xbar or Argos, which show it in the menu bar.
    #[command(after_help = "Example: longhaul menubar --install")]
    Menubar(MenubarArgs),
    /// Print shell completions.
    #[command(after_help = "Example: longhaul completions zsh > ~/.zfunc/_longhaul")]
    Completions {
        /// The shell to generate completions for.
        shell: Shell,
    },
    /// Write the manual pages into a folder; for packages.
    #[command(hide = true)]
    Man {
        /// The folder to write to.
        folder: PathBuf,
    },
    /// Serve one target to a supervisor. Started by longhaul itself.
    #[command(hide = true)]
    Worker,
}

/// Visible commands by group, in the order of the help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["demo", "try", "init", "doctor", "status", "dashboard"]),
    ("Measure", &["run", "preset", "record", "targets"]),
    (
        "Results",
        &[
            "report",
            "runs",
            "latency",
            "stalls",
            "events",
            "why",
            "what-if",
            "freshness",
            "integrity",
            "fidelity",
            "usage",
            "export",
            "merge",
        ],
    ),
    ("Service", &["service", "pause", "resume", "round"]),
    ("More", &["config", "nas", "notify", "telemetry", "selfcheck", "menubar", "completions"]),
];

/// Returns the definition of the command line, with its help in groups.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let groups: String = GROUPS.iter().map(|(title, names)| group(&command, title, names)).collect();
    let template =
        format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}");
    let example =
        "\nWithout a command, longhaul prints an overview. `longhaul COMMAND --help` explains a command.";
    command.help_template(template).after_help(example)
}

fn group(command: &clap::Command, title: &str, names: &[&str]) -> String {
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(clap::Command::get_about);
        let about = about.map_or_else(String::new, ToString::to_string);
        format!("  {name:<13}{}\n", about.trim_end_matches('.'))
    };
    format!("{title}:\n{}\n", names.iter().map(line).collect::<String>())
}

/// Parses the arguments of this process. Prints help or an error and exits if needed.
pub fn parse(version: &'static str) -> Cli {
    let matches = command().version(version).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Arguments of `menubar`.
#[derive(Args)]
pub struct MenubarArgs {
    /// Write the plugin that calls this command every five minutes.
    #[arg(long)]
    pub install: bool,
    /// With --install: the plugin folder [default: that of SwiftBar, xbar or Argos].
    #[arg(long, value_name = "FOLDER", requires = "install")]
    pub folder: Option<PathBuf>,
}

/// Arguments of `try`.
#[derive(Args)]
pub struct TryArgs {
    /// A folder to measure besides the local disk, as NAME=PATH; may be given several times.
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<NamedPath>,
    /// Keep the test data on the targets.
    #[arg(long)]
    pub keep: bool,
    /// Print all figures instead of a short table.
    #[arg(long)]
    pub verbose: bool,
}

/// Arguments of `run`.
#[derive(Args)]
pub struct RunArgs {
    /// A folder to measure, as NAME=PATH; may be given several times [default: the targets of the configuration].
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<NamedPath>,
    /// A task to run; may be given several times [default: those of the configuration, else all].
    #[arg(long = "workload", value_name = "NAME")]
    pub workloads: Vec<String>,
    /// Number of rounds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// Size of the test data.
    #[arg(long, value_parser = named(SCALES))]
    pub scale: Option<Scale>,
    /// Time after which a run is stored as hung, in seconds [default: 900].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub cap: Option<u64>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `targets`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TargetsArgs {
    /// Subcommand to run instead of printing the list.
    #[command(subcommand)]
    pub command: Option<TargetsCommand>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The subcommands of `targets`.
#[derive(Subcommand)]
pub enum TargetsCommand {
    /// Remove longhaul's data from a target; lists it first and asks.
    Clean(CleanArgs),
}

/// Arguments of `targets clean`.
#[derive(Args)]
pub struct CleanArgs {
    /// The target's name, as in the configuration or the database, or NAME=PATH.
    pub target: String,
    /// Delete without asking.
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `runs`.
#[derive(Args)]
pub struct RunsArgs {
    /// Show this run in full: phases, operations, errors, conditions.
    #[arg(value_name = "ID", value_parser = whole_number::<i64>, conflicts_with_all = ["target", "workload", "last", "summary", "scale"])]
    pub run: Option<i64>,
    /// Summarize all runs instead: per task and target, cold and warm separately.
    #[arg(long, conflicts_with_all = ["target", "workload", "last"])]
    pub summary: bool,
    /// With --summary: runs of this scale [default: that of most runs].
    #[arg(long, value_parser = named(SCALES), requires = "summary")]
    pub scale: Option<Scale>,
    /// List only runs on this target.
    #[arg(long, value_name = "NAME")]
    pub target: Option<TargetName>,
    /// List only runs of this task.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Number of runs, counted from the latest; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole_number::<u32>)]
    pub last: u32,
    /// Print JSON; a list is one object per line.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `status`.
#[derive(Args)]
pub struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Keep the view open until `q` is pressed; with --json, print a line every two seconds, `null` while no service answers. At the
    /// start, a service has to run.
    #[arg(long)]
    pub watch: bool,
}

/// Arguments of `pause`.
#[derive(Args)]
pub struct PauseArgs {
    /// Length of the pause, such as 30m, 2h or 1d [default: until `longhaul resume`].
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<DurationArg>,
}

/// Arguments of `config`.
#[derive(Args)]
pub struct ConfigArgs {
    /// Print a commented sample with every key.
    #[arg(long)]
    pub print: bool,
}

fn workload_help() -> String {
    let lines = TASKS.iter().map(|workload| format!("  {:<24}{}", workload.name(), workload.summary()));
    let tasks = lines.collect::<Vec<_>>().join("\n");
    format!("Tasks:\n{tasks}\n\nExample: longhaul run --rounds 3 --target smb=/Volumes/media")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        command().debug_assert();
    }

    #[test]
    fn help_lists_every_visible_command_once() {
        let command = command();
        let visible = command.get_subcommands().filter(|found| !found.is_hide_set());
        let mut names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, names);
    }

    #[test]
    fn help_names_every_workload() {
        assert!(TASKS.iter().all(|workload| workload_help().contains(workload.name())));
    }
}
